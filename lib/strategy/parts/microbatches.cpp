#include "strategy/parts/microbatches.h"

#include "core/split.h"

#include "torch_pch.h"

#include <algorithm>

namespace mgt::strategy {

int64_t pieces_of(int64_t rows, int64_t shards, const MicroBatch& micro_batch) {
  const int64_t own = std::max<int64_t>(1, divided_up(rows, shards));
  const int64_t full = divided_up(micro_batch.batch_size, shards);
  return std::min({divided_up(micro_batch.accumulate * own, full), micro_batch.accumulate, own});
}

data::Batch piece_of(const data::Batch& batch, int64_t pieces, int64_t piece) {
  const Range rows = split(batch.size(), pieces, piece);
  return data::slice(batch, rows.begin, rows.end, batch.inputs.device());
}

}  // namespace mgt::strategy
