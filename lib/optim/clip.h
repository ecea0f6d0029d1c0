// Clipping of gradients before an update: by the norm of the whole gradient, as torch.nn.utils.clip_grad_norm_, or by
// value, as clip_grad_value_. Values and pure functions; ranks with equal inputs get equal results.
#pragma once

#include "config/config.h"

#include <ATen/core/Tensor.h>

#include <optional>
#include <span>

namespace mgt::optim {

struct Clip {
  std::optional<double> norm;   // the largest L2 norm that the global gradient may have
  std::optional<double> value;  // the largest size of one of its values
};

// The `clip` section of the schema, and its typed form.
config::SectionSpec clip_section();
Clip clip_of(const config::Config& config);

// Of these parts of a gradient, one double each, on the CPU; and the sum of their squares. Padding that is zero may be
// among them.
at::Tensor norms(std::span<const at::Tensor> parts);
double sum_of_squares(std::span<const at::Tensor> parts);

// Clips a part of a gradient whose global norm is `global_norm`: by the norm it is multiplied by
// min(1, clip.norm / (global_norm + 1e-6)).
void clip(at::Tensor& part, const Clip& clip, double global_norm);

}  // namespace mgt::optim
