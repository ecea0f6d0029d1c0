// Cutting a chain of blocks into consecutive parts. Pure functions.
#pragma once

#include "core/split.h"

#include <cstdint>
#include <vector>

namespace mgt::strategy {

// `costs` cut into `parts` consecutive, non-empty ranges whose largest sum is as small as can be. Needs
// 1 <= parts <= costs.size().
std::vector<Range> balanced_cut(const std::vector<int64_t>& costs, int64_t parts);

// Consecutive ranges of these sizes.
std::vector<Range> ranges_of(const std::vector<int64_t>& sizes);

}  // namespace mgt::strategy
