// The keys at the top of every config and the sections that are not filled by entries, with their typed form.
// Pure functions and values.
#pragma once

#include "config/config.h"
#include "config/option.h"

#include <cstdint>
#include <optional>
#include <string>

namespace mgt::config {

enum class Precision { fp32, fp64 };
enum class Launch { processes, threads };

struct Run {
  DeviceRequest devices;
  bool devices_strict;  // a device that is not there is an error, not a CPU in its place
  int64_t batch_size;   // samples of one optimizer step, over all ranks
  int64_t epochs;
  std::optional<int64_t> max_steps;  // stop after so many optimizer steps
  uint64_t seed;
  bool shuffle;
  Precision precision;
  bool invariant;  // determinism: invariant
  int64_t virtual_shards;
  std::optional<int64_t> threads;  // intra-op threads of each rank; absent: cores / ranks
  Launch launch;
  std::optional<std::string> init;  // safetensors file with the first weights
  std::string comm_backend;         // auto, local, gloo, nccl
  double comm_timeout_s;
  std::string comm_algorithm;  // auto, library, ring, halving_doubling
  std::string language;        // of the last line: en, zh
  std::string log_level;
  int64_t log_every_steps;  // a metrics record every N steps; 0: per epoch only
};

// What the schema holds besides the sections of the entries (model, data, strategy, optimizer, schedule).
std::vector<Option> run_options();
SectionSpec comm_section();
SectionSpec log_section();

// The typed form of the top level, `comm` and `log`.
Run run_of(const Config& config);

}  // namespace mgt::config
