#include "core/clock.h"

#include <ctime>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <string>

namespace mgt {
namespace {

class RealClock final : public Clock {
 public:
  double now_s() const override {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
};

}  // namespace

const Clock& real_clock() {
  static const RealClock clock;
  return clock;
}

double since_process_start_s() {
  // proc_pid_stat(5): field 22 is the start time in clock ticks since boot; field 2 may hold spaces and ends with ')'.
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;
  double ticks = 0;
  fields >> ticks;
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const double now_s = static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  return now_s - ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace mgt
