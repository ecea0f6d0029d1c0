// The reference of data parallel training whose replicas keep BatchNorm statistics of their own (`bn: local`): one
// device that takes the batch in the same shards, normalises each by itself, and makes one update. Written without any
// of the strategies' machinery for several devices.
#pragma once

#include "strategy/entry.h"

#include <memory>

namespace mgt::verify {

// Whether the replicas of this config's run do so.
bool has_local_statistics(const config::Config& config);

std::unique_ptr<strategy::Strategy> make_local_statistics(const strategy::Context& context, int64_t shards);

}  // namespace mgt::verify
