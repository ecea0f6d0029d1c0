#include "strategy/mesh/axes.h"

#include "core/error.h"

namespace mgt::strategy {

Axes::Axes(comm::Communicator& world, int64_t stages) : world_(world), stages_(stages) {
  require(world.size() % stages == 0, "the stages divide the world");
  const int64_t data_ranks = world.size() / stages;
  stage_ = world.rank() / data_ranks;
  if (stages == 1) return;
  data_ = world.split(stage_);
  activations_ = world.split(world.rank() % data_ranks);
  gradients_ = world.split(world.rank() % data_ranks);
}

int64_t Axes::bytes_sent() const {
  int64_t bytes = 0;
  for (const auto* axis : {&data_, &activations_, &gradients_}) {
    if (*axis) bytes += (*axis)->ledger().total().bytes_sent;
  }
  return bytes;
}

}  // namespace mgt::strategy
