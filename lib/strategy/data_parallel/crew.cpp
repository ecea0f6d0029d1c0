#include "strategy/data_parallel/crew.h"

#include <utility>

namespace mgt::strategy::data_parallel {

Crew::Crew(int64_t size, std::function<void(int64_t member)> start) : errors_(static_cast<std::size_t>(size)) {
  for (int64_t member = 0; member < size; ++member) {
    threads_.emplace_back([this, member, start] { work(member, start); });
  }
}

Crew::~Crew() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  given_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Crew::run(const std::function<void(int64_t member)>& job) {
  std::unique_lock lock(mutex_);
  job_ = &job;
  busy_ = static_cast<int64_t>(threads_.size());
  ++round_;
  given_.notify_all();
  finished_.wait(lock, [this] { return busy_ == 0; });
  for (std::exception_ptr& error : errors_) {
    if (error) std::rethrow_exception(std::exchange(error, nullptr));
  }
}

void Crew::work(int64_t member, const std::function<void(int64_t)>& start) {
  start(member);
  int64_t done = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    given_.wait(lock, [&] { return closing_ || round_ > done; });
    if (closing_) return;
    done = round_;
    lock.unlock();
    std::exception_ptr error;
    try {
      (*job_)(member);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    errors_[static_cast<std::size_t>(member)] = error;
    if (--busy_ == 0) finished_.notify_one();
  }
}

}  // namespace mgt::strategy::data_parallel
