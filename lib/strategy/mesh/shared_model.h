// A model, or a stretch of its blocks, on one rank of a data axis: forward and backward while its units are reduced,
// gathered and freed around them. In stage 3 a block's parameters are there only while it runs: gathered before its
// forward and again before its backward, freed after each. Belongs to one rank; its hooks run on the thread that runs
// backward. Every rank calls the same methods in the same order, also with no rows of its own.
#pragma once

#include "strategy/entry.h"
#include "strategy/mesh/shared_unit.h"
#include "strategy/mesh/sharing.h"
#include "strategy/parts/virtual_shards.h"

#include <optional>
#include <vector>

namespace mgt::strategy {

// Bytes that a rank keeps between steps, and the most that it has besides for a moment.
struct Resident {
  int64_t parameters = 0;
  int64_t gradients = 0;
  int64_t optimizer = 0;
  int64_t padding = 0;        // elements that are no parameters, as if each lay in one rank's parameters
  int64_t gathered_peak = 0;  // parameters of blocks that are not this rank's
  int64_t buckets_peak = 0;   // gradients on their way

  Resident& operator+=(const Resident& other);
};

class SharedModel {
 public:
  // `context` has the data axis as its communicator; `slices` joins the ranks with other slices of the same layers, or
  // is null.
  SharedModel(const Context& context, const Sharing& sharing, Range blocks, comm::Communicator* slices);

  // Through the blocks; `input` is of the first of them.
  at::Tensor forward(const at::Tensor& input, const model::ForwardContext& context);
  model::ForwardContext training(bool follows_statistics = true) const;
  model::ForwardContext evaluating() const;
  // A rank without rows takes part in what the others do around their blocks: by `pass_forward` and `pass_backward`,
  // or, where blocks themselves meet over the ranks, with empty tensors.
  bool joins_others() const { return replica_.model().sync_statistics; }
  void pass_forward();
  void pass_backward();

  // Gradients of a step: a backward between `begin_backward` and `end_backward` for each piece, `last` in the last,
  // then `finish_gradients`. With `determinism: invariant` the pieces are virtual shards, added along their tree.
  void begin_step();
  void begin_backward(bool last);
  void end_backward();
  void finish_gradients();

  // After that: of the global gradient where this rank has all of it, else of the part that it owns.
  at::Tensor gradient_norms() const;  // by tensor, or part of one; doubles
  // Where layers are cut, tensors that are not count on one of the slices' ranks.
  bool has_whole_gradients() const { return whole_gradients_ || !sharing_.shares_optimizer(); }

  void update(double lr, double global_norm, int64_t done);  // after `done` steps

  model::Replica& replica() { return replica_; }
  std::vector<NamedTensor> parameters();  // what this rank updates, with its gradients, for a Probe
  std::vector<model::StateSlice> state();
  void state_loaded();

  Resident resident() const;
  int64_t units() const { return static_cast<int64_t>(units_.size()); }
  int64_t reductions_in_backward() const { return reductions_in_backward_; }  // since construction

 private:
  void finish_reductions();
  std::vector<at::Tensor> whole_gradients() const;  // of each unit
  void enter(int64_t unit, int64_t direction);
  void leave(int64_t unit);
  void collected(int64_t slot);
  void reduce(int64_t unit);
  SharedUnit& unit(int64_t index) { return units_[static_cast<std::size_t>(index)]; }
  void note_memory();

  comm::Communicator& communicator_;
  Sharing sharing_;
  bool whole_gradients_;  // `determinism: invariant`
  TreeSum tree_;          // then
  model::Replica replica_;
  std::vector<SharedUnit> units_;  // hooks and optimizers know their places: never moved once all are made
  std::vector<std::optional<int64_t>> unit_of_block_;  // in stage 3; blocks without parameters have none
  comm::Communicator* slices_;
  model::SumOverReplicas statistics_;
  model::SumOverReplicas sum_of_slices_;
  std::vector<int64_t> reducing_;  // units whose reduction is on its way, the oldest first
  int64_t reductions_in_backward_ = 0;
  int64_t gathered_peak_ = 0;
  int64_t buckets_peak_ = 0;
};

}  // namespace mgt::strategy
