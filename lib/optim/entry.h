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
  // An optimizer for one flat range like `parameters` (dtype, device, size).
  std::unique_ptr<Optimizer> (*make)(const config::Section& section, const at::Tensor& parameters);
};

// All optimizers, sorted by name.
const std::vector<const Entry*>& entries();

// The `optimizer` section of the schema: `lr` and one variant an entry.
config::SectionSpec section();

// The optimizer that the config names.
std::unique_ptr<Optimizer> make(const config::Config& config, const at::Tensor& parameters);

}  // namespace mgt::optim
