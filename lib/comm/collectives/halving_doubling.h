// Recursive halving and doubling (Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations
// in MPICH", 2005): in each round a rank exchanges with one partner, first half of the vector with one half of the
// ranks away, then a quarter, and so on. Sends as little as the ring in log2(size) rounds; the number of ranks must be
// a power of two (the caller falls back to the ring). Every rank ends with the same bits, as in ring.h, where the
// arguments are explained.
#pragma once

#include "comm/collectives/link.h"

namespace mgt::comm::halving_doubling {

void reduce_scatter(Link& link, const at::Tensor& vector, const at::Tensor& sums, const at::Tensor& own);
void all_gather(Link& link, const at::Tensor& vector);

}  // namespace mgt::comm::halving_doubling
