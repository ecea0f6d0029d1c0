#include "optim/optimizer.h"

#include "torch_pch.h"

namespace mgt::optim {
namespace {

at::Tensor part(const at::Tensor& tensor, const Range& range) {
  return tensor.view({-1}).narrow(0, range.begin, range.size());
}

}  // namespace

void add_decay(at::Tensor& gradients, const at::Tensor& parameters, std::span<const Range> decaying, double decay) {
  if (decay == 0) return;
  for (const Range& range : decaying) part(gradients, range).add_(part(parameters, range), decay);
}

void shrink(at::Tensor& parameters, std::span<const Range> decaying, double share) {
  if (share == 0) return;
  for (const Range& range : decaying) part(parameters, range).mul_(1.0 - share);
}

}  // namespace mgt::optim
