// How the global batch of a step is taken: over the data ranks, then in pieces. Values and pure functions.
#pragma once

#include "config/config.h"

#include <cstdint>

namespace mgt::launch {

struct BatchPlan {
  int64_t batch_size = 1;   // samples of one optimizer step, over all ranks
  int64_t accumulate = 1;   // pieces that a rank takes its part in, as asked for
  int64_t micro_batch = 1;  // rows of the largest piece
  int64_t pieces = 1;       // that make up a rank's rows of a full batch: accumulate, or as many as there are rows
  bool is_asked = false;    // the pieces are the config's wish, not a default
};

// Two of batch_size, accumulate and micro_batch given, the third follows. ConfigError: all three, and they contradict.
BatchPlan batch_plan(const config::Config& config, int64_t devices);

}  // namespace mgt::launch
