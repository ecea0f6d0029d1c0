// Weight decay over the ranges of elements that it acts on. Pure functions.
#pragma once

#include "core/split.h"

#include <ATen/core/Tensor.h>

#include <span>

namespace mgt::optim {

// gradients += decay * parameters
void add_decay(at::Tensor& gradients, const at::Tensor& parameters, std::span<const Range> decaying, double decay);

// parameters *= 1 - share
void shrink(at::Tensor& parameters, std::span<const Range> decaying, double share);

}  // namespace mgt::optim
