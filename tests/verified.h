// Tests that ask `verify` as a library: a config shortened to a few steps of a narrow model, and one of its cases.
#pragma once

#include "test.h"

#include "config/reader.h"
#include "core/text.h"
#include "launch/rank.h"
#include "verify/verifier.h"

#include <string>
#include <vector>

namespace mgt::test {

inline verify::Request request(const std::string& yaml, std::vector<int64_t> worlds, int64_t steps) {
  return {.read =
              [yaml](const std::vector<std::string>& overrides) {
                return config::resolve(launch::schema(), {"test.yaml", yaml}, overrides);
              },
          .worlds = std::move(worlds),
          .steps = steps,
          .narrow = true};
}

// False where no such run is possible; the case is equal to its reference, or the test ends.
inline bool is_equal(verify::Verifier& verifier, const verify::Case& one) {
  INFO(join(one.overrides) << " on " << one.world.value_or(0));
  const verify::Verdict verdict = verifier.check(one);
  INFO(verdict.failed.value_or("") << verdict.refused.value_or(""));
  REQUIRE(!verdict.failed);
  return !verdict.refused;
}

}  // namespace mgt::test
