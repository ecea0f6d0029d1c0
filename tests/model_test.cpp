#include "test.h"

#include "config/config.h"
#include "core/error.h"
#include "config/reader.h"
#include "model/entry.h"
#include "model/replica.h"
#include "model/transformer.h"

#include "torch_pch.h"
#include <nlohmann/json.hpp>

#include <fstream>
#include <set>

using namespace mgt;
using namespace mgt::model;
using nlohmann::json;

namespace {

Model build(const std::string& section) {
  const config::Schema schema{.top = {}, .sections = {model::section()}};
  return model::build(config::resolve(schema, {"test.yaml", "model: " + section}));
}

json structure(const std::string& name) {
  std::ifstream file(test::cases() + "/5_interop/structures/" + name + ".json");
  return json::parse(file);
}

// Names, shapes and kinds of all tensors equal those of the file.
void compare_structure(const Model& model, const json& wanted) {
  REQUIRE(model.parameter_count() == wanted["parameters"].get<int64_t>());
  REQUIRE(model.buffer_count() == wanted["buffer_elements"].get<int64_t>());
  std::map<std::string, std::pair<Shape, std::string>> found;
  for (const Block& block : model.blocks) {
    for (const TensorSpec& spec : block.parameters) found[spec.name] = {spec.shape, "parameter"};
    for (const TensorSpec& spec : block.buffers) found[spec.name] = {spec.shape, "buffer"};
  }
  REQUIRE(found.size() == wanted["tensors"].size());
  for (const json& tensor : wanted["tensors"]) {
    INFO(tensor["name"]);
    const auto& [shape, kind] = found.at(tensor["name"]);
    REQUIRE(shape == tensor["shape"].get<Shape>());
    REQUIRE(kind == tensor["kind"]);
  }
}

}  // namespace

TEST_CASE("LeNet has the book's tensors, sizes and cost, linear weights are (out, in) (S-40, S-42)") {
  const Model lenet = build("lenet");
  compare_structure(lenet, structure("lenet"));
  REQUIRE(lenet.parameter_count() == 129068);
  const std::vector<Shape> shapes = lenet.shapes();
  REQUIRE(shapes[0] == Shape{20, 13, 13});
  REQUIRE(shapes[1] == Shape{800});  // 50 x 4 x 4
  REQUIRE(shapes.back() == Shape{10});
  int64_t cost = 0;
  for (const int64_t block : lenet.multiply_adds()) cost += block;
  REQUIRE(cost == 2250360);  // requirements B.5
}

TEST_CASE("LeNet-5 has 44,426 parameters (S-44)") { compare_structure(build("lenet5"), structure("lenet_classic")); }

TEST_CASE("ResNet-18 has the book's tensors and spatial sizes 28, 28, 14, 7, 4, 1 (S-45)") {
  const Model resnet = build("resnet18");
  compare_structure(resnet, structure("resnet18_d2l"));
  REQUIRE(resnet.parameter_count() == 11175818);
  const std::vector<Shape> shapes = resnet.shapes();
  REQUIRE(shapes[0] == Shape{64, 28, 28});
  REQUIRE(shapes[2] == Shape{64, 28, 28});
  REQUIRE(shapes[4] == Shape{128, 14, 14});
  REQUIRE(shapes[6] == Shape{256, 7, 7});
  REQUIRE(shapes[8] == Shape{512, 4, 4});
  REQUIRE(shapes[9] == Shape{10});
  int64_t cost = 0;
  for (const int64_t block : resnet.multiply_adds()) cost += block;
  REQUIRE(cost == 455800832);  // requirements B.5
}

TEST_CASE("ResNet-18 with the ImageNet stem has 11,178,378 parameters and sizes 7, 7, 4, 2, 1 (S-46, E-09)") {
  const Model resnet = build("{name: resnet18, stem: imagenet}");
  REQUIRE(resnet.parameter_count() == 11178378);
  const std::vector<Shape> shapes = resnet.shapes();
  REQUIRE(shapes[0] == Shape{64, 7, 7});
  REQUIRE(shapes[4] == Shape{128, 4, 4});
  REQUIRE(shapes[8] == Shape{512, 1, 1});
}

TEST_CASE("style torchvision has torchvision's names and shapes") {
  compare_structure(build("{name: resnet18, style: torchvision}"), structure("resnet18_torchvision_in1_out10_stem3"));
  compare_structure(build("{name: resnet18, style: torchvision, stem: imagenet, input: [3, 224, 224], outputs: 1000}"),
                    structure("resnet18_torchvision"));
}

TEST_CASE("weights start as N(0, 0.01^2) and biases as 0 (S-41)") {
  const Model lenet = build("lenet");
  Replica replica(lenet, at::kDouble, at::kCPU, 5);
  for (const StateSlice& slice : replica.state(true)) {
    INFO(slice.name);
    if (slice.name.ends_with(".bias")) {
      REQUIRE(slice.view.eq(0).all().item<bool>());
      continue;
    }
    const double count = static_cast<double>(slice.view.numel());
    REQUIRE(std::abs(slice.view.mean().item<double>()) < 4 * 0.01 / std::sqrt(count));
    REQUIRE(std::abs(slice.view.std().item<double>() / 0.01 - 1) < 4 / std::sqrt(2 * count));
  }
}

TEST_CASE("every tensor starts anew from the seed alone (E-22)") {
  const Model resnet = build("{name: resnet18, channels: [4, 8], blocks: [1, 1]}");
  Replica first(resnet, at::kFloat, at::kCPU, 1), same(resnet, at::kFloat, at::kCPU, 1),
      other(resnet, at::kFloat, at::kCPU, 2);
  REQUIRE(first.parameters().equal(same.parameters()));
  REQUIRE_FALSE(first.parameters().equal(other.parameters()));
  // A part of the model starts as the same part of the whole.
  Replica part(resnet, {1, 3}, at::kFloat, at::kCPU, 1);
  for (const StateSlice& slice : part.state(true)) {
    for (const StateSlice& whole : first.state(true)) {
      if (whole.name == slice.name) REQUIRE(whole.view.equal(slice.view));
    }
  }
}

TEST_CASE("parameters and gradients are views of one flat tensor, each on a multiple of 64 bytes") {
  const Model lenet = build("lenet");
  Replica replica(lenet, at::kFloat, at::kCPU, 1);
  for (std::size_t index = 0; index < replica.slots().size(); ++index) {
    const Slot& slot = replica.slots()[index];
    const at::Tensor& view = replica.parameter_views()[index];
    REQUIRE(slot.range.begin * 4 % 64 == 0);
    REQUIRE(view.data_ptr() == replica.parameters().data_ptr<float>() + slot.range.begin);
    REQUIRE(view.grad().data_ptr() == replica.gradients().data_ptr<float>() + slot.range.begin);
  }
  summed_loss(Loss::cross_entropy, replica.forward(at::rand({4, 1, 28, 28}), {.training = true}), at::arange(4))
      .backward();
  REQUIRE(replica.gradients().abs().sum().item<float>() > 0);
  REQUIRE(replica.parameter_views()[0].grad().data_ptr() == replica.gradients().data_ptr());  // still the same memory
  replica.zero_gradients();
  REQUIRE(replica.gradients().eq(0).all().item<bool>());
}

TEST_CASE("losses are sums over samples, mse averages a sample's outputs (S-43, S-47)") {
  const at::Tensor outputs = at::randn({6, 10}, at::kDouble), classes = at::arange(6);
  const double one_by_one = [&] {
    double sum = 0;
    for (int64_t i = 0; i < 6; ++i) sum += -at::log_softmax(outputs[i], 0)[i].item<double>();
    return sum;
  }();
  REQUIRE(summed_loss(Loss::cross_entropy, outputs, classes).item<double>() == Approx(one_by_one).epsilon(1e-12));
  const at::Tensor wanted = at::randn({6, 10}, at::kDouble);
  REQUIRE(summed_loss(Loss::mse, outputs, wanted).item<double>() / 6 ==
          Approx(at::mse_loss(outputs, wanted).item<double>()).epsilon(1e-12));
  REQUIRE(summed_loss(Loss::mse, outputs, classes).item<double>() / 6 ==
          Approx(at::mse_loss(outputs, at::eye(6, 10, at::kDouble)).item<double>()).epsilon(1e-12));
}

TEST_CASE("the DDP template's network is one Linear(10, 10) (S-47)") {
  const Model toy = build("{name: mlp, input: [10], hidden: [], outputs: 10, loss: mse}");
  REQUIRE(toy.blocks.size() == 1);
  REQUIRE(toy.parameter_count() == 110);
}

TEST_CASE("an input that is too small for a model is a config error that names it") {
  for (const std::string name : {"lenet", "lenet5"}) {
    try {
      build("{name: " + name + ", input: [1, 5, 5]}");
      FAIL("accepted");
    } catch (const ConfigError& error) {
      REQUIRE_THAT(error.what(), Catch::Matchers::Contains("model.input") && Catch::Matchers::Contains("(1, 5, 5)"));
    }
  }
}

TEST_CASE("a vision Transformer has torchvision's tensors, sizes and cost, but for the biases of keys") {
  const Model vit = build("vit");
  const int64_t width = 64, layers = 4, tokens = 17, pixels = 49;
  REQUIRE(vit.blocks.size() == 6);
  REQUIRE(vit.parameter_count() == width * (pixels + 1) + width + tokens * width +
                                       layers * (12 * width * width + 12 * width) + 2 * width + 10 * width + 10);
  REQUIRE(vit.parameter_count() == 204810);
  REQUIRE(vit.shapes()[0] == Shape{17, 64});
  REQUIRE(vit.shapes()[4] == Shape{17, 64});
  REQUIRE(vit.shapes()[5] == Shape{10});
  const std::vector<int64_t> cost = vit.multiply_adds();
  REQUIRE(cost[0] == 16 * width * pixels);
  REQUIRE(cost[1] == 12 * tokens * width * width + 2 * tokens * tokens * width);
  REQUIRE(cost[5] == 10 * width);
  // vit_b_16 of torchvision has 86,567,656: a bias of 768 keys more in each of 12 layers.
  const Model base =
      build("{name: vit, input: [3, 224, 224], outputs: 1000, layers: 12, width: 768, heads: 12, patch: 16}");
  REQUIRE(base.parameter_count() == 86567656 - 12 * 768);
  REQUIRE(base.shapes()[0] == Shape{197, 768});
}

TEST_CASE("a vision Transformer's gradients are those of finite differences") {
  const Model vit = build("{name: vit, input: [2, 12, 8], outputs: 3, layers: 2, width: 6, heads: 2, patch: 4}");
  Replica replica(vit, at::kDouble, at::kCPU, 3);
  const at::Tensor images = at::randn({5, 2, 12, 8}, at::kDouble), classes = at::arange(5).remainder(3);
  const auto loss = [&] {
    return summed_loss(Loss::cross_entropy, replica.forward(images, {.training = true}), classes);
  };
  loss().backward();
  const at::NoGradGuard no_grad;
  for (const Slot& slot : replica.slots()) {
    INFO(slot.name);
    at::Tensor part = replica.parameters().narrow(0, slot.range.begin, slot.range.size());
    const at::Tensor gradient = replica.gradients().narrow(0, slot.range.begin, slot.range.size());
    const at::Tensor step = at::randn({slot.range.size()}, at::kDouble) * 1e-5;
    part.add_(step);
    const double above = loss().item<double>();
    part.sub_(step * 2);
    const double below = loss().item<double>();
    part.add_(step);
    REQUIRE(std::abs((gradient * step).sum().item<double>() - (above - below) / 2) <
            1e-7 * gradient.norm().item<double>());
    REQUIRE(gradient.norm().item<double>() > 1e-4);
  }
}

TEST_CASE("a vision Transformer takes no rows, as an empty shard has") {
  const Model vit = build("vit");
  Replica replica(vit, at::kFloat, at::kCPU, 1);
  const at::Tensor outputs = replica.forward(at::zeros({0, 1, 28, 28}), {.training = true});
  REQUIRE(outputs.sizes() == at::IntArrayRef{0, 10});
  summed_loss(Loss::cross_entropy, outputs, at::zeros({0}, at::kLong)).backward();
  REQUIRE(replica.gradients().eq(0).all().item<bool>());
}

TEST_CASE(
    "BatchNorm over a single value per channel is refused by its name, and never makes NaN of what is saved (S-55)") {
  const Model resnet = build("{name: resnet18, stem: imagenet, channels: [2, 2, 2, 2], blocks: [1, 1, 1, 1]}");
  Replica replica(resnet, at::kFloat, at::kCPU, 1);
  const SumOverReplicas alone = [](at::Tensor&) {};
  for (const SumOverReplicas* statistics : {static_cast<const SumOverReplicas*>(nullptr), &alone}) {
    const ForwardContext training{.training = true, .statistics = statistics};
    REQUIRE_THROWS_MATCHES(
        replica.forward(at::rand({1, 1, 28, 28}), training), NumericsError,
        Catch::Matchers::Predicate<NumericsError>([](const NumericsError& error) {
          return std::string(error.what()).starts_with("layer4.0.bn1: BatchNorm over a single value");
        }));
    replica.forward(at::rand({2, 1, 28, 28}), training);
  }
  replica.forward(at::rand({1, 1, 28, 28}), {.training = false});
}

TEST_CASE("attention of all heads is the sum of what slices of its tensors compute") {
  const int64_t width = 12, half = 6;
  const Block attention = self_attention("a", width, 4, {});
  const at::Tensor tokens = at::randn({3, 5, width}, at::kDouble);
  std::vector<at::Tensor> whole;
  for (const TensorSpec& spec : attention.parameters) whole.push_back(at::randn(spec.shape, at::kDouble));
  at::Tensor sum = whole[6];
  for (const int64_t begin : {int64_t{0}, half}) {
    std::vector<at::Tensor> slice;
    for (std::size_t index = 0; index < 5; ++index) slice.push_back(whole[index].narrow(0, begin, half));
    slice.push_back(whole[5].narrow(1, begin, half));
    slice.push_back(at::zeros({width}, at::kDouble));
    sum = sum + attention.forward(tokens, {slice, {}}, {});
  }
  REQUIRE(at::allclose(sum, attention.forward(tokens, {whole, {}}, {}), 1e-12, 1e-12));
}

TEST_CASE("patches and heads that do not divide are config errors that name the key") {
  const std::pair<std::string, std::string> wrong[] = {{"patch: 5", "model.patch: images of 28 x 28 pixels"},
                                                       {"heads: 5", "model.heads: 5 heads do not divide"},
                                                       {"input: [784]", "model.input"},
                                                       {"layers: 0", "model.layers"},
                                                       {"width: 65537", "model.width"}};
  for (const auto& [setting, words] : wrong) {
    try {
      build("{name: vit, " + setting + "}");
      FAIL("accepted " << setting);
    } catch (const ConfigError& error) {
      REQUIRE_THAT(error.what(), Catch::Matchers::Contains(words));
    }
  }
}
