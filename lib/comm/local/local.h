// Ranks that are threads of one process. A Hub is shared by all of them; each has its own communicator. The rank that
// comes last to a collective carries it out for all, adding in the order of ranks, so every rank gets the same bits.
// A rank that calls another collective than its peers, or one with another size, is an error at once and not a hang.
// With an algorithm (ring, halving_doubling) the ranks send each other messages instead, as processes would.
#pragma once

#include "comm/collectives/algorithm.h"
#include "comm/communicator.h"

#include <memory>
#include <string>

namespace mgt::comm {

class Hub;

std::shared_ptr<Hub> make_hub(int64_t size, double timeout_s);

// Ends every collective of every rank, those under way and those to come, with `reason`; also in what was split from
// it. Any thread may call it.
void abort(Hub& hub, const std::string& reason);

std::unique_ptr<Communicator> make_local(std::shared_ptr<Hub> hub, int64_t rank,
                                         Algorithm algorithm = Algorithm::library);

}  // namespace mgt::comm
