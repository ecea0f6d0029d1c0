// Layers cut over ranks that work on them together.
#include "test.h"

#include "config/reader.h"
#include "launch/rank.h"
#include "model/entry.h"
#include "model/replica.h"
#include "model/slices.h"

#include "torch_pch.h"

using namespace mgt;

namespace {

model::Model built(const std::string& section) {
  return model::build(config::resolve(launch::schema(), {"test.yaml", "model: " + section}));
}

const model::TensorSpec& tensor(const model::Model& model, const std::string& name) {
  for (const model::Block& block : model.blocks) {
    for (const model::TensorSpec& spec : block.parameters) {
      if (spec.name == name) return spec;
    }
  }
  throw std::runtime_error("no tensor " + name);
}

model::Shape shape(const model::Model& model, const std::string& name) { return tensor(model, name).shape; }

bool equal(const model::Shape& a, const model::Shape& b) { return a == b; }

}  // namespace

TEST_CASE(
    "64 channels over 4 ranks give 16 each: the first convolution by outputs, the second by inputs (S-02, S-03)") {
  const model::Model resnet = built("resnet18");
  for (int64_t part = 0; part < 4; ++part) {
    const model::Model sliced = model::slice(resnet, part, 4);
    REQUIRE(equal(shape(sliced, "layer1.0.conv1.weight"), {16, 64, 3, 3}));
    REQUIRE(equal(shape(sliced, "layer1.0.conv1.bias"), {16}));
    REQUIRE(equal(shape(sliced, "layer1.0.bn1.weight"), {16}));
    REQUIRE(equal(shape(sliced, "layer1.0.conv2.weight"), {64, 16, 3, 3}));
    REQUIRE(equal(shape(sliced, "layer1.0.conv2.bias"), {64}));
    REQUIRE(equal(tensor(sliced, "layer1.0.conv2.weight").offset, {0, 16 * part, 0, 0}));
  }
}

TEST_CASE("uneven slices: 20 channels over 3 ranks are 7, 7 and 6, and a channel of 16 features takes them along") {
  const model::Model lenet = built("lenet");
  const std::vector<int64_t> channels = {7, 7, 6};
  for (int64_t part = 0; part < 3; ++part) {
    const model::Model sliced = model::slice(lenet, part, 3);
    REQUIRE(equal(shape(sliced, "conv1.weight"), {channels[static_cast<std::size_t>(part)], 1, 3, 3}));
    REQUIRE(equal(shape(sliced, "conv2.weight"), {50, channels[static_cast<std::size_t>(part)], 5, 5}));
    REQUIRE(shape(sliced, "fc1.weight")[1] == 800);
    REQUIRE(shape(sliced, "fc2.weight")[1] == shape(sliced, "fc1.weight")[0]);
  }
}

TEST_CASE("a model of one linear layer is cut by its inputs (S-02)") {
  const model::Model linear = built("{name: mlp, hidden: []}");
  REQUIRE(model::most_parts(linear) == 784);
  REQUIRE(equal(shape(model::slice(linear, 0, 3), "fc1.weight"), {10, 262}));
  REQUIRE(equal(shape(model::slice(linear, 2, 3), "fc1.weight"), {10, 261}));
}

TEST_CASE("attention is cut by heads, its MLP by columns and rows") {
  const model::Model sliced = model::slice(built("{name: vit, layers: 1, width: 12, heads: 3}"), 1, 3);
  const std::string layer = "encoder.layers.encoder_layer_0.";
  REQUIRE(equal(shape(sliced, layer + "self_attention.q_proj.weight"), {4, 12}));
  REQUIRE(equal(shape(sliced, layer + "self_attention.out_proj.weight"), {12, 4}));
  REQUIRE(equal(shape(sliced, layer + "self_attention.out_proj.bias"), {12}));
  REQUIRE(equal(shape(sliced, layer + "mlp.0.weight"), {16, 12}));
  REQUIRE(equal(shape(sliced, layer + "mlp.3.weight"), {12, 16}));
}

TEST_CASE("slices begin as pieces of what one device begins with, and together they are all of it") {
  for (const std::string name :
       {"lenet", "lenet5", "mlp", "{name: resnet18, channels: [4, 6], blocks: [1, 1], bn: sync}",
        "{name: vit, layers: 1, width: 12, heads: 3}"}) {
    const model::Model whole = built(name);
    const model::Replica all(whole, at::kDouble, at::kCPU, 3);
    std::map<std::string, at::Tensor> covered;
    for (int64_t part = 0; part < 3; ++part) {
      const model::Model sliced = model::slice(whole, part, 3);
      const model::Replica own(sliced, at::kDouble, at::kCPU, 3);
      const auto slices = own.state(true);
      const auto tensors = all.state(true);
      REQUIRE(slices.size() == tensors.size());
      for (std::size_t index = 0; index < slices.size(); ++index) {
        INFO(name << " " << slices[index].name);
        REQUIRE(slices[index].name == tensors[index].name);
        REQUIRE(model::piece_of(tensors[index].view, slices[index]).equal(slices[index].view));
        at::Tensor& seen = covered.try_emplace(slices[index].name, at::zeros_like(tensors[index].view)).first->second;
        model::piece_of(seen, slices[index]).fill_(1);
      }
    }
    for (const auto& [tensor_name, seen] : covered) {
      INFO(name << " " << tensor_name);
      REQUIRE(seen.eq(1).all().item<bool>());
    }
  }
}

TEST_CASE("what cannot be cut, or only so far, is known") {
  REQUIRE(model::most_parts(built("lenet")) == 20);
  REQUIRE(model::most_parts(built("{name: vit, heads: 4}")) == 4);
}
