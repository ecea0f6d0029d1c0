// Options and values in words: for messages, for the documentation, and as YAML. Internal to config. Pure functions.
#pragma once

#include "config/option.h"

#include <string>

namespace mgt::config {

// What the option wants: "a whole number", "one of fp32, fp64", "a list of 2 numbers".
std::string wanted(const Option& option);

// "at least 0 and below 1", "from 1 to 3"; empty without bounds.
std::string range_text(const Bounds& bounds);

// The value as one line of YAML that the reader takes back to the same value; empty for no value.
std::string yaml_text(const Value& value);

}  // namespace mgt::config
