#include "comm/gloo/gloo.h"

#include "comm/c10d.h"
#include "comm/store.h"
#include "core/error.h"
#include "core/text.h"

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <chrono>

namespace mgt::comm {

std::unique_ptr<Communicator> make_gloo(Rendezvous& rendezvous, int64_t rank, int64_t size, double timeout_s) {
  const std::chrono::milliseconds timeout(static_cast<int64_t>(timeout_s * 1000));
  try {
    auto options = c10d::ProcessGroupGloo::Options::create(timeout);
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
    rendezvous.store()->setTimeout(timeout);
    return make_c10d(c10::make_intrusive<c10d::ProcessGroupGloo>(rendezvous.store(), static_cast<int>(rank),
                                                                 static_cast<int>(size), options),
                     timeout_s);
  } catch (const std::exception& error) {
    throw CommError(concat("rank ", rank, " of ", size, " could not connect: ", shortened(first_line(error), 300)));
  }
}

}  // namespace mgt::comm
