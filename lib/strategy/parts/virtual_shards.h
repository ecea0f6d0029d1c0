// Results that do not depend on the number of devices, to the bit (`determinism: invariant`). The global batch is cut
// into V virtual shards, V a power of two, whatever the number of owners (any that divides V). Each shard's gradient is
// computed by itself, from rows of its own, so always with the same shapes and alignment; all are added along one fixed
// binary tree. An owner has consecutive shards, which are a subtree. No communicator's sum takes part: subtree sums
// travel as bits. Values; used by the owner's thread.
#pragma once

#include "comm/communicator.h"
#include "core/split.h"
#include "data/dataset.h"

#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace mgt::config {
class Config;
}

namespace mgt::strategy {

// Adds this shard's gradients to tensors that are zero, and returns its part of the loss. Called for empty shards too.
using ShardGradient = std::function<double(int64_t shard, const data::Batch& rows)>;

class VirtualShards {
 public:
  VirtualShards(int64_t shards, int64_t owners, int64_t owner);

  // The owner's rows of a global batch of `rows`.
  Range rows(int64_t rows) const;

  // Leaves in `gradients` the sum over the owner's shards of a global batch of `rows`; returns the sum of the losses.
  // `own` are the owner's rows.
  double sum(const data::Batch& own, int64_t rows, std::span<at::Tensor> gradients, const ShardGradient& compute) const;

 private:
  double subtree(Range shards, const data::Batch& own, int64_t rows, std::span<at::Tensor> gradients,
                 const ShardGradient& compute) const;

  int64_t shards_;
  Range own_;  // shards of this owner
};

// The upper part of the tree, over the subtrees of a power of two of owners, by owner.
at::Tensor tree_sum(std::span<const at::Tensor> parts);
double tree_sum(std::span<const double> parts);

// Adds the subtrees of all ranks: each of `gradients` is gathered from every rank and summed along the tree. Returns
// the same sum of `loss`. Every rank calls it with the same shapes.
double sum_over_ranks(comm::Communicator& communicator, std::span<at::Tensor> gradients, double loss);

// Where the config says `determinism: invariant`.
std::optional<VirtualShards> virtual_shards_of(const config::Config& config, int64_t owners, int64_t owner);

}  // namespace mgt::strategy
