// Counts the bytes of CPU tensors that are alive, by the rank whose thread made them: LibTorch's allocator reports to
// whoever takes the profiler's place on a thread. One LiveBytes is shared by all ranks, since one rank may free what
// another made. Threads of the library's own are not seen, so ranks must talk over the local backend.
#pragma once

#include "torch_pch.h"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace mgt::test {

class LiveBytes {
 public:
  explicit LiveBytes(int64_t ranks) : ranks_(static_cast<std::size_t>(ranks)) {}

  int64_t live(int64_t rank) const {
    const std::lock_guard lock(mutex_);
    return ranks_[static_cast<std::size_t>(rank)].live;
  }

  // The most at once since the last call.
  int64_t take_peak(int64_t rank) {
    const std::lock_guard lock(mutex_);
    Rank& own = ranks_[static_cast<std::size_t>(rank)];
    return std::exchange(own.peak, own.live);
  }

  // `bytes` are negative where memory is freed.
  void report(int64_t rank, const void* memory, int64_t bytes) {
    const std::lock_guard lock(mutex_);
    if (bytes > 0) {
      blocks_[memory] = {rank, bytes};
      add(rank, bytes);
    } else if (const auto found = blocks_.find(memory); found != blocks_.end()) {
      add(found->second.rank, -found->second.bytes);
      blocks_.erase(found);
    }
  }

 private:
  struct Rank {
    int64_t live = 0;
    int64_t peak = 0;
  };
  struct Block {
    int64_t rank;
    int64_t bytes;
  };

  void add(int64_t rank, int64_t bytes) {
    Rank& own = ranks_[static_cast<std::size_t>(rank)];
    own.live += bytes;
    own.peak = std::max(own.peak, own.live);
  }

  mutable std::mutex mutex_;
  std::vector<Rank> ranks_;
  std::unordered_map<const void*, Block> blocks_;
};

// While it lives, what its thread allocates is the rank's.
class CountedThread {
 public:
  CountedThread(LiveBytes& bytes, int64_t rank)
      : guard_(c10::DebugInfoKind::PROFILER_STATE, std::make_shared<Reporter>(bytes, rank)) {}

 private:
  class Reporter final : public c10::MemoryReportingInfoBase {
   public:
    Reporter(LiveBytes& bytes, int64_t rank) : bytes_(bytes), rank_(rank) {}
    void reportMemoryUsage(void* memory, int64_t size, size_t, size_t, c10::Device) override {
      bytes_.report(rank_, memory, size);
    }
    bool memoryProfilingEnabled() const override { return true; }

   private:
    LiveBytes& bytes_;
    int64_t rank_;
  };

  c10::DebugInfoGuard guard_;
};

}  // namespace mgt::test
