// Stochastic gradient descent with momentum, dampening, Nesterov and weight decay; the formulas of torch.optim.SGD.
#include "optim/entry.h"

#include "torch_pch.h"

namespace mgt::optim::sgd {
namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(const config::Section& section, const Subject& subject)
      : momentum_(section.number("momentum")),
        dampening_(section.number("dampening")),
        weight_decay_(section.number("weight_decay")),
        nesterov_(section.boolean("nesterov")),
        decaying_(subject.decaying) {
    if (momentum_ > 0) velocity_ = at::zeros_like(subject.parameters);
  }

  void step(at::Tensor& parameters, at::Tensor& gradients, double lr, int64_t done) override {
    add_decay(gradients, parameters, decaying_, weight_decay_);
    if (!velocity_.defined()) {
      parameters.add_(gradients, -lr);
      return;
    }
    // The first momentum is the gradient itself, without dampening.
    velocity_.mul_(momentum_).add_(gradients, done == 0 ? 1.0 : 1.0 - dampening_);
    if (nesterov_)
      parameters.add_(gradients.add_(velocity_, momentum_), -lr);
    else
      parameters.add_(velocity_, -lr);
  }

  std::vector<StateTensor> state() override {
    if (!velocity_.defined()) return {};
    return {{"momentum", velocity_}};
  }

 private:
  double momentum_;
  double dampening_;
  double weight_decay_;
  bool nesterov_;
  std::vector<Range> decaying_;
  at::Tensor velocity_;
};

std::unique_ptr<Optimizer> make(const config::Section& section, const Subject& subject) {
  return std::make_unique<Sgd>(section, subject);
}

void check(const config::Config& config) {
  const config::Section& section = config.section("optimizer");
  if (!section.boolean("nesterov")) return;
  if (section.number("momentum") == 0) {
    config.error_at("optimizer.nesterov", "needs optimizer.momentum > 0; set it or leave nesterov out");
  }
  if (section.number("dampening") != 0) {
    config.error_at("optimizer.nesterov", "needs optimizer.dampening 0");
  }
}

}  // namespace

extern const Entry entry;
const Entry entry = {
    .variant = {.name = "sgd",
                .summary = "stochastic gradient descent",
                .options = {config::number("momentum", 0.0, "share of the last update kept",
                                           {.at_least = 0, .below = 1}, {0.9}),
                            config::number("dampening", 0.0, "share of the gradient kept out of the momentum",
                                           {.at_least = 0, .at_most = 1}, {0.5}),
                            config::number("weight_decay", 0.0, "times the parameters, added to the gradient",
                                           {.at_least = 0}, {5e-4}),
                            config::boolean("nesterov", false, "look ahead along the momentum")},
                .check = check},
    .make = make,
};

}  // namespace mgt::optim::sgd
