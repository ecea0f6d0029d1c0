// How many steps an optimizer has made. It is part of the state, since Adam's corrections and SGD's first momentum
// depend on it: one logical tensor "optimizer.steps", whatever units, parts and ranks share out the rest. Belongs to
// its rank.
#pragma once

#include "comm/communicator.h"
#include "model/state.h"

namespace mgt::strategy {

class StepCount {
 public:
  StepCount();
  int64_t done() const;
  void advance();
  model::StateSlice slice(bool primary) const;

  // Takes rank 0's count; `device`: where the communicator takes tensors from. Every rank calls it.
  void take_from_first(comm::Communicator& communicator, at::Device device);

 private:
  at::Tensor count_;  // int64, on the host
};

}  // namespace mgt::strategy
