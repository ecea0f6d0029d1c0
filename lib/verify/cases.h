// The runs that `verify` compares: one that a user asks for, and all that the registry makes possible. Values and pure
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mgt::verify {

// One run: what is set beyond the user's config.
struct Case {
  std::vector<std::string> overrides;  // as after --set
  std::optional<int64_t> world;        // number of CPU devices; absent: the devices of the config
};

// Every case of the registry: each strategy in each world over each communicator; every combination of its switches,
// alone and with each of its other options, and those in pairs; accumulation and clipping; then each optimizer in the
// same way under every strategy, and each schedule.
std::vector<Case> all_cases(const std::vector<int64_t>& worlds);

// Every strategy, number of devices and communicator that must give the same bits under `determinism: invariant`, with
// each of its options. A model may have too few blocks for some.
std::vector<Case> invariant_cases(int64_t virtual_shards);

}  // namespace mgt::verify
