// ResNet-18 (He et al., "Deep residual learning for image recognition", 2015) in two styles:
//   d2l          as "Dive into Deep Learning" builds it: convolutions with bias, no BatchNorm on the 1x1 shortcut
//   torchvision  its key names and shapes: no bias, BatchNorm on the shortcut
// and with two stems: 3x3 (for 28 x 28 pixels: 11,175,818 parameters in style d2l) and imagenet (7x7, stride 2, then
// max pooling). Weights N(0, 0.01^2) as in the book's chapter; BatchNorm starts at 1 and 0.
#include "model/entry.h"
#include "model/layers.h"

namespace mgt::model::resnet18 {
namespace {

struct Style {
  bool conv_bias;
  bool shortcut_norm;
};

Block stem(int64_t in, int64_t channels, bool imagenet, const Style& style, const WeightInit& init) {
  const Conv conv =
      imagenet ? Conv{in, channels, 7, 2, 3, style.conv_bias} : Conv{in, channels, 3, 1, 1, style.conv_bias};
  std::vector<Block> layers = {conv2d("conv1", conv, init), batch_norm("bn1", channels), relu()};
  if (imagenet) layers.push_back(max_pool(3, 2, 1));
  return sequence("stem", std::move(layers));
}

// Two 3x3 convolutions; where channels change the first has stride 2 and the shortcut is a 1x1 convolution.
Block basic_block(const std::string& name, int64_t in, int64_t out, bool halves, const Style& style,
                  const WeightInit& init) {
  const int64_t stride = halves ? 2 : 1;
  Block main = sequence(
      "main",
      {conv2d(name + ".conv1", {in, out, 3, stride, 1, style.conv_bias}, init), batch_norm(name + ".bn1", out), relu(),
       conv2d(name + ".conv2", {out, out, 3, 1, 1, style.conv_bias}, init), batch_norm(name + ".bn2", out)});
  std::vector<Block> shortcut;
  if (halves) {
    shortcut.push_back(conv2d(name + ".downsample.0", {in, out, 1, stride, 0, style.conv_bias}, init));
    if (style.shortcut_norm) shortcut.push_back(batch_norm(name + ".downsample.1", out));
  }
  return residual(name, std::move(main), sequence("shortcut", std::move(shortcut)));
}

Model build(const config::Section& section) {
  const bool torchvision = section.text("style") == "torchvision";
  const Style style{.conv_bias = !torchvision, .shortcut_norm = torchvision};
  const WeightInit init{WeightInit::Kind::normal, section.number("init_std")};
  const std::vector<int64_t>& channels = section.integers("channels");
  const std::vector<int64_t>& blocks = section.integers("blocks");

  Model model;
  model.sync_statistics = section.text("bn") == "sync";
  model.blocks.push_back(
      stem(section.integers("input")[0], channels[0], section.text("stem") == "imagenet", style, init));
  int64_t in = channels[0];
  for (std::size_t layer = 0; layer < channels.size(); ++layer) {
    for (int64_t index = 0; index < blocks[layer]; ++index) {
      const std::string name = "layer" + std::to_string(layer + 1) + "." + std::to_string(index);
      model.blocks.push_back(basic_block(name, in, channels[layer], layer > 0 && index == 0, style, init));
      in = channels[layer];
    }
  }
  model.blocks.push_back(sequence("fc", {global_avg_pool(), linear("fc", in, section.integer("outputs"), init)}));
  return model;
}

void check(const config::Config& config) {
  check_image(config);
  const config::Section& section = config.section("model");
  const std::size_t layers = section.integers("channels").size();
  if (layers == 0) config.error_at("model.channels", "needs at least one number of channels");
  if (section.integers("blocks").size() != layers) {
    config.error_at("model.blocks", "needs one number for each of model.channels");
  }
}

using config::Kind;
using Numbers = std::vector<int64_t>;

}  // namespace

extern const Entry entry;
const Entry entry = {
    .variant =
        {.name = "resnet18",
         .summary = "ResNet-18 (11,175,818 parameters with the book's stem); smaller by channels and blocks",
         .options = {config::text("stem", "3x3", "first layers: 3x3 for small images, imagenet is 7x7 with max pooling",
                                  {"3x3", "imagenet"}),
                     config::text("style", "d2l", "d2l: convolutions with bias; torchvision: its key names and shapes",
                                  {"d2l", "torchvision"}),
                     {.key = "channels",
                      .kind = Kind::integers,
                      .fallback = Numbers{64, 128, 256, 512},
                      .help = "output channels of each group of blocks",
                      .bounds = {.at_least = 1}},
                     {.key = "blocks",
                      .kind = Kind::integers,
                      .fallback = Numbers{2, 2, 2, 2},
                      .help = "residual blocks in each group",
                      .bounds = {.at_least = 1}},
                     config::text("bn", "local",
                                  "BatchNorm statistics; local: each replica its own; sync: of the whole batch, as on "
                                  "one device",
                                  {"local", "sync"}),
                     config::number("init_std", 0.01, "standard deviation of the initial weights", {.above = 0})},
         .check = check},
    .build = build,
    .narrow = {"channels=[4, 6, 8, 12]", "blocks=[1, 1, 2, 1]", "init_std=0.2"},
};

}  // namespace mgt::model::resnet18
