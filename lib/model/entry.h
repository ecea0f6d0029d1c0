// What a model must define: one `const Entry entry` in model/<name>/entry.cpp. CMake makes the table from the folders.
#pragma once

#include "config/config.h"
#include "model/model.h"

#include <vector>

namespace mgt::model {

struct Entry {
  config::Variant variant;  // name, one-line summary, its own options, checks
  Model (*build)(const config::Section& section);
  // Settings of a small copy with the same structure, for `verify`: "hidden=16".
  std::vector<std::string> narrow = {};
};

// All models, sorted by name.
const std::vector<const Entry*>& entries();

// The `model` section of the schema: one variant an entry.
config::SectionSpec section();

// The entry that the config names.
const Entry& entry_of(const config::Config& config);

// The model that the config names. ConfigError where its layers do not fit the input's size.
Model build(const config::Config& config);

// For models of images: `input` must be [channels, height, width].
void check_image(const config::Config& config);

}  // namespace mgt::model
