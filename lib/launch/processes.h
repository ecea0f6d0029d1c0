// Ranks that are processes of this host, seen from their launcher: it starts them, listens, and ends them together.
#pragma once

#include "launch/signals.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mgt::launch {

struct RankCommand {
  std::vector<std::string> arguments;  // of this program, without its name
  int64_t world_size = 2;
  int64_t threads_per_rank = 1;
};

// Returns when all ranks are done and reaped. The first failure of a rank ends the others; its error is thrown,
// CommError for a rank that died without a word. A signal ends all ranks and is thrown as Interrupted.
void run_processes(const RankCommand& command, const StopSignals& signals);

}  // namespace mgt::launch
