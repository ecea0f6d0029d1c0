// `mgt eval`: the test accuracy of given weights, of a config or of an earlier run.
#include "config_arguments.h"
#include "launch/launcher.h"
#include "program.h"
#include "report/format.h"
#include "report/record_text.h"

#include <CLI/CLI.hpp>

#include <iomanip>
#include <iostream>
#include <memory>
#include <sstream>

namespace mgt {
namespace {

struct EvalOptions {
  ConfigArguments config;
  std::string run_folder;
  bool json = false;
};

ConfigError no_weights() {
  return ConfigError("init: eval needs weights; give --run DIR of a finished run, or --set init=FILE.safetensors");
}

// As a YAML string, whatever characters the path has.
std::string quoted(const std::string& path) {
  std::ostringstream out;
  out << std::quoted(path);
  return out.str();
}

// A run's folder stands for its config and its weights; --set may change both.
ConfigArguments arguments_of(const FileSystem& files, const EvalOptions& options) {
  ConfigArguments arguments = options.config;
  if (options.run_folder.empty()) return arguments;
  check_run_folder(files, options.run_folder, "weights.safetensors");
  arguments.name = options.run_folder + "/config.yaml";
  arguments.set.insert(arguments.set.begin(), "init=" + quoted(options.run_folder + "/weights.safetensors"));
  return arguments;
}

ExitCode evaluate(const Program& program, const EvalOptions& options) {
  const config::Config config = read_config(program, arguments_of(program.files, options));
  if (!config.top().has("init")) throw no_weights();
  const launch::Job job{
      .config = config,
      .placement = launch::place(config),
      .arguments = program.arguments,
      .run_folder = "",
      .make_observer = {},
      .finished =
          [&](const train::Summary& summary) {
            std::cout << (options.json ? report::evaluation_json(summary) : report::evaluation_line(summary))
                      << std::endl;
            check_output();
          },
      .evaluate_only = true,
  };
  launch::run(job, program.files);
  return ExitCode::done;
}

}  // namespace

void add_eval(CLI::App& app, Program& program) {
  CLI::App* command = app.add_subcommand("eval", "Test the weights of a run, or of a file");
  const auto options = std::make_shared<EvalOptions>();
  CLI::Option_group* source = command->add_option_group("what to test");
  source
      ->add_option("--config", options->config.name,
                   "A YAML file, or one of the shipped configs; needs --set init=FILE")
      ->type_name("NAME");
  source->add_option("--run", options->run_folder, "Folder of a finished run")->type_name("DIR");
  source->require_option(1);
  options->config.add_overrides(*command);
  command->add_flag("--json", options->json, "Print one JSON object and nothing else");
  command->callback(
      [options, &program] { program.action = [options, &program] { return evaluate(program, *options); }; });
}

}  // namespace mgt
