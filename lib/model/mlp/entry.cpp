// A multi-layer perceptron: linear layers with ReLU between them. With input [10], no hidden layer and 10 outputs it is
// the DDP tutorial's Linear(10, 10).
#include "model/entry.h"
#include "model/layers.h"

namespace mgt::model::mlp {
namespace {

Model build(const config::Section& section) {
  const WeightInit init{WeightInit::Kind::fan_in};
  std::vector<int64_t> widths = section.integers("hidden");
  widths.push_back(section.integer("outputs"));

  Model model;
  int64_t in = elements(section.integers("input"));
  for (std::size_t index = 0; index < widths.size(); ++index) {
    const std::string name = "fc" + std::to_string(index + 1);
    std::vector<Block> layers;
    if (index == 0) layers.push_back(flatten());
    layers.push_back(linear(name, in, widths[index], init));
    if (index + 1 < widths.size()) layers.push_back(relu());
    model.blocks.push_back(sequence(name, std::move(layers)));
    in = widths[index];
  }
  return model;
}

}  // namespace

extern const Entry entry;
const Entry entry = {
    .variant = {.name = "mlp",
                .summary = "linear layers with ReLU between them",
                .options = {{.key = "hidden",
                             .kind = config::Kind::integers,
                             .fallback = std::vector<int64_t>{256},
                             .help = "widths of the hidden layers; [] is one linear layer",
                             .bounds = {.at_least = 1}}},
                .check = {}},
    .build = build,
    .narrow = {"hidden=[16]"},
};

}  // namespace mgt::model::mlp
