#include "data/sampler.h"

#include "core/error.h"
#include "core/seed.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace mgt::data {

Order file_order(int64_t size) {
  return [size](int64_t) {
    std::vector<int64_t> order(static_cast<std::size_t>(size));
    std::iota(order.begin(), order.end(), int64_t{0});
    return order;
  };
}

Order shuffled_order(int64_t size, uint64_t seed) {
  return [size, seed](int64_t epoch) {
    std::vector<int64_t> order = file_order(size)(epoch);
    Stream random(seed, Purpose::shuffle, static_cast<uint32_t>(epoch));
    for (std::size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
    return order;
  };
}

Sampler::Sampler(int64_t size, int64_t batch_size, Order order, bool drop_last)
    : size_(size), batch_size_(batch_size), order_(std::move(order)), drop_last_(drop_last) {
  require(size_ >= 1 && batch_size_ >= 1, "a sampler needs at least one sample and batches of at least one");
}

int64_t Sampler::steps_per_epoch() const {
  const int64_t full_batches = size_ / batch_size_;
  const bool has_short_batch = size_ % batch_size_ != 0;
  return full_batches + (has_short_batch && !drop_last_ ? 1 : 0);
}

std::vector<int64_t> Sampler::indices(int64_t epoch, int64_t step) {
  require(epoch >= 0 && step >= 0 && step < steps_per_epoch(), "the sampler was asked for a step outside of the epoch");
  if (epoch != cached_epoch_) {
    cached_order_ = order_(epoch);
    cached_epoch_ = epoch;
    require(static_cast<int64_t>(cached_order_.size()) == size_, "the order of an epoch has every sample");
  }
  const int64_t begin = step * batch_size_;
  const int64_t end = std::min(begin + batch_size_, size_);
  return {cached_order_.begin() + begin, cached_order_.begin() + end};
}

}  // namespace mgt::data
