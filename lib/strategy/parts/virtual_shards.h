// Results that do not depend on the number of devices, to the bit (`determinism: invariant`). The global batch is cut
// into V virtual shards, V a power of two, whatever the number of owners (any that divides V). Each shard's gradient is
// computed by itself, from rows of its own, so always with the same shapes and alignment; all are added along one fixed
// binary tree, losses too. An owner has consecutive shards, which are a subtree. No communicator's sum takes part:
// subtree sums travel as bits. Values; used by the owner's thread.
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

  Range own() const { return own_; }  // shards of this owner
  Range rows(int64_t rows) const;     // the owner's rows of a global batch of `rows`
  // The rows of one of the owner's shards; `own` are all of the owner's, of a global batch of `rows`. In memory of its
  // own, so that the place of a shard in a rank's batch cannot show in the result.
  data::Batch rows_of(int64_t shard, const data::Batch& own, int64_t rows) const;

  // Leaves in `gradients` the sum over the owner's shards; returns the sum of the losses.
  double sum(const data::Batch& own, int64_t rows, std::span<at::Tensor> gradients, const ShardGradient& compute) const;

 private:
  int64_t shards_;
  Range own_;
};

// The lower part of the tree: adds up what comes one shard after another, a power of two of them.
class TreeSum {
 public:
  void add(std::span<at::Tensor> gradients);   // of the next shard; leaves zeros
  void take(std::span<at::Tensor> gradients);  // leaves the sum of all that were added, which is forgotten

 private:
  struct Subtree {
    int64_t shards;
    std::vector<at::Tensor> gradients;
  };
  std::vector<Subtree> left_;  // complete ones that wait for their right neighbours, the largest first
};

// The upper part of the tree, over the subtrees of a power of two of owners, by owner.
at::Tensor tree_sum(std::span<const at::Tensor> parts);
double tree_sum(std::span<const double> parts);

// Adds the subtrees of all ranks: each of `parts` is gathered from every rank and summed along the tree. Every rank
// calls it with the same shapes.
void tree_sum_over_ranks(comm::Communicator& communicator, std::span<at::Tensor> parts);

// Where the config says `determinism: invariant`.
std::optional<VirtualShards> virtual_shards_of(const config::Config& config, int64_t owners, int64_t owner);

}  // namespace mgt::strategy
