// From a Config back to text: for people, for the run's folder, for editors. Pure functions.
#pragma once

#include "config/config.h"
#include "config/option.h"

#include <string>

namespace mgt::config {

// The whole resolved file as YAML that `resolve` reads back to the same values, in the schema's order; every option
// without a value is left out. `with_origins` adds a comment with the origin of each value.
std::string to_yaml(const Schema& schema, const Config& config, bool with_origins);

// JSON Schema (draft 2020-12) of what `resolve` accepts, for editors.
std::string json_schema(const Schema& schema);

// All options as a Markdown table: key, type, default, range, meaning.
std::string option_table(const Schema& schema);

}  // namespace mgt::config
