// By which algorithm a communicator reduces and gathers. Values; pure functions.
#pragma once

#include "comm/ledger.h"

#include <cstdint>
#include <string>

namespace mgt::comm {

enum class Algorithm { automatic, library, ring, halving_doubling };  // library: what the backend brings

Algorithm algorithm_of(const std::string& name);  // as in the config: auto, library, ring, halving_doubling

// What a communicator asked for `algorithm` uses for one collective: never `automatic`. Halving and doubling pairs the
// ranks, so a number of ranks that is no power of two falls back to the ring. Only reductions and gathers have
// algorithms, and one rank needs none: else library.
Algorithm chosen(Algorithm algorithm, Collective collective, int64_t size);

}  // namespace mgt::comm
