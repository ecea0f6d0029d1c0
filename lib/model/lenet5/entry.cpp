// The classic LeNet-5 (LeCun et al., 1998) as tutorials write it today: ReLU and max pooling; 44,426 parameters.
// Initial values as PyTorch's Conv2d and Linear.
#include "model/entry.h"
#include "model/layers.h"

namespace mgt::model::lenet5 {
namespace {

Model build(const config::Section& section) {
  const std::vector<int64_t>& image = section.integers("input");
  const WeightInit init{WeightInit::Kind::fan_in};

  const Block conv1 =
      sequence("conv1", {conv2d("conv1", {.in = image[0], .out = 6, .kernel = 5}, init), relu(), max_pool(2, 2)});
  const Block conv2 =
      sequence("conv2", {conv2d("conv2", {.in = 6, .out = 16, .kernel = 5}, init), relu(), max_pool(2, 2), flatten()});
  const int64_t flat = conv2.output_shape(conv1.output_shape(image))[0];  // 256 for 28 x 28 pixels
  return {.blocks = {conv1, conv2, sequence("fc1", {linear("fc1", flat, 120, init), relu()}),
                     sequence("fc2", {linear("fc2", 120, 84, init), relu()}),
                     linear("fc3", 84, section.integer("outputs"), init)}};
}

}  // namespace

extern const Entry entry;
const Entry entry = {
    .variant = {.name = "lenet5",
                .summary = "classic LeNet-5 with ReLU and max pooling (44,426 parameters)",
                .options = {},
                .check = check_image},
    .build = build,
};

}  // namespace mgt::model::lenet5
