// The last window of accumulation, which is shorter than the others: least squares in two variables, every gradient and
// weight by PyTorch (tests/cases/7_semantics/accumulation_window.json).
#include "test.h"
#include "training.h"

#include "core/text.h"
#include "strategy/entry.h"

#include "torch_pch.h"
#include <nlohmann/json.hpp>

#include <fstream>

using namespace mgt;
using nlohmann::json;

namespace {

constexpr double kBound = 1e-12;

data::Splits rows_of(const json& one) {
  std::vector<double> inputs;
  for (const json& row : one["x"]) {
    for (const json& value : row) inputs.push_back(value.get<double>());
  }
  data::Splits data;
  data.train.name = "least squares";
  data.train.inputs = at::tensor(inputs, at::kDouble).view({-1, 2});
  data.train.targets = at::tensor(one["target"].get<std::vector<double>>(), at::kDouble).view({-1, 1});
  return data;
}

// The golden loss is half of the squared error, mgt's all of it: half the learning rate makes the same steps.
void compare_windows(const json& one, const std::string& strategy, int64_t devices) {
  INFO(strategy << " on " << devices << ", " << one["n"] << " rows, batch " << one["batch"] << ", accumulate "
                << one["accumulate"]);
  const int64_t accumulate = one["accumulate"], batch_size = one["batch"].get<int64_t>() * accumulate;
  const json& right = one["right"];
  const test::Outcome outcome = test::train(
      {.yaml = concat("model: {name: mlp, hidden: [], input: [2], outputs: 1, loss: mse}\nprecision: fp64\nstrategy: ",
                      strategy, "\noptimizer: {name: sgd, lr: ", shortest(one["lr"].get<double>() / 2),
                      "}\nbatch_size: ", batch_size, "\naccumulate: ", accumulate, "\n"),
       .devices = devices,
       .steps = static_cast<int64_t>(right.size()),
       .data = rows_of(one),
       .order = {},
       .init = "",
       .fill = [](std::vector<model::StateSlice>& state) {
         for (model::StateSlice& slice : state) slice.view.zero_();
       }});
  for (std::size_t step = 0; step < right.size(); ++step) {
    const at::Tensor gradient = at::tensor(right[step]["grad"].get<std::vector<double>>(), at::kDouble);
    REQUIRE(outcome.samples[step] == right[step]["n"].get<int64_t>());
    REQUIRE(outcome.losses[step] == Approx(2 * right[step]["loss"].get<double>()).epsilon(kBound));
    REQUIRE(outcome.grad_norms[step] == Approx(2 * gradient.norm().item<double>()).epsilon(kBound));
  }
  const auto after = right.back()["after"].get<std::vector<double>>();
  const at::Tensor weight = outcome.replicas[0].at("fc1.weight").flatten(), bias = outcome.replicas[0].at("fc1.bias");
  REQUIRE(at::allclose(at::cat({weight, bias}), at::tensor(after, at::kDouble), kBound, kBound));
}

}  // namespace

TEST_CASE(
    "a window that is shorter than the others is divided by the samples that are in it, under every strategy (S-79)") {
  const json golden = json::parse(std::ifstream(test::cases() + "/7_semantics/accumulation_window.json"));
  for (const json& one : golden["cases"]) {
    compare_windows(one, "single", 1);
    compare_windows(one, "scratch", 2);
    compare_windows(one, "data_parallel", 3);
    for (const int64_t devices : {2, 3}) {
      compare_windows(one, "ddp", devices);
      for (const int64_t stage : {1, 2, 3}) compare_windows(one, concat("{name: zero, stage: ", stage, "}"), devices);
    }
  }
}
