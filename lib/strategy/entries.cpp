#include "strategy/entry.h"

#include "core/error.h"

namespace mgt::strategy {

config::SectionSpec section() {
  config::SectionSpec spec{.key = "strategy",
                           .summary = "how the devices work together",
                           .main_key = "name",
                           .options = {},
                           .variants = {},
                           .fallback = "single"};
  for (const Entry* entry : entries()) spec.variants.push_back(entry->variant);
  return spec;
}

const Entry& entry_of(const config::Config& config) {
  const std::string& name = config.section("strategy").text("name");
  for (const Entry* entry : entries()) {
    if (entry->variant.name == name) return *entry;
  }
  throw InternalError("no strategy is called " + name);
}

int64_t data_ranks(const config::Config& config, int64_t devices) {
  const Entry& entry = entry_of(config);
  if (entry.data_ranks) return entry.data_ranks(config, devices);
  return entry.splits_batch ? devices : 1;
}

}  // namespace mgt::strategy
