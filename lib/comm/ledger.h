// What a rank's collectives cost: operations, bytes that this rank sent to others, and seconds it waited for them.
// One Ledger belongs to one rank; hooks of autograd and the rank's own thread may both write.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>

namespace mgt::comm {

enum class Collective { all_reduce, reduce_scatter, all_gather, broadcast, send, recv, barrier };
inline constexpr std::size_t kCollectives = 7;

const char* name_of(Collective collective);

struct Account {
  int64_t operations = 0;
  int64_t bytes_sent = 0;
  double wait_s = 0;
};

class Ledger {
 public:
  void started(Collective collective);
  void sent(Collective collective, int64_t bytes);
  void waited(Collective collective, double seconds);
  Account of(Collective collective) const;
  Account total() const;

 private:
  mutable std::mutex mutex_;
  std::array<Account, kCollectives> accounts_{};
};

// Bytes that `rank` of `size` must send for a collective over `bytes` bytes of `item_size` each, by the algorithm that
// sends least (ring, or reduce-scatter and all-gather): summed over the ranks an all-reduce is 2 (size - 1) bytes a
// byte (Patarasuk and Yuan, 2009). `bytes` is the whole vector, not a rank's part.
int64_t traffic(Collective collective, int64_t bytes, int64_t item_size, int64_t rank, int64_t size);

}  // namespace mgt::comm
