// The one rule by which rows are shared out: contiguous, sizes differ by at most one, the first parts are larger,
// empty parts are allowed. Pure functions; every rank computes the same answer.
#pragma once

#include <cstdint>

namespace mgt {

struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// Part `index` of `count` items over `parts` (torch.tensor_split's rule). Needs count >= 0, 0 <= index < parts.
constexpr Range split(int64_t count, int64_t parts, int64_t index) {
  const int64_t base = count / parts;
  const int64_t larger = count % parts;
  const int64_t begin = index * base + (index < larger ? index : larger);
  return {begin, begin + base + (index < larger ? 1 : 0)};
}

}  // namespace mgt
