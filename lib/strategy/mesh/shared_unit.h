// One unit of the model on one rank of a data axis: its parameters, its gradients, its part of the optimizer, and the
// collectives that keep them true. What the rank owns is the whole unit in stage 0, else the slice of its rank; units
// are padded, so that slices are equal. Belongs to one rank; every rank calls the same methods in the same order.
#pragma once

#include "comm/communicator.h"
#include "model/replica.h"
#include "optim/clip.h"
#include "optim/optimizer.h"
#include "strategy/entry.h"
#include "strategy/mesh/sharing.h"
#include "strategy/parts/flat_slices.h"

#include <memory>
#include <span>
#include <vector>

namespace mgt::strategy {

class SharedUnit {
 public:
  // Takes the unit's initial values from rank 0. `whole_gradients`: gradients stay whole on every rank, whatever the
  // stage, and are reduced by the caller. `owns_whole`: of the ranks that have slices of the model, the one that
  // saves and counts what is not cut.
  SharedUnit(const Context& context, const Sharing& sharing, model::Replica& replica, int64_t index,
             bool whole_gradients, bool owns_whole);
  SharedUnit(SharedUnit&&) = default;

  // Gradients of a step. `begin_piece` before each backward: `reduces` says whether its gradients are to be reduced.
  // `collect` when backward has made the gradient of a slot; it tells whether that was the unit's last.
  void begin_step();
  void begin_piece(bool reduces);
  bool collect(int64_t slot);
  bool is_complete() const { return missing_ == 0; }
  bool wants_reduction() const { return reduces_; }
  void start_reduction();   // of what is there, once a piece
  void finish_reduction();  // own gradients are sums over the ranks; the rest is freed where gradients are shared out

  // Parameters that are shared out: there between `finish_gather` and `release`.
  void start_gather();  // where they are not there or on their way
  void finish_gather();
  void release();

  void update(double lr, double global_norm, int64_t done);  // of what this rank owns, after `done` steps
  void start_sharing_update();                               // makes the owners' new values everyone's
  void finish_sharing_update() { finish_gather(); }

  // Parameters and optimizer state are others now: rank 0's where they are replicated, each owner's where they are not.
  void state_loaded();
  std::vector<model::StateSlice> state();

  std::vector<Overlap> everything() const { return overlaps(slots(), {0, size_}, owns_whole_); }
  std::span<const Overlap> own() const { return own_; }
  const at::Tensor& own_parameters() const { return own_parameters_; }
  const at::Tensor& own_gradients() const { return own_gradients_; }
  const at::Tensor& whole_gradients() const { return gradients_; }

  int64_t parameter_bytes() const;  // kept between steps
  int64_t gradient_bytes() const;
  int64_t optimizer_bytes() const;
  int64_t padding() const { return padding_; }  // elements of the unit that are no parameters
  int64_t gathered_bytes() const;               // of parameters that are there for a moment
  int64_t bucket_bytes() const;                 // of gradients that are there for a moment

 private:
  std::span<const model::Slot> slots() const;
  void make_gradient_memory();
  void move_to_bucket(int64_t slot);
  void keep_own_part();
  void gather_into(const at::Tensor& target);
  static void wait_for(std::vector<comm::Work>& works);

  comm::Communicator& communicator_;
  Sharing sharing_;
  model::Replica& replica_;
  int64_t index_;
  bool whole_gradients_;
  bool owns_whole_;  // tensors that are not cut
  optim::Clip clip_;
  int64_t size_;  // elements, padding included
  Range owned_;   // of them
  int64_t padding_ = 0;
  std::vector<Overlap> own_;
  at::Tensor gathered_;        // the unit's memory, under a name whose writing autograd does not notice
  at::Tensor own_parameters_;  // a view of the unit's memory, or in stage 3 memory of its own
  at::Tensor gradients_;       // of the whole unit; where they are shared out only while they are collected
  at::Tensor own_gradients_;   // a view of gradients_, or memory of its own
  at::Tensor reduced_;         // what a reduction brings: own_gradients_, or memory of its own to be added to them
  at::Tensor host_parameters_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  int64_t missing_ = 0;  // gradients of this piece that are not there yet
  bool reduces_ = false;
  bool has_own_ = false;  // own_gradients_ has a part of this step already
  std::vector<comm::Work> reductions_;
  std::vector<comm::Work> gathers_;
};

}  // namespace mgt::strategy
