// `mgt verify --replay`: an earlier run, again.
#include "config/run.h"
#include "config_arguments.h"
#include "core/log.h"
#include "core/text.h"
#include "launch/launcher.h"
#include "program.h"
#include "report/manifest.h"
#include "run_facts.h"

#include <filesystem>
#include <iostream>
#include <memory>

namespace mgt {
namespace {

// Keeps the hashes of the epochs.
class Hashes final : public train::Observer {
 public:
  Hashes(train::RunInfo& info, std::vector<checkpoint::WeightsHash>& epochs) : info_(info), epochs_(epochs) {}
  void run_started(const train::RunInfo& info) override { info_ = info; }
  void epoch_done(const train::EpochRecord& record) override { epochs_.push_back(record.weights); }

 private:
  train::RunInfo& info_;
  std::vector<checkpoint::WeightsHash>& epochs_;
};

// Where the run was started, which the paths in its config are relative to; where that is gone, they may not be.
void go_to(const std::string& directory) {
  std::error_code error;
  if (!directory.empty()) std::filesystem::current_path(directory, error);
  if (error) log::warning(concat(directory, ", where the run was started, cannot be entered: ", error.message()));
}

}  // namespace

ExitCode replay(const Program& program, const std::string& run_folder) {
  log::set_level("warning");
  check_run_folder(program.files, run_folder, "run.json");
  const report::Manifest before = report::read_manifest(program.files, run_folder);
  if (before.epochs.empty()) {
    throw CheckpointError(concat(run_folder, "/run.json: the run ended before its first epoch; nothing to compare"));
  }
  ConfigArguments arguments;
  arguments.name = run_folder + "/config.yaml";
  const config::Config original = read_config(program, arguments);
  // A run that was interrupted is replayed as far as it got.
  arguments.set.push_back(concat("epochs=", before.epochs.size()));
  const config::Config config = read_config(program, arguments);
  const std::string folder = std::filesystem::absolute(run_folder).string();
  go_to(before.working_directory);
  train::RunInfo info;
  std::vector<checkpoint::WeightsHash> epochs;
  const auto finished = [&](const train::Summary& summary) {
    const std::string text = report::manifest_text(facts_of(program, original, 0), info, epochs, summary.data_sha256);
    const report::Manifest now = report::parse_manifest(text, "this run");
    const std::string difference = report::difference(before, now);
    if (!difference.empty()) throw NumericsError(concat("verify: ", run_folder, ": ", difference));
    const std::string changed = report::changed_facts(before, now);
    if (!changed.empty()) std::cout << "changed, without effect: " << changed << '\n';
    std::cout << "identical: " << counted(static_cast<int64_t>(epochs.size()), "epoch") << ", SHA-256 of the weights "
              << epochs.back().sha256 << std::endl;
  };
  launch::run({.config = config,
               .placement = launch::place(config),
               .arguments = {"verify", "--replay", folder},
               .run_folder = "",
               .make_observer = [&] { return std::make_unique<Hashes>(info, epochs); },
               .finished = finished},
              program.files);
  return ExitCode::done;
}

}  // namespace mgt
