// What a run leaves on disk: config.yaml, run.json, metrics.jsonl and .csv, log.txt, summary.json. The folder is made
// when the run starts, not before, so a run that did not start leaves nothing. Belongs to the rank that reports.
#pragma once

#include "core/file_system.h"
#include "report/manifest.h"
#include "train/records.h"

#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

namespace mgt::report {

// The path of a folder that does not exist yet: PARENT/CONFIG-20261130-141500 in local time, with -2, -3, ... where
// another run was as quick.
std::string new_run_folder(const FileSystem& files, const std::string& parent, const std::string& config_name,
                           std::time_t now);

class RunFolder final : public train::Observer {
 public:
  // `every_steps`: a record for every so many steps, beside those of the epochs; 0: none.
  RunFolder(FileSystem& files, std::string path, RunFacts facts, int64_t every_steps);

  // ConfigError: the folder holds a run already, or cannot be written.
  void run_started(const train::RunInfo& info) override;
  void step_done(const train::StepRecord& record) override;
  void epoch_done(const train::EpochRecord& record) override;
  void run_finished(const train::Summary& summary);

 private:
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  template <typename Record>
  void add_record(const Record& record);

  void write_manifest(const std::string& data_sha256);

  FileSystem& files_;
  std::string path_;
  RunFacts facts_;
  int64_t every_steps_;
  train::RunInfo info_;
  std::vector<checkpoint::WeightsHash> epochs_;
};

}  // namespace mgt::report
