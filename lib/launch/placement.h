// The choice behind `place`, apart from the machine it is made on. Pure functions and values.
#pragma once

#include "launch/rank.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mgt::launch {

struct Machine {
  int64_t gpus = 0;
  int64_t cores = 1;  // that this process may use
};

struct Decision {
  Placement placement;
  std::string stand_in;               // one line where CPUs stand in for all GPUs, else empty
  std::vector<std::string> warnings;  // one line each
};

// What `place` looks at. Asks the driver only where the config may need a GPU: it takes a moment to answer.
Machine this_machine(const config::Config& config);

// Those that the scheduler lets this process run on, which may be fewer than the machine has.
int64_t usable_cores();

Decision decide(const config::Config& config, const Machine& machine);

}  // namespace mgt::launch
