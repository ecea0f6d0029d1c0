// Where a rank stands in the mesh: data x pipeline x tensor = world, and whom it talks to along each axis. Ranks count
// slices first, then places on the data axis, then stages. Belongs to one rank; every rank makes it at the same time,
// since communicators split.
#pragma once

#include "comm/communicator.h"

#include <memory>

namespace mgt::strategy {

class Axes {
 public:
  // stages x slices divides the size of the world.
  Axes(comm::Communicator& world, int64_t stages, int64_t slices);

  comm::Communicator& world() { return world_; }
  comm::Communicator& data() { return data_ ? *data_ : world_; }  // ranks with the same stage and slice
  // Ranks with the same rows, by stage: one lane for activations, one for gradients, so that messages of the two
  // directions need no common order.
  comm::Communicator& activations() { return *activations_; }
  comm::Communicator& gradients() { return *gradients_; }

  comm::Communicator* slices() { return tensor_.get(); }  // ranks with the same layers and rows; null: this one alone

  int64_t slice() const { return slice_; }
  int64_t stages() const { return stages_; }
  int64_t stage() const { return stage_; }
  bool is_first_of_data() { return data().rank() == 0; }

  int64_t bytes_sent() const;  // along axes that are not the world's

 private:
  comm::Communicator& world_;
  int64_t stages_;
  int64_t stage_;
  int64_t slice_;
  std::unique_ptr<comm::Communicator> data_;  // absent where it is the world
  std::unique_ptr<comm::Communicator> activations_;
  std::unique_ptr<comm::Communicator> gradients_;
  std::unique_ptr<comm::Communicator> tensor_;
};

}  // namespace mgt::strategy
