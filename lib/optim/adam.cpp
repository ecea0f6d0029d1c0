#include "optim/adam.h"

#include "torch_pch.h"

#include <cmath>

namespace mgt::optim {
namespace {

class Adam final : public Optimizer {
 public:
  Adam(const config::Section& section, const Subject& subject, Decay decay)
      : beta1_(section.numbers("betas")[0]),
        beta2_(section.numbers("betas")[1]),
        epsilon_(section.number("eps")),
        weight_decay_(section.number("weight_decay")),
        decay_(decay),
        decaying_(subject.decaying),
        exp_avg_(at::zeros_like(subject.parameters)),
        exp_avg_sq_(at::zeros_like(subject.parameters)) {}

  void step(at::Tensor& parameters, at::Tensor& gradients, double lr, int64_t done) override {
    const auto steps = static_cast<double>(done + 1);
    if (decay_ == Decay::decoupled)
      shrink(parameters, decaying_, lr * weight_decay_);
    else
      add_decay(gradients, parameters, decaying_, weight_decay_);
    exp_avg_.lerp_(gradients, 1.0 - beta1_);
    exp_avg_sq_.mul_(beta2_).addcmul_(gradients, gradients, 1.0 - beta2_);
    const double correction1 = 1.0 - std::pow(beta1_, steps);
    const double correction2 = 1.0 - std::pow(beta2_, steps);
    const at::Tensor denominator = exp_avg_sq_.sqrt().div_(std::sqrt(correction2)).add_(epsilon_);
    parameters.addcdiv_(exp_avg_, denominator, -lr / correction1);
  }

  std::vector<StateTensor> state() override { return {{"exp_avg", exp_avg_}, {"exp_avg_sq", exp_avg_sq_}}; }

 private:
  double beta1_;
  double beta2_;
  double epsilon_;
  double weight_decay_;
  Decay decay_;
  std::vector<Range> decaying_;
  at::Tensor exp_avg_;
  at::Tensor exp_avg_sq_;
};

template <Decay decay>
std::unique_ptr<Optimizer> make_adam(const config::Section& section, const Subject& subject) {
  return std::make_unique<Adam>(section, subject, decay);
}

}  // namespace

Entry adam_entry(const std::string& name, const std::string& summary, double weight_decay, Decay decay) {
  return {.variant = {.name = name,
                      .summary = summary,
                      .options = {{.key = "betas",
                                   .kind = config::Kind::numbers,
                                   .fallback = std::vector<double>{0.9, 0.999},
                                   .help = "decay of the running mean and of the running square",
                                   .bounds = {.at_least = 0, .below = 1},
                                   .length = 2,
                                   .examples = {std::vector<double>{0.8, 0.9}}},
                                  config::number("eps", 1e-8, "added to the denominator", {.at_least = 0}, {1e-4}),
                                  config::number("weight_decay", weight_decay, "decay of the parameters",
                                                 {.at_least = 0}, {0.1})}},
          .make = decay == Decay::decoupled ? make_adam<Decay::decoupled> : make_adam<Decay::in_gradient>};
}

}  // namespace mgt::optim
