#include "optim/entry.h"

#include "core/error.h"

namespace mgt::optim {

config::SectionSpec section() {
  config::SectionSpec spec{.key = "optimizer",
                           .summary = "how parameters follow their gradients",
                           .main_key = "name",
                           .options = {{.key = "lr",
                                        .kind = config::Kind::number,
                                        .fallback = 0.1,
                                        .help = "learning rate",
                                        .bounds = {.at_least = 0}}},
                           .variants = {},
                           .fallback = "sgd"};
  for (const Entry* entry : entries()) spec.variants.push_back(entry->variant);
  return spec;
}

std::unique_ptr<Optimizer> make(const config::Config& config, const at::Tensor& parameters) {
  const config::Section& section = config.section("optimizer");
  for (const Entry* entry : entries()) {
    if (entry->variant.name == section.text("name")) return entry->make(section, parameters);
  }
  throw InternalError("no optimizer is called " + section.text("name"));
}

}  // namespace mgt::optim
