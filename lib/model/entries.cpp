#include "model/entry.h"

#include "core/error.h"
#include "core/text.h"

#include <algorithm>

namespace mgt::model {
namespace {

using config::Kind;

std::vector<config::Option> common_options() {
  return {
      {.key = "input",
       .kind = Kind::integers,
       .fallback = std::vector<int64_t>{1, 28, 28},
       .help = "shape of one sample: [channels, height, width] or [features]",
       .bounds = {.at_least = 1}},
      config::integer("outputs", 10, "classes, or width of a regression", {.at_least = 1}),
      config::text("loss", "cross_entropy", "what is minimised; mse on classes compares with rows of 0 and 1",
                   {"cross_entropy", "mse"}),
  };
}

}  // namespace

config::SectionSpec section() {
  config::SectionSpec spec{.key = "model",
                           .summary = "the network",
                           .main_key = "name",
                           .options = common_options(),
                           .variants = {},
                           .fallback = "lenet"};
  for (const Entry* entry : entries()) spec.variants.push_back(entry->variant);
  return spec;
}

const Entry& entry_of(const config::Config& config) {
  const std::string& name = config.section("model").text("name");
  for (const Entry* entry : entries()) {
    if (entry->variant.name == name) return *entry;
  }
  throw InternalError("no model is called " + name);
}

Model build(const config::Config& config) {
  const config::Section& section = config.section("model");
  const Entry& entry = entry_of(config);
  Model model = entry.build(section);
  model.name = entry.variant.name;
  model.input = section.integers("input");
  model.outputs = section.integer("outputs");
  model.loss = section.text("loss") == "mse" ? Loss::mse : Loss::cross_entropy;
  for (const Shape& shape : model.shapes()) {
    if (std::ranges::any_of(shape, [](int64_t size) { return size < 1; })) {
      config.error_at("model.input", concat(shape_text(model.input), " is too small for ", model.name));
    }
  }
  return model;
}

void check_image(const config::Config& config) {
  if (config.section("model").integers("input").size() != 3) {
    config.error_at("model.input", "must be [channels, height, width] for this model");
  }
}

}  // namespace mgt::model
