// What an optimizer must define: one `const Entry entry` in optim/<name>/entry.cpp. CMake makes the table from the
// folders.
#pragma once

#include "config/config.h"
#include "optim/optimizer.h"

#include <memory>
#include <vector>

namespace mgt::optim {

struct Entry {
  config::Variant variant;  // name, one-line summary, its own options, checks
  // An optimizer for one flat range like that of `subject` (dtype, device, size).
  std::unique_ptr<Optimizer> (*make)(const config::Section& section, const Subject& subject);
};

// All optimizers, sorted by name.
const std::vector<const Entry*>& entries();

// The `optimizer` section of the schema: `lr`, `no_decay` and one variant an entry.
config::SectionSpec section();

bool no_decay(const config::Config& config);

// The optimizer that the config names.
std::unique_ptr<Optimizer> make(const config::Config& config, const Subject& subject);

}  // namespace mgt::optim
