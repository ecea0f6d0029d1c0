// The rank's end of what launcher and rank processes tell each other: the rank finds who it is in its environment, and
// leaves one line on a pipe if it fails. Nothing of it is known to the rank's work.
#pragma once

#include "launch/failure.h"

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace mgt::launch {

struct RankProcess {
  int64_t rank = 0;
  int64_t world_size = 1;
  std::string rendezvous;  // path of the file where the ranks find each other
  int report = -1;         // file descriptor that takes the report of a failure
  pid_t launcher = 0;
};

std::map<std::string, std::string> to_environment(const RankProcess& process);

// Nothing where this process was not started as a rank.
std::optional<RankProcess> from_environment();

// From now on this process does not outlive its launcher, not even one that was killed.
void die_with_launcher(const RankProcess& process);

[[noreturn]] void report_and_exit(const RankProcess& process, const Failure& failure);

}  // namespace mgt::launch
