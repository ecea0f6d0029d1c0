// Ranks that are processes (or threads) of one host, over c10d's Gloo on the loopback interface: no other machine can
// reach it. Each rank owns its communicator.
#pragma once

#include "comm/collectives/algorithm.h"
#include "comm/communicator.h"
#include "comm/rendezvous.h"

#include <memory>

namespace mgt::comm {

// Returns when every rank is connected. CommError after `timeout_s`.
std::unique_ptr<Communicator> make_gloo(Rendezvous& rendezvous, int64_t rank, int64_t size, double timeout_s,
                                        Algorithm algorithm = Algorithm::automatic);

}  // namespace mgt::comm
