// A fixed crew of threads, one per device, that a master gives the same kind of job again and again. The master waits
// for all. Belongs to the master's thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace mgt::strategy::data_parallel {

class Crew {
 public:
  // `start` runs once on each thread before its first job.
  Crew(int64_t size, std::function<void(int64_t member)> start);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Runs job(0) ... job(size - 1), each on its member's thread; returns when all have ended. Throws the first member's
  // exception.
  void run(const std::function<void(int64_t member)>& job);

 private:
  void work(int64_t member, const std::function<void(int64_t)>& start);

  std::mutex mutex_;
  std::condition_variable given_;
  std::condition_variable finished_;
  const std::function<void(int64_t)>* job_ = nullptr;
  int64_t round_ = 0;
  int64_t busy_ = 0;
  bool closing_ = false;
  std::vector<std::exception_ptr> errors_;
  std::vector<std::thread> threads_;
};

}  // namespace mgt::strategy::data_parallel
