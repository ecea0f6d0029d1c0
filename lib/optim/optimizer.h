// Optimizers over flat ranges of parameters: one call updates the whole range in a few operations, whatever tensors lie
// in it. Learning rates come from outside with each step. An Optimizer belongs to one rank; ranks that call `step` with
// equal inputs stay equal to the bit.
#pragma once

#include "core/split.h"

#include <ATen/core/Tensor.h>

#include <span>
#include <string>
#include <vector>

namespace mgt::optim {

// The flat range that an optimizer updates.
struct Subject {
  at::Tensor parameters;
  std::vector<Range> decaying;  // where weight decay acts
};

// All of it, and decaying.
inline Subject whole(const at::Tensor& parameters) { return {parameters, {{0, parameters.numel()}}}; }

// Memory that an optimizer keeps for each parameter, laid out as the parameters.
struct StateTensor {
  std::string name;  // "momentum", "exp_avg"
  at::Tensor flat;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // `parameters` are those that it was made for; `gradients` is the true mean gradient, in the layout of `parameters`;
  // it may be used as scratch space. `done`: the steps before this one; with `state`, all that an optimizer remembers.
  virtual void step(at::Tensor& parameters, at::Tensor& gradients, double lr, int64_t done) = 0;
  virtual std::vector<StateTensor> state() { return {}; }
};

// Weight decay over the elements that it acts on: gradients += decay * parameters
void add_decay(at::Tensor& gradients, const at::Tensor& parameters, std::span<const Range> decaying, double decay);

// The same apart from the gradients: parameters *= 1 - share
void shrink(at::Tensor& parameters, std::span<const Range> decaying, double share);

}  // namespace mgt::optim
