// Reduce-scatter, all-gather and all-reduce by own algorithms, for a backend that can only send and receive. A thread
// carries them out one after another in the order in which they were started, which is the same on every rank: so
// messages match, and backward goes on meanwhile. The backend's other operations pass by; they have messages of their
// own. After a failure all later collectives fail at once. Belongs to one communicator, which starts operations one at
// a time.
#pragma once

#include "comm/collectives/algorithm.h"
#include "comm/collectives/link.h"
#include "comm/communicator.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace mgt::comm {

class OwnCollectives {
 public:
  OwnCollectives(Algorithm algorithm, std::unique_ptr<Link> link);
  // What is not begun is dropped; what is under way ends, or runs into the link's timeout.
  ~OwnCollectives();
  OwnCollectives(const OwnCollectives&) = delete;
  OwnCollectives& operator=(const OwnCollectives&) = delete;

  bool take(const Operation& operation) const;  // or leave it to the backend
  std::unique_ptr<Pending> start(const Operation& operation, Ledger& ledger);

 private:
  void run(const std::stop_token& stop);
  void carry_out(const Operation& operation, Ledger& ledger);

  const Algorithm algorithm_;
  const std::unique_ptr<Link> link_;
  std::string failure_;  // the thread's; empty: none yet
  std::mutex mutex_;
  std::condition_variable_any started_;
  std::deque<std::packaged_task<void()>> queue_;  // guarded by mutex_
  std::jthread thread_;
};

}  // namespace mgt::comm
