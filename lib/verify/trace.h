// What a training run computed, step by step: the oracle's memory of a reference run. Values; torch tensors on the CPU.
#pragma once

#include "strategy/strategy.h"
#include "verify/findings.h"

#include <ATen/core/Tensor.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace mgt::verify {

using TensorsByName = std::map<std::string, at::Tensor>;

struct StepTrace {
  double loss = 0;
  TensorsByName gradients;                          // mean of the global batch, before the update
  std::map<model::StateKind, TensorsByName> state;  // after the update
};

struct Trace {
  std::vector<StepTrace> steps;
  std::vector<strategy::EvalCounts> evaluations;  // one an epoch
};

// The norm of all tensors taken together.
double norm_of(const TensorsByName& tensors);

Quantity quantity_of(model::StateKind kind);

// ||value - expected|| / max(||expected||, 1e-3 all), where `all` is the norm of all tensors of the kind: some true
// gradients are zero, such as that of a bias before BatchNorm. With the ratio, where the one is a multiple of the
// other.
Difference measure(const at::Tensor& value, const at::Tensor& expected, double all);
Difference measure(double value, double expected);

// Tensors whose gradient is smaller in every step than rounding makes the whole gradient differ.
std::set<std::string> zero_but_for_rounding(const Trace& trace);

// The largest difference over the steps between two runs, by quantity and tensor.
using Differences = std::map<std::pair<Quantity, std::string>, double>;
void compare(const Trace& value, const Trace& expected, Differences& differences);

}  // namespace mgt::verify
