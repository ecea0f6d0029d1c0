#include "verify/trace.h"

#include "torch_pch.h"

#include <algorithm>
#include <cmath>

namespace mgt::verify {
namespace {

constexpr double kFloor = 1e-3;

// The multiple of the expected values that the values are, if they are one.
std::optional<double> ratio_of(const at::Tensor& value, const at::Tensor& expected, double norm) {
  if (norm == 0) return std::nullopt;
  const double ratio = value.dot(expected).item<double>() / (norm * norm);
  const double rest = (value - expected * ratio).norm().item<double>();
  return rest <= 1e-6 * norm ? std::optional(ratio) : std::nullopt;
}

void widen(Differences& differences, Quantity quantity, const std::string& tensor, const Difference& difference) {
  double& largest = differences[{quantity, tensor}];
  largest = std::max(largest, difference.size);
}

void compare(Quantity quantity, const TensorsByName& value, const TensorsByName& expected, Differences& differences) {
  const double all = norm_of(expected);
  for (const auto& [name, tensor] : expected) {
    widen(differences, quantity, name, measure(value.at(name), tensor, all));
  }
}

}  // namespace

double norm_of(const TensorsByName& tensors) {
  double sum = 0;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.is_floating_point()) continue;  // a counter says nothing of the others' size
    const double norm = tensor.to(at::kDouble).norm().item<double>();
    sum += norm * norm;
  }
  return std::sqrt(sum);
}

Quantity quantity_of(model::StateKind kind) {
  if (kind == model::StateKind::parameter) return Quantity::parameters;
  return kind == model::StateKind::buffer ? Quantity::buffers : Quantity::optimizer_state;
}

Difference measure(const at::Tensor& value, const at::Tensor& expected, double all) {
  const at::NoGradGuard no_grad;
  const at::Tensor a = value.detach().cpu().to(at::kDouble).reshape({-1});
  const at::Tensor b = expected.to(at::kDouble).reshape({-1});
  const double norm = b.norm().item<double>();
  const double distance = (a - b).norm().item<double>();
  if (distance == 0) return {};
  return {.size = distance / std::max(norm, kFloor * all), .ratio = ratio_of(a, b, norm)};
}

Difference measure(double value, double expected) {
  if (value == expected) return {};
  Difference difference{.size = std::abs(value - expected) / std::abs(expected)};
  if (expected != 0) difference.ratio = value / expected;
  return difference;
}

std::set<std::string> zero_but_for_rounding(const Trace& trace) {
  constexpr double kRounding = 1e-5;  // fp32's, over a chain of layers; no gradient that trains anything is as small
  std::set<std::string> names;
  for (const auto& [name, gradient] : trace.steps.front().gradients) names.insert(name);
  for (const StepTrace& step : trace.steps) {
    const double all = norm_of(step.gradients);
    std::erase_if(names, [&](const std::string& name) {
      const at::Tensor& gradient = step.gradients.at(name);
      const double rounding = gradient.scalar_type() == at::kDouble ? kRounding * kRounding : kRounding;
      return gradient.to(at::kDouble).norm().item<double>() > rounding * all;
    });
  }
  return names;
}

void compare(const Trace& value, const Trace& expected, Differences& differences) {
  for (std::size_t step = 0; step < expected.steps.size(); ++step) {
    const StepTrace &a = value.steps.at(step), &b = expected.steps[step];
    widen(differences, Quantity::loss, "", measure(a.loss, b.loss));
    widen(differences, Quantity::gradient_norm, "", measure(norm_of(a.gradients), norm_of(b.gradients)));
    compare(Quantity::gradients, a.gradients, b.gradients, differences);
    for (const auto& [kind, tensors] : b.state) compare(quantity_of(kind), a.state.at(kind), tensors, differences);
  }
}

}  // namespace mgt::verify
