// LeNet of "Dive into Deep Learning", chapter "Training on multiple GPUs": 3x3 and 5x5 convolutions, average pooling,
// weights N(0, 0.01^2), biases 0; 129,068 parameters.
#include "model/entry.h"
#include "model/layers.h"

namespace mgt::model::lenet {
namespace {

Model build(const config::Section& section) {
  const std::vector<int64_t>& image = section.integers("input");
  const std::vector<int64_t>& channels = section.integers("channels");
  const int64_t hidden = section.integer("hidden");
  const WeightInit init{WeightInit::Kind::normal, section.number("init_std")};

  const Block conv1 = sequence(
      "conv1", {conv2d("conv1", {.in = image[0], .out = channels[0], .kernel = 3}, init), relu(), avg_pool(2, 2)});
  const Block conv2 = sequence("conv2", {conv2d("conv2", {.in = channels[0], .out = channels[1], .kernel = 5}, init),
                                         relu(), avg_pool(2, 2), flatten()});
  const int64_t flat = conv2.output_shape(conv1.output_shape(image))[0];  // 800 for 28 x 28 pixels
  return {.blocks = {conv1, conv2, sequence("fc1", {linear("fc1", flat, hidden, init), relu()}),
                     linear("fc2", hidden, section.integer("outputs"), init)}};
}

}  // namespace

extern const Entry entry;
const Entry entry = {
    .variant = {.name = "lenet",
                .summary =
                    "the book's LeNet: two convolutions, average pooling, two linear layers (129,068 parameters)",
                .options = {{.key = "channels",
                             .kind = config::Kind::integers,
                             .fallback = std::vector<int64_t>{20, 50},
                             .help = "output channels of the two convolutions",
                             .bounds = {.at_least = 1},
                             .length = 2},
                            config::integer("hidden", 128, "width of the hidden linear layer", {.at_least = 1}),
                            config::number("init_std", 0.01, "standard deviation of the initial weights",
                                           {.above = 0})},
                .check = check_image},
    .build = build,
    .narrow = {"channels=[4, 6]", "hidden=16"},
};

}  // namespace mgt::model::lenet
