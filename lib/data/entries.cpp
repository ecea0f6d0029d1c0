#include "core/error.h"
#include "data/entry.h"

#include <algorithm>

namespace mgt::data {
namespace {

std::vector<config::Option> common_options() {
  return {config::integer("limit", {}, "keep the first rows of the training set", {.at_least = 1}),
          config::integer("test_limit", {}, "keep the first rows of the test set", {.at_least = 1}),
          config::boolean("drop_last", false, "leave out the last batch of an epoch where it is short")};
}

const Entry& entry_named(const std::string& name) {
  const auto found = std::ranges::find(entries(), name, [](const Entry* entry) { return entry->variant.name; });
  require(found != entries().end(), "the config names a data set that is not in the table: " + name);
  return **found;
}

}  // namespace

config::SectionSpec section() {
  config::SectionSpec spec{.key = "data",
                           .summary = "what is learned and what is tested",
                           .main_key = "name",
                           .options = common_options(),
                           .variants = {},
                           .fallback = "fashion_mnist"};
  for (const Entry* entry : entries()) spec.variants.push_back(entry->variant);
  return spec;
}

Splits load(const config::Config& config, const LoadContext& context) {
  const config::Section& section = config.section("data");
  Splits splits = entry_named(section.text("name")).load(section, context);
  if (section.has("limit")) splits.train = first_rows(splits.train, section.integer("limit"));
  if (section.has("test_limit") && splits.test) {
    splits.test = first_rows(*splits.test, section.integer("test_limit"));
  }
  return splits;
}

}  // namespace mgt::data
