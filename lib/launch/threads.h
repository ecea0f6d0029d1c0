// Ranks that are threads of this process.
#pragma once

#include "launch/rank.h"

#include <functional>

namespace mgt::launch {

using RankWork = std::function<void(const RankContext&)>;

// Calls `work` in `size` threads, each with a copy of `common` that has its rank, and joins them all. The first that
// throws aborts the collectives of the others (where there is a hub); the error that was the cause is thrown.
void run_threads(const RankContext& common, int64_t size, const RankWork& work);

}  // namespace mgt::launch
