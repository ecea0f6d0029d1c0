// How a rank of the data axis takes its rows of a step: in even pieces that fit into memory, or with `determinism:
// invariant` one virtual shard after another. A value.
#pragma once

#include "strategy/entry.h"
#include "strategy/parts/virtual_shards.h"

#include <optional>
#include <span>

namespace mgt::strategy {

class Pieces {
 public:
  Pieces(const Context& context, int64_t data_ranks, int64_t data_rank);

  Range rows(int64_t samples) const;     // this rank's, of a global batch of `samples`
  int64_t count(int64_t samples) const;  // the same on every rank
  data::Batch piece(const data::Batch& own, int64_t samples, int64_t index) const;

  bool along_tree() const { return virtual_shards_.has_value(); }
  // BatchNorm's running statistics follow every piece, but of virtual shards the first of all alone, whose owner has
  // them whoever owns the others.
  bool statistics_follow(int64_t index) const { return !along_tree() || virtual_shards_->own().begin + index == 0; }
  double sum(std::span<const double> losses) const;  // by piece

 private:
  int64_t data_ranks_;
  int64_t data_rank_;
  MicroBatch micro_batch_;
  std::optional<VirtualShards> virtual_shards_;
};

}  // namespace mgt::strategy
