#include "launch/threads.h"

#include "comm/local/local.h"
#include "launch/failure.h"

#include <mutex>
#include <thread>
#include <vector>

namespace mgt::launch {
namespace {

// What the threads tell of their ends.
class Failures {
 public:
  explicit Failures(std::shared_ptr<comm::Hub> hub) : hub_(std::move(hub)) {}

  // Calls `part` of the work of `rank`; if that fails, the collectives of all ranks do.
  void guard(int64_t rank, const std::function<void()>& part) {
    try {
      part();
    } catch (...) {
      const Failure failure = failure_of(rank, std::current_exception());
      const std::lock_guard lock(mutex_);
      failures_.push_back(failure);
      if (hub_) comm::abort(*hub_, failure.message);
    }
  }

  // After all threads are joined.
  void throw_cause() const {
    if (!failures_.empty()) throw_failure(cause_of(failures_));
  }

 private:
  std::shared_ptr<comm::Hub> hub_;
  std::mutex mutex_;
  std::vector<Failure> failures_;
};

}  // namespace

void run_threads(const RankContext& common, int64_t size, const RankWork& work) {
  Failures failures(common.hub);
  const auto run_rank = [&](int64_t rank) {
    RankContext context = common;
    context.rank = rank;
    failures.guard(rank, [&] { work(context); });
  };
  std::vector<std::jthread> threads;  // join when they go
  for (int64_t rank = 0; rank < size; ++rank) {
    failures.guard(rank, [&] { threads.emplace_back(run_rank, rank); });  // too many threads on this machine?
  }
  threads.clear();
  failures.throw_cause();
}

}  // namespace mgt::launch
