// What every strategy does on one device: a replica, its optimizer, and the two halves of a step. Also the evaluation.
// A Worker belongs to the thread that drives its device.
#pragma once

#include "data/dataset.h"
#include "model/replica.h"
#include "optim/clip.h"
#include "optim/optimizer.h"
#include "strategy/entry.h"
#include "strategy/parts/flat_slices.h"
#include "strategy/parts/step_count.h"
#include "strategy/parts/virtual_shards.h"

#include <memory>
#include <optional>
#include <vector>

namespace mgt::strategy {

class Worker {
 public:
  Worker(const Context& context, at::Device device);
  Worker(const Context& context, at::Device device, Range blocks);  // only these blocks of the model

  model::Replica& replica() { return replica_; }
  optim::Optimizer& optimizer() { return *optimizer_; }

  // Clears the gradients, runs forward and backward over `batch` in `pieces`, and leaves the gradient of (sum of the
  // samples' losses) / `samples` in the replica. Returns that quotient. An empty batch gives zero gradients and 0.
  // `statistics`: how BatchNorm sums over the replicas; used where the model is `sync_statistics`.
  double compute_gradients(const data::Batch& batch, int64_t samples, int64_t pieces,
                           const model::SumOverReplicas& statistics = {});

  // One piece of it: adds to the gradients that are there.
  double add_gradients(const data::Batch& piece, int64_t samples, const model::SumOverReplicas& statistics = {});

  // The same along the tree of virtual shards: the gradient and the loss summed over the shards of `shards`' owner, of
  // a global batch of `samples`. Running statistics follow shard 0, so that its owner has them whoever owns the others.
  double compute_gradients(const data::Batch& own, int64_t samples, const VirtualShards& shards);

  std::vector<NamedTensor> parameters() const;  // the leaves, for a Probe

  // Of the gradient that is there; 0 for a replica without parameters.
  double sum_of_squares() const;

  // Clips, where the config says so, and makes the optimizer's step. `global_norm` is that of the whole gradient.
  void update(double lr, double global_norm);

  // Parameters, buffers and optimizer state of this replica; the count of steps is primary where the first block is.
  std::vector<model::StateSlice> state(bool primary);

 private:
  model::Replica replica_;
  std::vector<Overlap> overlaps_;  // of the whole unit
  std::unique_ptr<optim::Optimizer> optimizer_;
  StepCount steps_;
  optim::Clip clip_;
};

// Backward of (sum of the samples' losses) / `samples`; returns that quotient.
double backward(model::Loss loss, const at::Tensor& outputs, const at::Tensor& targets, int64_t samples);

// Correct and seen rows of this batch, in evaluation mode, without gradients.
EvalCounts count(const model::Replica& replica, const data::Batch& batch);

// Writes each primary slice into the slices of the same name that are not primary: all replicas become the first one.
// `kind`: only slices of this kind.
void copy_primary_to_replicas(std::vector<model::StateSlice> state,
                              std::optional<model::StateKind> kind = std::nullopt);

}  // namespace mgt::strategy
