// What `tensor` and `hybrid` must know of a model that is cut. Pure functions.
#pragma once

#include "strategy/entry.h"

#include <string>

namespace mgt::strategy {

// ConfigError at `key` where a slice would be empty, or nothing can be cut.
void check_slices(const config::Config& config, const model::Model& model, int64_t slices, const std::string& key);

}  // namespace mgt::strategy
