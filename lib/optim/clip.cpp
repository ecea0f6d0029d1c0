#include "optim/clip.h"

#include "torch_pch.h"

#include <cmath>

namespace mgt::optim {
namespace {

constexpr double kEpsilon = 1e-6;  // PyTorch's: it shows in the weights, at 7e-8

std::optional<double> given(const config::Section& section, const std::string& key) {
  return section.has(key) ? std::optional(section.number(key)) : std::nullopt;
}

}  // namespace

config::SectionSpec clip_section() {
  return {
      .key = "clip",
      .summary = "How large a gradient may be.",
      .main_key = "norm",
      .options = {config::number("norm", {}, "Largest norm of the global gradient; a longer one is shortened to it.",
                                 {.above = 0}),
                  config::number("value", {}, "Largest size of one value of the gradient.", {.above = 0})}};
}

Clip clip_of(const config::Config& config) {
  const config::Section& section = config.section("clip");
  return {.norm = given(section, "norm"), .value = given(section, "value")};
}

at::Tensor norms(std::span<const at::Tensor> parts) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> norms;
  for (const at::Tensor& part : parts) norms.push_back(part.norm());
  return norms.empty() ? at::empty({0}, at::kDouble) : at::stack(norms).to(at::kCPU, at::kDouble);
}

double sum_of_squares(std::span<const at::Tensor> parts) { return norms(parts).square().sum().item<double>(); }

void clip(at::Tensor& part, const Clip& clip, double global_norm) {
  if (clip.norm) {
    const double factor = *clip.norm / (global_norm + kEpsilon);
    if (factor < 1) part.mul_(factor);
  }
  if (clip.value) part.clamp_(-*clip.value, *clip.value);
}

}  // namespace mgt::optim
