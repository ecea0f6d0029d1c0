#include "core/seed.h"

#include <cmath>
#include <numbers>

namespace mgt {

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

// The key holds the seed. The counter holds (block of this stream and purpose, epoch, index).
Stream::Stream(uint64_t seed, Purpose purpose, uint32_t epoch, uint64_t index)
    : key_{static_cast<uint32_t>(seed) ^ (static_cast<uint32_t>(index >> 32) * 0x85EBCA6BU),
           static_cast<uint32_t>(seed >> 32) ^ (static_cast<uint32_t>(purpose) << 24)},
      counter_{0, epoch, static_cast<uint32_t>(index), static_cast<uint32_t>(purpose)} {}

uint32_t Stream::bits() {
  if (used_ == 4) {
    block_ = philox(counter_, key_);
    ++counter_[0];
    used_ = 0;
  }
  return block_[static_cast<std::size_t>(used_++)];
}

uint64_t Stream::below(uint64_t bound) {
  // Rejection: the largest multiple of bound that fits in 64 bits keeps every value equally likely.
  const uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
  uint64_t value = 0;
  do {
    value = (static_cast<uint64_t>(bits()) << 32) | bits();
  } while (value >= limit);
  return value % bound;
}

double Stream::uniform() {
  const uint64_t high = bits() >> 5, low = bits() >> 6;
  return (static_cast<double>(high) * 67108864.0 + static_cast<double>(low)) / 9007199254740992.0;
}

double Stream::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  const double angle = 2.0 * std::numbers::pi * uniform();
  spare_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

}  // namespace mgt
