#include "strategy/parts/balance.h"

#include "core/error.h"

#include <algorithm>
#include <limits>

namespace mgt::strategy {

// best[p][i]: the smallest possible largest sum when the first i items make p parts; cut[p][i]: where the last part
// begins.
std::vector<Range> balanced_cut(const std::vector<int64_t>& costs, int64_t parts) {
  const auto count = static_cast<int64_t>(costs.size());
  require(1 <= parts && parts <= count, "every part of a cut has a block");
  const auto rows = static_cast<std::size_t>(parts) + 1, columns = costs.size() + 1;
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> before(columns, 0);  // sums of the first i costs
  for (std::size_t i = 1; i < columns; ++i) before[i] = before[i - 1] + costs[i - 1];
  std::vector<std::vector<int64_t>> best(rows, std::vector<int64_t>(columns, kNever));
  std::vector<std::vector<std::size_t>> cut(rows, std::vector<std::size_t>(columns, 0));
  best[0][0] = 0;
  for (std::size_t part = 1; part < rows; ++part) {
    for (std::size_t end = part; end < columns; ++end) {
      for (std::size_t begin = part - 1; begin < end; ++begin) {
        const int64_t largest = std::max(best[part - 1][begin], before[end] - before[begin]);
        if (largest < best[part][end]) {
          best[part][end] = largest;
          cut[part][end] = begin;
        }
      }
    }
  }
  std::vector<Range> ranges(static_cast<std::size_t>(parts));
  std::size_t end = costs.size();
  for (std::size_t part = rows - 1; part >= 1; --part) {
    const std::size_t begin = cut[part][end];
    ranges[part - 1] = {static_cast<int64_t>(begin), static_cast<int64_t>(end)};
    end = begin;
  }
  return ranges;
}

std::vector<Range> ranges_of(const std::vector<int64_t>& sizes) {
  std::vector<Range> ranges;
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    ranges.push_back({begin, begin + size});
    begin += size;
  }
  return ranges;
}

}  // namespace mgt::strategy
