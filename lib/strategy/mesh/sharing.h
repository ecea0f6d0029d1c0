// What the ranks of the data axis share out (Rajbhandari et al., "ZeRO", SC 2020), and how they talk about it. A value.
// None of the switches changes the result.
#pragma once

#include <cstdint>

namespace mgt::strategy {

struct Sharing {
  // 0: nothing (ddp); 1: optimizer state; 2: gradients too; 3: parameters too.
  int64_t stage = 0;
  int64_t bucket_bytes = 4 << 20;    // of gradients that are reduced together; in stage 3 that is a block
  bool overlap = true;               // reduce during backward; in stage 3 gather the next block early
  bool contiguous_gradients = true;  // each gradient goes into its bucket at once, not when the bucket is complete
  bool reduce_scatter = true;        // else all-reduce, and keep a part: twice the bytes
  bool all_gather = true;            // else a broadcast from each rank in turn
  bool offload = false;              // optimizer state and its arithmetic on the host

  bool shares_optimizer() const { return stage >= 1; }
  bool shares_gradients() const { return stage >= 2; }
  bool shares_parameters() const { return stage >= 3; }
};

}  // namespace mgt::strategy
