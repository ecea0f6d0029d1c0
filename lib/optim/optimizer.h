// Optimizers over flat ranges of parameters: one call updates the whole range in a few operations, whatever tensors lie
// in it. Learning rates come from outside with each step. An Optimizer belongs to one rank; ranks that call `step` with
// equal inputs stay equal to the bit.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace mgt::optim {

// Memory that an optimizer keeps for each parameter, laid out as the parameters.
struct StateTensor {
  std::string name;  // "momentum", "exp_avg"
  at::Tensor flat;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // `gradients` is the true mean gradient, in the layout of `parameters`; it may be used as scratch space.
  virtual void step(at::Tensor& parameters, at::Tensor& gradients, double lr) = 0;
  virtual std::vector<StateTensor> state() { return {}; }
};

}  // namespace mgt::optim
