// `--set KEY=VALUE`, applied to the tree of a file before it is read. Internal to config. Pure functions.
#pragma once

#include "config/option.h"
#include "config/yaml.h"

#include <string>

namespace mgt::config {

// Puts VALUE, which is YAML, in the place of what stands at KEY ("batch_size", "strategy", "strategy.stage"); null
// removes the key. Whether the schema has the key, and takes the value, is left to the reader, which checks the whole
// tree.
void apply_override(const Schema& schema, Node& root, const std::string& text);

}  // namespace mgt::config
