// Small text helpers for messages. Pure functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace mgt {

// The parts written one after another: concat("rank ", 1, " of ", 4).
template <typename... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

// "a, b, c"
template <typename Range>
std::string join(const Range& items, std::string_view separator = ", ") {
  std::ostringstream out;
  bool first = true;
  for (const auto& item : items) {
    if (!first) out << separator;
    out << item;
    first = false;
  }
  return out.str();
}

// "1 GPU", "3 ranks"
std::string counted(int64_t count, const std::string& thing);

// The candidate with the smallest edit distance to `word`; empty when none is near enough to be meant.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// `text` cut to `limit` bytes with "..." at the end, so that a message stays short whatever the user wrote.
std::string shortened(std::string_view text, std::size_t limit = 60);

// Three significant digits, for people: 2.3e-15.
std::string brief(double value);

// With `digits` decimals: 0.72.
std::string fixed(double value, int digits);

// The shortest decimal that reads back to the same double: 0.1, 1e-08, 2.285679107323412.
std::string shortest(double value);

}  // namespace mgt
