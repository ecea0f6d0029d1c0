// What a strategy must define: one `const Entry entry` in strategy/.../<name>/entry.cpp. CMake makes the table from the
// folders.
#pragma once

#include "comm/communicator.h"
#include "config/config.h"
#include "model/model.h"
#include "strategy/parts/microbatches.h"
#include "strategy/strategy.h"

#include <memory>
#include <vector>

namespace mgt::strategy {

struct Context {
  const config::Config& config;
  const model::Model& model;
  std::vector<at::Device> devices;   // in one process: all of them; one rank per device: this rank's
  comm::Communicator& communicator;  // of size 1 for strategies in one process
  at::ScalarType dtype;
  uint64_t seed;
  int64_t threads;  // intra-op threads that this rank may use
  MicroBatch micro_batch;
};

enum class Ranks { one_process, one_per_device };

struct Entry {
  config::Variant variant;  // name, one-line summary, its own options, checks
  Ranks ranks;
  bool splits_batch = true;  // each device gets its own rows; false: every device sees the whole batch
  // Where several devices share rows: how many sets of rows there are.
  int64_t (*data_ranks)(const config::Config& config, int64_t devices) = nullptr;
  bool can_be_invariant = false;  // knows `determinism: invariant` (parts/virtual_shards.h)
  // What only model and devices ("cpu", "cuda:0") show to be wrong; ConfigError.
  void (*check_devices)(const config::Config& config, const model::Model& model,
                        const std::vector<std::string>& devices) = nullptr;
  // Where it has a pipeline: its stages, and its schedule as text, of a step of so many pieces.
  int64_t (*stages)(const config::Config& config, int64_t devices) = nullptr;
  std::string (*draw_schedule)(const config::Config& config, int64_t stages, int64_t pieces) = nullptr;
  std::unique_ptr<Strategy> (*make)(const Context& context);
};

// All strategies, sorted by folder.
const std::vector<const Entry*>& entries();

// The `strategy` section of the schema: one variant an entry.
config::SectionSpec section();

// Into how many parts the rows of a batch are split over `devices`.
int64_t data_ranks(const config::Config& config, int64_t devices);

// The entry that the config names.
const Entry& entry_of(const config::Config& config);

}  // namespace mgt::strategy
