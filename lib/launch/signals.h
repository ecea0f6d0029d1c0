// Ctrl-C and SIGTERM as a wish to stop that the training loop looks at before each step. While a StopSignals lives it
// owns the handlers of SIGINT, SIGTERM and SIGALRM of this process; there is at most one, on the main thread.
#pragma once

#include <atomic>
#include <csignal>

namespace mgt::launch {

class StopSignals {
 public:
  enum class Role {
    alone,       // no step lasts longer than the wish: after 3 s, or at a second signal, the process ends at once
    rank,        // as alone, but deaf to a second signal: terminal and launcher both send one
    supervisor,  // only counts; it has ranks to end first
  };
  explicit StopSignals(Role role);
  ~StopSignals();  // the handlers that were there before; after a signal the 3 s run on, for the rest of the program
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  static const std::atomic<int>& signal();  // the first one received; 0: none
  static int count();                       // how many were received

 private:
  struct sigaction interrupt_, terminate_, alarm_;
};

}  // namespace mgt::launch
