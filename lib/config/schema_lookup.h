// Finding options, sections and variants in a schema by name. Internal to config. Pure functions; results point into
// the schema, null where there is none.
#pragma once

#include "config/option.h"

#include <string>
#include <string_view>
#include <vector>

namespace mgt::config {

const Option* find_option(const std::vector<Option>& options, std::string_view key);
const SectionSpec* find_section(const Schema& schema, std::string_view key);
const Variant* find_variant(const SectionSpec& section, std::string_view name);

// The options of the section under this variant (null where the section has none), without `name`.
std::vector<Option> options_of(const SectionSpec& section, const Variant* variant);

std::vector<std::string> keys_of(const std::vector<Option>& options);
std::vector<std::string> variant_names(const SectionSpec& section);

}  // namespace mgt::config
