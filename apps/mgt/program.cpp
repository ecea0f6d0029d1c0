#include "program.h"

#include <torch/headeronly/version.h>

#include <poll.h>
#include <unistd.h>

#include <iostream>

namespace mgt {

void check_output() {
  std::cout.flush();
  if (std::cout) return;
  pollfd out{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  const bool reader_gone = poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
  if (!reader_gone) throw ConfigError("stdout cannot be written; is the disk full that it goes to?");
}

std::string mgt_version() { return MGT_VERSION; }
std::string libtorch_version() { return TORCH_VERSION; }

#ifdef __clang__
std::string compiler() { return "Clang " __clang_version__; }
#else
std::string compiler() { return "GCC " __VERSION__; }
#endif

}  // namespace mgt
