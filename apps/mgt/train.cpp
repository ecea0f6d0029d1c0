// `mgt train`: one run, told on the console and kept in its folder.
#include "config/run.h"
#include "config_arguments.h"
#include "core/log.h"
#include "launch/launcher.h"
#include "program.h"
#include "report/console.h"
#include "report/run_folder.h"
#include "run_facts.h"

#include <CLI/CLI.hpp>

#include <ctime>
#include <filesystem>
#include <iostream>
#include <memory>

namespace mgt {
namespace {

struct TrainOptions {
  ConfigArguments config;
  std::string run_folder;
  bool json = false;
  bool quiet = false;
};

// Tells the folder first, and then the console.
class Reporters final : public train::Observer {
 public:
  Reporters(report::RunFolder& folder, report::Console& console) : folder_(folder), console_(console) {}
  void run_started(const train::RunInfo& info) override {
    folder_.run_started(info);
    console_.run_started(info);
  }
  void step_done(const train::StepRecord& record) override {
    folder_.step_done(record);
    console_.step_done(record);
  }
  void epoch_done(const train::EpochRecord& record) override {
    folder_.epoch_done(record);
    console_.epoch_done(record);
  }

 private:
  report::RunFolder& folder_;
  report::Console& console_;
};

// Ranks that are processes use the folder that was chosen here.
std::vector<std::string> with_run_folder(std::vector<std::string> arguments, const TrainOptions& options,
                                         const std::string& folder) {
  if (options.run_folder.empty()) arguments.insert(arguments.end(), {"--run-dir", folder});
  return arguments;
}

// The last line of a run that began and did not end well.
void keep_error(FileSystem& files, const std::string& folder, const Error& error) {
  const std::string path = folder + "/log.txt";
  if (launch::is_rank_process() || files.kind(path) != FileSystem::Kind::regular) return;
  files.append(path, std::string("error: ") + error.what() + "\n");
}

ExitCode run_training(const Program& program, const TrainOptions& options) {
  const config::Config config = read_config(program, options.config);
  const config::Run run = config::run_of(config);
  log::set_level(options.quiet ? "warning" : run.log_level);
  const std::time_t now = std::time(nullptr);
  const std::string name = std::filesystem::path(options.config.name).stem().string();
  const std::string folder =
      options.run_folder.empty() ? report::new_run_folder(program.files, "runs", name, now) : options.run_folder;

  report::RunFolder run_folder(program.files, folder, facts_of(program, config, now), run.log_every_steps);
  report::ProgressBar bar(std::cerr, report::stderr_columns);
  report::Console console(
      {.json = options.json, .quiet = options.quiet, .language = run.language, .run_folder = folder}, std::cout, bar);
  const launch::Job job{
      .config = config,
      .placement = launch::place(config),
      .arguments = with_run_folder(program.arguments, options, folder),
      .run_folder = folder,
      .make_observer = [&] { return std::make_unique<Reporters>(run_folder, console); },
      .finished =
          [&](const train::Summary& summary) {
            run_folder.run_finished(summary);
            console.run_finished(summary);
            check_output();
          },
  };
  try {
    launch::run(job, program.files);
  } catch (const Error& error) {
    keep_error(program.files, folder, error);
    throw;
  }
  return ExitCode::done;
}

}  // namespace

void add_train(CLI::App& app, Program& program) {
  CLI::App* command = app.add_subcommand("train", "Train as a config says");
  const auto options = std::make_shared<TrainOptions>();
  command->add_option("--config", options->config.name, "A YAML file, or one of the shipped configs")
      ->required()
      ->type_name("NAME");
  options->config.add_overrides(*command);
  command->add_option("--run-dir", options->run_folder, "Folder of this run; absent: runs/<config>-<time>")
      ->type_name("DIR");
  command->add_flag("--json", options->json, "Print the summary as one JSON object and nothing else");
  command->add_flag("--quiet", options->quiet, "Print the last line alone");
  command->callback(
      [options, &program] { program.action = [options, &program] { return run_training(program, *options); }; });
}

}  // namespace mgt
