// Weight decay under every strategy against updates computed by hand: with `no_decay`, biases and the parameters of
// normalization layers, tensors of one dimension, have none.
#include "test.h"
#include "training.h"

#include "core/text.h"
#include "model/entry.h"

#include "torch_pch.h"

#include <functional>
#include <map>
#include <mutex>

using namespace mgt;

namespace {

constexpr double kLr = 0.1, kDecay = 0.3;

struct Way {
  std::string strategy;  // YAML
  int64_t devices;
};

const std::vector<Way> kWays = {{"single", 1},
                                {"scratch", 2},
                                {"data_parallel", 2},
                                {"layer_split", 2},
                                {"ddp", 2},
                                {"{name: zero, stage: 1, bucket_mb: 0.01}", 3},
                                {"{name: zero, stage: 2, bucket_mb: 0.01}", 4},
                                {"{name: zero, stage: 3}", 3}};

using Update = std::function<at::Tensor(const at::Tensor& parameter, const at::Tensor& gradient, double decay)>;

struct Rule {
  std::string optimizer;
  Update first;  // the first step's new value
};

// Adam's first step goes as far as the learning rate, whatever the gradient's size.
at::Tensor direction(const at::Tensor& gradient) { return gradient / (gradient.abs() + 1e-8); }

std::vector<Rule> rules() {
  return {{"sgd", [](const at::Tensor& p, const at::Tensor& g, double decay) { return p - kLr * (g + decay * p); }},
          {"adam",
           [](const at::Tensor& p, const at::Tensor& g, double decay) { return p - kLr * direction(g + decay * p); }},
          {"adamw", [](const at::Tensor& p, const at::Tensor& g, double decay) {
             return p * (1 - kLr * decay) - kLr * direction(g);
           }}};
}

// Compares what each replica, part or shard is after an update with what it must be.
class HandProbe final : public strategy::Probe {
 public:
  HandProbe(const Rule& rule, bool no_decay, const model::Model& model) : rule_(rule), no_decay_(no_decay) {
    for (const model::Block& block : model.blocks) {
      for (const model::TensorSpec& spec : block.parameters) dimensions_[spec.name] = spec.shape.size();
    }
  }

  void gradients_ready(int64_t replica, const Parameters& parameters) override {
    const at::NoGradGuard no_grad;
    for (const strategy::NamedTensor& parameter : parameters) {
      const bool decays = !no_decay_ || dimensions_.at(parameter.name) > 1;
      wanted_[{replica, parameter.name}] =
          rule_.first(parameter.tensor.detach(), parameter.tensor.grad(), decays ? kDecay : 0);
    }
  }

  void updated(int64_t replica, const Parameters& parameters) override {
    for (const strategy::NamedTensor& parameter : parameters) {
      // Where a master alone updates, the others have copies.
      const auto own = wanted_.find({replica, parameter.name});
      const at::Tensor& wanted = own != wanted_.end() ? own->second : wanted_.at({0, parameter.name});
      if (!at::allclose(parameter.tensor.detach(), wanted, 1e-12, 1e-13)) wrong += parameter.name + " ";
      ++compared;
    }
  }

  std::string wrong;
  int64_t compared = 0;

 private:
  const Rule& rule_;
  bool no_decay_;
  std::map<std::string, std::size_t> dimensions_;
  std::map<std::pair<int64_t, std::string>, at::Tensor> wanted_;
};

// Initial biases are zero, which no decay changes.
void fill_biases(std::vector<model::StateSlice>& state) {
  const at::NoGradGuard no_grad;
  for (model::StateSlice& slice : state) {
    if (slice.kind == model::StateKind::parameter && slice.global.size() == 1) slice.view.add_(0.5);
  }
}

void follow(const std::string& model, const Way& way, const Rule& rule, bool no_decay) {
  const test::Training one{.yaml = concat("model: ", model, "\nprecision: fp64\nbatch_size: 12\nstrategy: ",
                                          way.strategy, "\noptimizer: {name: ", rule.optimizer, ", lr: ", kLr,
                                          ", weight_decay: ", kDecay, no_decay ? ", no_decay: true}\n" : "}\n"),
                           .devices = way.devices,
                           .steps = 1,
                           .data = test::golden_data(),
                           .order = {},
                           .init = "",
                           .fill = fill_biases};
  const config::Config config = test::config_of(one.yaml);
  const bool ranks = strategy::entry_of(config).ranks == strategy::Ranks::one_per_device;
  std::mutex mutex;
  std::string wrong;
  int64_t compared = 0;
  test::on_ranks(ranks ? way.devices : 1, test::Backend::local, 20, [&](comm::Communicator& communicator) {
    test::TrainingRank rank(one, config, communicator);
    rank.begin();
    HandProbe probe(rule, no_decay, rank.model());
    rank.step(0, &probe);
    const std::lock_guard lock(mutex);
    wrong += probe.wrong;
    compared += probe.compared;
  });
  INFO(one.yaml);
  REQUIRE(wrong.empty());
  REQUIRE(compared > 0);
}

}  // namespace

TEST_CASE("with no_decay, tensors of one dimension have no weight decay, under every strategy (S-51)") {
  const std::string models[] = {"{name: lenet, channels: [4, 6], hidden: 16}",
                                "{name: resnet18, channels: [4, 6], blocks: [1, 1], init_std: 0.2}",
                                "{name: vit, layers: 1, width: 12, heads: 3, patch: 14}"};
  for (const std::string& model : models) {
    for (const Way& way : kWays) {
      for (const Rule& rule : rules()) {
        for (const bool no_decay : {true, false}) follow(model, way, rule, no_decay);
      }
    }
  }
}
