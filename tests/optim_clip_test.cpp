// Clipping against what torch.nn.utils.clip_grad_norm_ made of the same gradients (tests/cases/7_semantics).
#include "test.h"

#include "optim/clip.h"

#include "torch_pch.h"
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>

using namespace mgt;
using nlohmann::json;

namespace {

constexpr double kBound = 1e-14;

at::Tensor tensor_of(const json& values) { return at::tensor(values.get<std::vector<double>>(), at::kDouble); }

}  // namespace

TEST_CASE("a gradient is clipped by its global norm as PyTorch does, every element counted once") {
  const json golden = json::parse(std::ifstream(test::cases() + "/7_semantics/clip_norm.json"));
  REQUIRE(golden["cases"].size() >= 3);
  for (const json& one : golden["cases"]) {
    std::vector<at::Tensor> gradients;
    for (const auto& [name, values] : one["gradients"].items()) gradients.push_back(tensor_of(values));
    const double norm = std::sqrt(optim::sum_of_squares(gradients));
    REQUIRE(norm == Approx(one["norm"].get<double>()).epsilon(kBound));
    std::size_t index = 0;
    for (const auto& [name, values] : one["clipped"].items()) {
      at::Tensor& gradient = gradients[index++];
      optim::clip(gradient, {.norm = one["max_norm"].get<double>()}, norm);
      INFO(name);
      REQUIRE(at::allclose(gradient, tensor_of(values), kBound, kBound));
    }
  }
}

TEST_CASE("the norm of a gradient in flat shards is the root of the sum of their squares, not the norm of one") {
  const json golden = json::parse(std::ifstream(test::cases() + "/7_semantics/clip_norm.json"));
  for (const json& one : golden["cases"]) {
    std::vector<at::Tensor> parts;
    for (const auto& [name, values] : one["gradients"].items()) parts.push_back(tensor_of(values));
    const at::Tensor flat = at::cat(parts);
    for (const json& shards : one["flat_shards"]) {
      double squares = 0;
      int64_t begin = 0;
      for (const json& size : shards["sizes"]) {
        const at::Tensor shard = flat.narrow(0, begin, size.get<int64_t>());
        squares += optim::sum_of_squares(std::span(&shard, 1));
        begin += shard.numel();
      }
      REQUIRE(std::sqrt(squares) == Approx(shards["right_norm"].get<double>()).epsilon(kBound));
    }
  }
}

TEST_CASE("clipping by value bounds each element") {
  at::Tensor gradient = at::tensor({-3.0, -0.5, 0.0, 0.25, 7.0}, at::kDouble);
  optim::clip(gradient, {.value = 0.5}, 100);
  REQUIRE(at::equal(gradient, at::tensor({-0.5, -0.5, 0.0, 0.25, 0.5}, at::kDouble)));
}
