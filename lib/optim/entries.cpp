#include "optim/entry.h"

#include "core/error.h"

namespace mgt::optim {

config::SectionSpec section() {
  config::SectionSpec spec{
      .key = "optimizer",
      .summary = "how parameters follow their gradients",
      .main_key = "name",
      .options = {config::number("lr", 0.1, "learning rate", {.at_least = 0}),
                  config::boolean("no_decay", false,
                                  "no weight decay of biases and normalization layers: tensors of one dimension")},
      .variants = {},
      .fallback = "sgd"};
  for (const Entry* entry : entries()) spec.variants.push_back(entry->variant);
  return spec;
}

bool no_decay(const config::Config& config) { return config.section("optimizer").boolean("no_decay"); }

std::unique_ptr<Optimizer> make(const config::Config& config, const Subject& subject) {
  const config::Section& section = config.section("optimizer");
  for (const Entry* entry : entries()) {
    if (entry->variant.name == section.text("name")) return entry->make(section, subject);
  }
  throw InternalError("no optimizer is called " + section.text("name"));
}

}  // namespace mgt::optim
