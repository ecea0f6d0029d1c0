// run.json, the manifest of a run: what it was trained by and from, and a hash of the weights after each epoch, so that
// it can be run again and compared. Values and pure functions, but for reading the file.
#pragma once

#include "core/file_system.h"
#include "train/records.h"

#include <ctime>
#include <map>
#include <string>
#include <vector>

namespace mgt::report {

// What is known of a run before it starts.
struct RunFacts {
  std::string config;       // the resolved file
  std::string init_sha256;  // of the file of first weights; "" without one
  std::string mgt_version;
  std::string libtorch_version;
  std::string cpu_model;
  int64_t cores = 0;
  uint64_t seed = 0;
  std::vector<std::string> command;  // the program and its arguments
  std::string working_directory;     // which relative paths of the config start from
  std::time_t started = 0;
};

struct Manifest {
  std::map<std::string, std::string>
      facts;  // what may explain a difference: "libtorch", "threads_per_rank", ... as JSON
  std::string working_directory;
  std::vector<checkpoint::WeightsHash> epochs;
};

// The text of run.json after these epochs; `data_sha256` is empty while it is not known.
std::string manifest_text(const RunFacts& facts, const train::RunInfo& info,
                          const std::vector<checkpoint::WeightsHash>& epochs, const std::string& data_sha256);

// CheckpointError: not the text of a manifest; `name` says of which file.
Manifest parse_manifest(const std::string& text, const std::string& name);
Manifest read_manifest(const FileSystem& files, const std::string& run_folder);

// The facts that changed between the runs: "threads_per_rank: 1 then, 2 now"; "" where none did.
std::string changed_facts(const Manifest& before, const Manifest& now);

// "" where both runs had the same weights after every epoch; else the first epoch and tensor that differ, and the facts
// that changed.
std::string difference(const Manifest& before, const Manifest& now);

}  // namespace mgt::report
