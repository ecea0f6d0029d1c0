// How a rank takes its rows of a global batch in pieces that fit into memory (`accumulate`, `micro_batch`); gradients
// add up over the pieces, and are divided once by the samples of the whole step. Pure functions.
#pragma once

#include "data/dataset.h"

#include <cstdint>

namespace mgt::strategy {

constexpr int64_t divided_up(int64_t count, int64_t by) { return (count + by - 1) / by; }

// The number of pieces that each of `shards` ranks cuts its rows of a global batch of `rows` into, so that none is
// larger than `micro_batch`: the same on all ranks, whose collectives must match. A short last batch has fewer.
int64_t pieces_of(int64_t rows, int64_t shards, int64_t micro_batch);

// The `piece`-th of `pieces`: sizes differ by at most one, and may be 0.
data::Batch piece_of(const data::Batch& batch, int64_t pieces, int64_t piece);

}  // namespace mgt::strategy
