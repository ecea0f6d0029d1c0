#include "strategy/parts/microbatches.h"

#include "core/split.h"

#include "torch_pch.h"

#include <algorithm>

namespace mgt::strategy {
int64_t pieces_of(int64_t rows, int64_t shards, int64_t micro_batch) {
  return std::max<int64_t>(1, divided_up(divided_up(rows, shards), micro_batch));
}

data::Batch piece_of(const data::Batch& batch, int64_t pieces, int64_t piece) {
  const Range rows = split(batch.size(), pieces, piece);
  return data::slice(batch, rows.begin, rows.end, batch.inputs.device());
}

}  // namespace mgt::strategy
