// The reference of training whose BatchNorm statistics are not those of the whole batch: of each replica's rows
// (`bn: local`), of each piece (`accumulate`), or both. One device that takes the batch in the same sets of rows,
// normalises each by itself, and makes one update. Written without any of the strategies' machinery for several
// devices.
#pragma once

#include "strategy/entry.h"

#include <memory>

namespace mgt::verify {

// How a global batch is cut for the statistics.
struct RowSets {
  int64_t shards = 1;     // replicas
  bool together = false;  // `bn: sync`: a piece is that of all replicas together, with the same statistics
  strategy::MicroBatch micro_batch = {};

  bool is_whole(int64_t batch_size) const;  // one device on the whole batch
  // The sets of a batch of `rows`, in the order in which they are taken; each is ranges of rows, first those of shard
  // 0.
  std::vector<std::vector<Range>> of(int64_t rows) const;
};

// Those of this config's run on `devices`; whole for a model without BatchNorm.
RowSets row_sets_of(const config::Config& config, int64_t devices);

// Whether each replica has statistics of its own.
bool has_local_statistics(const config::Config& config, int64_t devices);

// `rounding` above 0: the same function, otherwise rounded. Gradients are divided by the number of samples, not the
// loss, and each weight is off by an epsilon in forward and backward, as another order of the sums that it takes part
// in makes it; to which side is drawn anew for each step and each number.
std::unique_ptr<strategy::Strategy> make_reference(const strategy::Context& context, const RowSets& sets,
                                                   int64_t rounding);

}  // namespace mgt::verify
