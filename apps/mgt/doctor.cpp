// `mgt doctor`: what this machine has, and for each trouble its cure. Exits with 0 where nothing stands in the way of
// training, else with the exit code that `mgt train` would end with for the first trouble that does.
#include "comm/device.h"
#include "config/reader.h"
#include "core/file_system.h"
#include "core/text.h"
#include "data/entry.h"
#include "launch/placement.h"
#include "launch/rank.h"
#include "machine.h"
#include "program.h"

#include <CLI/CLI.hpp>

#include <ATen/core/Tensor.h>

#include <iomanip>
#include <iostream>

namespace mgt {
namespace {

// The lines of the report, and whether something stands in the way of training.
class Findings {
 public:
  void tell(const std::string& what, const std::string& text) {
    std::cout << std::left << std::setw(18) << what + ":" << text << "\n";
  }
  void trouble(const std::string& what, const std::string& text, const std::string& cure, ExitCode code) {
    tell(what, text + "; cure: " + cure);
    if (code_ == ExitCode::done) code_ = code;
  }
  ExitCode code() const { return code_; }

 private:
  ExitCode code_ = ExitCode::done;
};

std::string gibibytes(int64_t bytes) { return fixed(static_cast<double>(bytes) / (1 << 30), 1) + " GiB"; }

std::string space_text(const Space& space) {
  return concat(gibibytes(space.free_bytes), " free of ", gibibytes(space.total_bytes));
}

void tell_versions(Findings& findings) {
  findings.tell("mgt", mgt_version());
  findings.tell("LibTorch", libtorch_version());
  findings.tell("compiler", compiler());
}

// One that is there but cannot be used stands in the way: `devices: auto` would take it.
void tell_gpus(Findings& findings) {
  const int64_t count = comm::gpu_count();
  if (count == 0) return findings.tell("GPUs", "none; training runs on the CPU");
  try {
    for (int64_t index = 0; index < count; ++index) {
      const at::Device device(at::kCUDA, static_cast<at::DeviceIndex>(index));
      findings.tell(concat("cuda:", index), comm::services(device).description(device));
    }
    for (const auto& [library, version] : comm::services(at::kCUDA).versions()) findings.tell(library, version);
  } catch (const ConfigError& error) {
    findings.trouble("GPUs", concat(count, " found, not usable: ", error.what()),
                     "as said, or train on the CPU with --devices 0", ExitCode::config);
  }
}

void tell_machine(Findings& findings) {
  findings.tell("CPU", cpu_model());
  findings.tell("cores", concat(launch::usable_cores(), " (threads of all ranks together)"));
  tell_gpus(findings);
  findings.tell("memory", space_text(memory()));
  findings.tell("/dev/shm", space_text(disk("/dev/shm")));
}

void tell_loopback(Findings& findings) {
  if (loopback_works()) return findings.tell("loopback", "works");
  findings.trouble("loopback", "no TCP connection on 127.0.0.1",
                   "ip link set lo up, or train with --set launch=threads", ExitCode::comm);
}

void tell_descriptors(Findings& findings) {
  constexpr int64_t kEnough = 256;  // pipes and sockets of some dozen ranks
  const int64_t limit = file_descriptor_limit();
  if (limit >= kEnough) return findings.tell("open files", concat("at most ", limit));
  findings.trouble("open files", concat("at most ", limit), "ulimit -n 1024", ExitCode::comm);
}

// Reads it all, so that a damaged file is found as well.
void tell_data(const Program& program, Findings& findings) {
  const config::Config config = config::resolve(launch::schema(), {"doctor", "data: fashion_mnist"});
  try {
    const data::Splits splits = data::load(config, {.files = program.files});
    findings.tell("data", concat("Fashion-MNIST, ", splits.train.size(), " training samples in ", splits.train.name));
  } catch (const DataError& error) {
    findings.trouble("data", error.what(), "apt-get install dataset-fashion-mnist, or scripts/fetch_data",
                     ExitCode::data);
  }
}

ExitCode examine(const Program& program) {
  Findings findings;
  tell_versions(findings);
  tell_machine(findings);
  tell_loopback(findings);
  tell_descriptors(findings);
  findings.tell("cache", cache_folder());
  tell_data(program, findings);
  std::cout << (findings.code() == ExitCode::done ? "ready to train" : "not ready to train") << std::endl;
  return findings.code();
}

}  // namespace

void add_doctor(CLI::App& app, Program& program) {
  app.add_subcommand("doctor", "What this machine has, and each trouble with its cure")->callback([&program] {
    program.action = [&program] { return examine(program); };
  });
}

}  // namespace mgt
