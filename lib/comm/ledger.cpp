#include "comm/ledger.h"

#include "core/split.h"

namespace mgt::comm {

const char* name_of(Collective collective) {
  constexpr std::array<const char*, kCollectives> kNames = {"all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                                            "send",       "recv",           "barrier"};
  return kNames[static_cast<std::size_t>(collective)];
}

void Ledger::started(Collective collective) {
  const std::lock_guard lock(mutex_);
  ++accounts_[static_cast<std::size_t>(collective)].operations;
}

void Ledger::sent(Collective collective, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  accounts_[static_cast<std::size_t>(collective)].bytes_sent += bytes;
}

void Ledger::waited(Collective collective, double seconds) {
  const std::lock_guard lock(mutex_);
  accounts_[static_cast<std::size_t>(collective)].wait_s += seconds;
}

Account Ledger::of(Collective collective) const {
  const std::lock_guard lock(mutex_);
  return accounts_[static_cast<std::size_t>(collective)];
}

Account Ledger::total() const {
  const std::lock_guard lock(mutex_);
  Account sum;
  for (const Account& account : accounts_) {
    sum.operations += account.operations;
    sum.bytes_sent += account.bytes_sent;
    sum.wait_s += account.wait_s;
  }
  return sum;
}

int64_t traffic(Collective collective, int64_t bytes, int64_t item_size, int64_t rank, int64_t size) {
  if (size == 1) return 0;
  const int64_t own = split(bytes / item_size, size, rank).size() * item_size;  // this rank's part of the vector
  switch (collective) {
    case Collective::reduce_scatter:
      return bytes - own;  // every part but its own, once
    case Collective::all_gather:
      return own * (size - 1);  // its own part to everyone
    case Collective::all_reduce:
      return bytes - own + own * (size - 1);
    case Collective::broadcast:
      return rank == 0 ? bytes * (size - 1) : 0;  // `rank` counted from the root
    case Collective::send:
      return bytes;
    default:
      return 0;
  }
}

}  // namespace mgt::comm
