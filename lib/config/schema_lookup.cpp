#include "config/schema_lookup.h"

#include <algorithm>

namespace mgt::config {
namespace {

template <typename Item>
const Item* find_by(const std::vector<Item>& items, std::string Item::*member, std::string_view word) {
  const auto found = std::find_if(items.begin(), items.end(), [&](const Item& item) { return item.*member == word; });
  return found == items.end() ? nullptr : &*found;
}

template <typename Item>
std::vector<std::string> all_of(const std::vector<Item>& items, std::string Item::*member) {
  std::vector<std::string> words;
  for (const Item& item : items) words.push_back(item.*member);
  return words;
}

}  // namespace

const Option* find_option(const std::vector<Option>& options, std::string_view key) {
  return find_by(options, &Option::key, key);
}

const SectionSpec* find_section(const Schema& schema, std::string_view key) {
  return find_by(schema.sections, &SectionSpec::key, key);
}

const Variant* find_variant(const SectionSpec& section, std::string_view name) {
  return find_by(section.variants, &Variant::name, name);
}

std::vector<Option> options_of(const SectionSpec& section, const Variant* variant) {
  std::vector<Option> options = section.options;
  if (variant != nullptr) options.insert(options.end(), variant->options.begin(), variant->options.end());
  return options;
}

std::vector<std::string> keys_of(const std::vector<Option>& options) { return all_of(options, &Option::key); }

std::vector<std::string> variant_names(const SectionSpec& section) { return all_of(section.variants, &Variant::name); }

}  // namespace mgt::config
