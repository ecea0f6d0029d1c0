#include "strategy/parts/microbatches.h"

#include "core/split.h"

#include "torch_pch.h"

#include <algorithm>

namespace mgt::strategy {
namespace {

int64_t divided_up(int64_t count, int64_t by) { return (count + by - 1) / by; }

}  // namespace

int64_t pieces_of(int64_t rows, int64_t shards, int64_t micro_batch) {
  return std::max<int64_t>(1, divided_up(divided_up(rows, shards), micro_batch));
}

data::Batch piece_of(const data::Batch& batch, int64_t pieces, int64_t piece) {
  const Range rows = split(batch.size(), pieces, piece);
  return data::slice(batch, rows.begin, rows.end, batch.inputs.device());
}

}  // namespace mgt::strategy
