// The ring (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009): every
// rank sends to the next one and receives from the one before, in size - 1 rounds of a part each. Sends the least
// bytes that are possible, in the most rounds. An all-reduce is a reduce-scatter, then an all-gather: each part is
// summed on one rank, so every rank ends with the same bits. Every rank calls the same function with a vector of the
// same length (round.h).
#pragma once

#include "comm/collectives/link.h"

namespace mgt::comm::ring {

// `own` becomes this rank's part of the vectors' sum. Sums on their way lie in `sums`, as long as `vector`; `sums` may
// be `vector`, and `own` this rank's part of either.
void reduce_scatter(Link& link, const at::Tensor& vector, const at::Tensor& sums, const at::Tensor& own);

// Fills every part of `vector` but this rank's, which is there already.
void all_gather(Link& link, const at::Tensor& vector);

}  // namespace mgt::comm::ring
