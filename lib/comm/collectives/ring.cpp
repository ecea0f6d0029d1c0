#include "comm/collectives/ring.h"

#include "comm/collectives/round.h"

#include "torch_pch.h"

namespace mgt::comm::ring {

// A part starts at the rank after its own and travels once around, gathering a summand at each stop.
void reduce_scatter(Link& link, const at::Tensor& vector, const at::Tensor& sums, const at::Tensor& own) {
  const int64_t rank = link.rank(), size = link.size();
  const int64_t next = (rank + 1) % size, previous = (rank + size - 1) % size;
  at::Tensor leaving = part(vector, size, rank - 1);
  for (int64_t round = 1; round < size; ++round) {
    const int64_t index = rank - 1 - round;
    const at::Tensor sum = round == size - 1 ? own : part(sums, size, index);
    exchange_and_add(link, leaving, next, part(vector, size, index), sum, previous);
    leaving = sum;
  }
}

void all_gather(Link& link, const at::Tensor& vector) {
  const int64_t rank = link.rank(), size = link.size();
  const int64_t next = (rank + 1) % size, previous = (rank + size - 1) % size;
  for (int64_t round = 0; round < size - 1; ++round) {
    exchange(link, part(vector, size, rank - round), next, part(vector, size, rank - round - 1), previous);
  }
}

}  // namespace mgt::comm::ring
