// Gradient buckets of data parallel ranks (Li et al., "PyTorch Distributed", VLDB 2020): ranges of the flat gradient
// in the order in which backward fills them. A hook on each parameter counts its bucket down; a full bucket's
// all-reduce starts at once, while backward goes on. Buckets start in their order on every rank, so that collectives
// match. Belongs to one rank; hooks run on the thread that runs backward.
#pragma once

#include "comm/communicator.h"
#include "core/split.h"
#include "model/replica.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace mgt::strategy {

// The flat gradient cut into ranges of at least `bucket_bytes`, last parameter first. Together they are all of it.
std::vector<Range> cut_buckets(const model::Replica& replica, int64_t bucket_bytes);

class Buckets {
 public:
  // `ranges` as cut_buckets makes them. `replica` and `communicator` must outlive the buckets, and the replica must not
  // move.
  Buckets(model::Replica& replica, comm::Communicator& communicator, std::vector<Range> ranges, bool overlap);

  void begin();   // before the last backward of a step; in those before it nothing is reduced
  void finish();  // after backward: starts what no hook has started, then waits for all; gradients are sums over ranks

  int64_t started_in_backward() const { return started_in_backward_; }  // since construction

 private:
  void parameter_ready(std::size_t bucket);
  void start_next();

  model::Replica& replica_;
  comm::Communicator& communicator_;
  bool overlap_;
  std::vector<Range> ranges_;
  std::vector<int64_t> parameters_in_;  // of each bucket
  std::vector<int64_t> missing_;        // parameters of each bucket whose gradient is not there yet
  bool reducing_ = false;               // between begin and finish
  std::vector<comm::Work> started_;
  std::vector<at::Tensor> views_;  // of the flat gradient, one a bucket
  int64_t started_in_backward_ = 0;
};

}  // namespace mgt::strategy
