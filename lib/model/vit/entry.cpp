// ViT, a Transformer over patches of the image (Dosovitskiy et al., "An image is worth 16x16 words", 2020): pre-norm
// encoder layers, GELU MLPs of four times the width, learned positions, the class token's last value is classified. No
// dropout. Names and shapes are torchvision's `vision_transformer`, but for `in_proj`, which is three tensors here,
// without a bias of the keys. 204,810 parameters by default; 86,558,440 as ViT-B/16 of 224 x 224 pixels. Initial values
// as PyTorch's Conv2d and Linear, class token and positions N(0, 0.02^2).
#include "model/entry.h"
#include "model/transformer.h"

#include "core/text.h"

namespace mgt::model::vit {
namespace {

constexpr int64_t kExpansion = 4;  // of the MLP's hidden layer over the width

Block encoder_layer(const std::string& name, int64_t width, int64_t heads, const WeightInit& init) {
  const int64_t hidden = kExpansion * width;
  const Block attention = sequence(
      "attention", {layer_norm(name + ".ln_1", width), self_attention(name + ".self_attention", width, heads, init)});
  const Block mlp = sequence("mlp", {layer_norm(name + ".ln_2", width), linear(name + ".mlp.0", width, hidden, init),
                                     gelu(), linear(name + ".mlp.3", hidden, width, init)});
  return sequence(name, {skip("attention", attention), skip("mlp", mlp)});
}

Model build(const config::Section& section) {
  const int64_t width = section.integer("width");
  const WeightInit init{WeightInit::Kind::fan_in};

  Model model;
  model.blocks.push_back(
      patch_embedding({.image = section.integers("input"), .patch = section.integer("patch"), .width = width}, init));
  for (int64_t index = 0; index < section.integer("layers"); ++index) {
    const std::string name = concat("encoder.layers.encoder_layer_", index);
    model.blocks.push_back(encoder_layer(name, width, section.integer("heads"), init));
  }
  // The class token alone is normalised: the others do not reach the loss any more.
  model.blocks.push_back(sequence("heads", {first_token(), layer_norm("encoder.ln", width),
                                            linear("heads.head", width, section.integer("outputs"), init)}));
  return model;
}

// Some of the sizes that divide both, for a message.
std::string common_divisors(int64_t height, int64_t width) {
  std::vector<int64_t> found;
  for (int64_t divisor = 1; divisor <= 64; ++divisor) {
    if (height % divisor == 0 && width % divisor == 0) found.push_back(divisor);
  }
  return join(found);
}

void check(const config::Config& config) {
  check_image(config);
  const config::Section& section = config.section("model");
  const std::vector<int64_t>& image = section.integers("input");
  const int64_t patch = section.integer("patch"), width = section.integer("width"), heads = section.integer("heads");
  if (image[1] % patch != 0 || image[2] % patch != 0) {
    config.error_at("model.patch",
                    concat("images of ", image[1], " x ", image[2], " pixels do not divide into patches of ", patch,
                           "; try one of ", common_divisors(image[1], image[2])));
  }
  if (width % heads != 0) {
    config.error_at("model.heads", concat(heads, " heads do not divide model.width, ", width));
  }
}

using config::Kind;

}  // namespace

extern const Entry entry;
const Entry entry = {
    .variant =
        {.name = "vit",
         .summary = "a small Transformer over patches of the image (204,810 parameters); larger by layers and width",
         .options = {config::integer("layers", 4, "encoder layers: attention and MLP",
                                     {.at_least = 1, .at_most = 1000}),
                     config::integer("width", 64, "numbers in a token; the MLP's hidden layer has four times as many",
                                     {.at_least = 1, .at_most = 65536}),
                     config::integer("heads", 4, "attention heads; divides width", {.at_least = 1}),
                     config::integer("patch", 7, "pixels on a side of a patch; divides the image's height and width",
                                     {.at_least = 1})},
         .check = check},
    .build = build,
    .narrow = {"layers=2", "width=12", "heads=3", "patch=14"},
};

}  // namespace mgt::model::vit
