// The product of the sizes that a file promises, which may be absurd. Pure function.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

namespace mgt {

// Nothing where a factor is negative or the product does not fit in 63 bits.
constexpr std::optional<int64_t> checked_product(std::span<const int64_t> factors) {
  int64_t product = 1;
  for (const int64_t factor : factors) {
    if (factor < 0) return std::nullopt;
    if (factor > 0 && product > std::numeric_limits<int64_t>::max() / factor) return std::nullopt;
    product *= factor;
  }
  return product;
}

}  // namespace mgt
