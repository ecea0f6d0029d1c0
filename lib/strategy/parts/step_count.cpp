#include "strategy/parts/step_count.h"

#include "torch_pch.h"

namespace mgt::strategy {

StepCount::StepCount() : count_(at::zeros({}, at::kLong)) {}

int64_t StepCount::done() const { return count_.item<int64_t>(); }

void StepCount::advance() { count_.add_(1); }

model::StateSlice StepCount::slice(bool primary) const {
  return model::whole("optimizer.steps", model::StateKind::optimizer, count_, primary);
}

void StepCount::take_from_first(comm::Communicator& communicator, at::Device device) {
  at::Tensor count = count_.to(device);
  communicator.broadcast(count, 0).wait();
  count_.copy_(count);
}

}  // namespace mgt::strategy
