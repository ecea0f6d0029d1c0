#include "launch/rank_process.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>

namespace mgt::launch {
namespace {

constexpr const char* kRank = "MGT_RANK";
constexpr const char* kWorldSize = "MGT_WORLD_SIZE";
constexpr const char* kRendezvous = "MGT_RENDEZVOUS";
constexpr const char* kReport = "MGT_REPORT_FD";
constexpr const char* kLauncher = "MGT_LAUNCHER_PID";

}  // namespace

std::map<std::string, std::string> to_environment(const RankProcess& process) {
  return {{kRank, std::to_string(process.rank)},
          {kWorldSize, std::to_string(process.world_size)},
          {kRendezvous, process.rendezvous},
          {kReport, std::to_string(process.report)},
          {kLauncher, std::to_string(process.launcher)}};
}

std::optional<RankProcess> from_environment() {
  for (const char* name : {kRank, kWorldSize, kRendezvous, kReport, kLauncher}) {
    if (getenv(name) == nullptr) return std::nullopt;
  }
  return RankProcess{.rank = atoll(getenv(kRank)),
                     .world_size = atoll(getenv(kWorldSize)),
                     .rendezvous = getenv(kRendezvous),
                     .report = atoi(getenv(kReport)),
                     .launcher = atoi(getenv(kLauncher))};
}

void die_with_launcher(const RankProcess& process) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != process.launcher) _exit(static_cast<int>(ExitCode::comm));  // it died before that
}

void report_and_exit(const RankProcess& process, const Failure& failure) {
  const std::string line = to_line(failure);
  const ssize_t written = write(process.report, line.data(), line.size());
  static_cast<void>(written);  // a launcher that does not listen has gone
  std::cout.flush();
  std::fflush(nullptr);
  // Not exit: its destructors could wait for a collective that never ends.
  std::_Exit(static_cast<int>(failure.code));
}

}  // namespace mgt::launch
