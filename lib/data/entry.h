// What a data set must define: one `const Entry entry` in data/<name>/entry.cpp. CMake makes the table from the
// folders.
#pragma once

#include "config/config.h"
#include "core/file_system.h"
#include "data/dataset.h"

#include <string>
#include <vector>

namespace mgt::data {

struct LoadContext {
  const FileSystem& files;
  uint64_t seed = 0;
};

struct Entry {
  config::Variant variant;  // name, one-line summary, its own options, checks
  // Reads everything and validates it; DataError names file and offset. `section` is the config's `data` section;
  // `limit` and `test_limit` are applied by `load`.
  Splits (*load)(const config::Section& section, const LoadContext& context);
};

// All data sets, sorted by name.
const std::vector<const Entry*>& entries();

// The `data` section of the schema: options of every data set (limit, test_limit, drop_last) and one variant an entry.
config::SectionSpec section();

// The data set that the config names, cut to `limit` and `test_limit`.
Splits load(const config::Config& config, const LoadContext& context);

}  // namespace mgt::data
