// The program: its command line, the only catch-all, the only exit codes.
#include "core/text.h"
#include "launch/launcher.h"
#include "program.h"

#include <CLI/CLI.hpp>

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <climits>
#include <csignal>
#include <exception>
#include <iostream>
#include <new>

namespace {

using mgt::ExitCode;

// Memory that a step frees stays with the process: large activations would otherwise be mapped, and every one of their
// pages faulted in, at each step anew.
void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, 64 << 20);
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// A rank's own process leaves the telling to the one that started it.
int fail(ExitCode code, const std::string& message) {
  if (mgt::launch::is_rank_process()) return static_cast<int>(code);
  if (isatty(STDERR_FILENO) != 0) std::cerr << "\r\x1b[K";  // a rank that died may have left its progress bar
  std::cerr << "mgt: error: " << first_line(message) << std::endl;
  return static_cast<int>(code);
}

// A file opened later must not become stdout.
void open_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) < 0) open("/dev/null", O_RDWR);  // takes the lowest number that is free: this one
  }
}

ExitCode run(int argc, char** argv) {
  CLI::App app{"Trains image classifiers on one or many devices from one YAML file.", "mgt"};
  app.require_subcommand(0, 1);  // so that a misspelt one is named, not said to be missing
  app.set_version_flag("--version", "mgt " + mgt::mgt_version() + ", LibTorch " + mgt::libtorch_version());
  mgt::Program program{.files = mgt::real_file_system(), .arguments = {argv + 1, argv + argc}};
  mgt::add_train(app, program);
  mgt::add_eval(app, program);
  mgt::add_verify(app, program);
  mgt::add_config(app, program);
  mgt::add_doctor(app, program);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& wanted) {  // --help, --version
    app.exit(wanted);
    mgt::check_output();
    return ExitCode::done;
  } catch (const CLI::ParseError& error) {
    throw mgt::ConfigError(first_line(error.what()) + "; see `mgt --help` and `mgt COMMAND --help`");
  }
  if (!program.action) throw mgt::ConfigError("no command given; see `mgt --help` and `mgt COMMAND --help`");
  const ExitCode code = program.action();
  mgt::check_output();
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  open_closed_streams();
  keep_freed_memory();
  std::signal(SIGPIPE, SIG_IGN);  // a reader of our output that goes away does not end a training
  try {
    return static_cast<int>(run(argc, argv));
  } catch (const mgt::InternalError& error) {
    return fail(error.code(), mgt::concat("internal error: ", first_line(error.what()), "; please report this"));
  } catch (const mgt::Error& error) {
    return fail(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return fail(ExitCode::comm,
                "out of memory; lower batch_size or the model's size, or run fewer ranks on this machine");
  } catch (const std::exception& error) {
    return fail(ExitCode::internal, mgt::concat("internal error: ", first_line(error.what()), "; please report this"));
  } catch (...) {
    return fail(ExitCode::internal, "internal error of an unknown type; please report this");
  }
}
