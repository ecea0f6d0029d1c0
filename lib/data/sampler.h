// Which samples make up which step. `indices(epoch, step)` is a pure function of seed, epoch, step and global batch;
// ranks take contiguous parts of it (core/split.h), so every rank count sees the same batches. No sample is lost,
// repeated or padded. A Sampler keeps the order of one epoch at a time and belongs to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace mgt::data {

// The order of an epoch: a permutation of 0 .. size-1.
using Order = std::function<std::vector<int64_t>(int64_t epoch)>;

Order file_order(int64_t size);                     // 0, 1, 2, ...
Order shuffled_order(int64_t size, uint64_t seed);  // Fisher-Yates on counter-based numbers

class Sampler {
 public:
  // size >= 1, batch_size >= 1. The last short batch of an epoch is kept unless drop_last.
  Sampler(int64_t size, int64_t batch_size, Order order, bool drop_last = false);

  int64_t steps_per_epoch() const;
  // The samples of the global batch; InternalError when `step` is not in [0, steps_per_epoch).
  std::vector<int64_t> indices(int64_t epoch, int64_t step);

 private:
  int64_t size_;
  int64_t batch_size_;
  Order order_;
  bool drop_last_;
  int64_t cached_epoch_ = -1;
  std::vector<int64_t> cached_order_;
};

}  // namespace mgt::data
