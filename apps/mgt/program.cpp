#include "program.h"

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

}  // namespace mgt
