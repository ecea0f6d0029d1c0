#include "strategy/mesh/axes.h"

#include "core/error.h"

namespace mgt::strategy {

Axes::Axes(comm::Communicator& world, int64_t stages, int64_t slices) : world_(world), stages_(stages) {
  require(world.size() % (stages * slices) == 0, "stages and slices divide the world");
  const int64_t data_ranks = world.size() / (stages * slices);
  slice_ = world.rank() % slices;
  stage_ = world.rank() / (data_ranks * slices);
  const int64_t place = world.rank() / slices % data_ranks;
  if (stages * slices > 1) data_ = world.split(stage_ * slices + slice_);
  if (stages > 1) {
    activations_ = world.split(place * slices + slice_);
    gradients_ = world.split(place * slices + slice_);
  }
  if (slices > 1) tensor_ = world.split(stage_ * data_ranks + place);
}

int64_t Axes::bytes_sent() const {
  int64_t bytes = 0;
  for (const auto* axis : {&data_, &activations_, &gradients_, &tensor_}) {
    if (*axis) bytes += (*axis)->ledger().total().bytes_sent;
  }
  return bytes;
}

}  // namespace mgt::strategy
