// The options of a pipeline, which `pipeline` and `hybrid` share: declared once, checked once. Pure functions.
#pragma once

#include "strategy/entry.h"
#include "strategy/mesh/schedule.h"

#include <string>
#include <vector>

namespace mgt::strategy {

// microbatches, schedule, chunks, split.
std::vector<config::Option> pipeline_options();

// What their values alone show to be wrong; ConfigError.
void check_pipeline(const config::Config& config);

Pipeline pipeline_of(const config::Config& config, int64_t stages);

// The blocks of each part as `split` says; empty: balanced.
std::vector<Range> cut_of(const config::Config& config);

// The schedule of a full step, and its idle share: simulated, and by formula. ConfigError: it is too wide.
std::string drawn_schedule(const config::Config& config, int64_t stages, int64_t pieces);

// ConfigError, at `key` where there are more parts than the model has blocks.
void check_parts(const config::Config& config, const model::Model& model, int64_t stages, const std::string& key);

}  // namespace mgt::strategy
