// The errors for words that the schema does not know, with the word that was meant. Internal to config. Pure functions.
#pragma once

#include "config/option.h"
#include "config/yaml.h"

#include <string>

namespace mgt::config {

// Whether any variant of the schema has this dotted key.
bool is_known_key(const Schema& schema, const std::string& dotted_key);

// `entry` is a child of the top level whose key is neither an option nor a section.
[[noreturn]] void fail_unknown_key(const Schema& schema, const Node& entry);

// `entry` is a child of `section` whose key `variant` (null where there are none) does not have. `name_origin`: where
// the variant's name came from.
[[noreturn]] void fail_unknown_option(const Schema& schema, const SectionSpec& section, const Variant* variant,
                                      const Origin& name_origin, const Node& entry);

// `name` is the node of a section's `name` and no variant is called so.
[[noreturn]] void fail_unknown_variant(const SectionSpec& section, const Node& name);

// " (did you mean WORD?)", or nothing when no candidate is near.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace mgt::config
