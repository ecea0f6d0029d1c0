// How a rank takes its rows of a global batch in pieces that fit into memory (`accumulate`, `micro_batch`); gradients
// add up over the pieces, and are divided once by the samples of the whole step. Pure functions.
#pragma once

#include "data/dataset.h"

#include <cstdint>

namespace mgt::strategy {

constexpr int64_t divided_up(int64_t count, int64_t by) { return (count + by - 1) / by; }

constexpr int64_t kPiecesInPipeline = 4;  // of a rank's rows, where the config does not say

// The part of its rows that a rank takes at once.
struct MicroBatch {
  int64_t batch_size = 1;  // rows of a full batch, over all ranks
  int64_t accumulate = 1;  // pieces of it; a rank with fewer rows takes them one by one
};

// The number of pieces that each of `shards` ranks cuts its rows of a global batch of `rows` into: the same on all
// ranks, whose collectives must match. A short last batch has fewer in proportion, none larger than those of a full
// one.
int64_t pieces_of(int64_t rows, int64_t shards, const MicroBatch& micro_batch);

// The `piece`-th of `pieces`: sizes differ by at most one, and may be 0.
data::Batch piece_of(const data::Batch& batch, int64_t pieces, int64_t piece);

}  // namespace mgt::strategy
