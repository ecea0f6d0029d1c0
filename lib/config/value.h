// From a node of the YAML tree to the typed value of an option, checked against everything that the option declares.
// Internal to config. Pure functions.
#pragma once

#include "config/option.h"
#include "config/yaml.h"

#include <string>

namespace mgt::config {

// ConfigError with the node's place and `key`, the dotted key.
Value value_of(const Option& option, const Node& node, const std::string& key);

// A section's node as a map: a scalar stands for the section's main key. ConfigError when it is neither.
Node map_of(const SectionSpec& section, const Node& node);

// A node that must be a word, such as a variant's name.
const std::string& text_of(const Node& node, const std::string& key, const std::string& wanted_text);

// The option's default as a value of its kind; InternalError when it was declared with another type.
Value fallback_of(const Option& option);

}  // namespace mgt::config
