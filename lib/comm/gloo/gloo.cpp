#include "comm/gloo/gloo.h"

#include "comm/c10d.h"
#include "comm/store.h"
#include "core/error.h"
#include "core/text.h"

#include <c10/util/env.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <chrono>

namespace mgt::comm {
namespace {

// LibTorch keeps one record of past collectives for the whole process, and enters each new group there without a lock,
// so threads that begin to talk at once would crash. Nobody reads it. What the user has set stays.
void keep_no_record() {
  static const bool once = [] {
    c10::utils::set_env("TORCH_FR_BUFFER_SIZE", "0", false);
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace

std::unique_ptr<Communicator> make_gloo(Rendezvous& rendezvous, int64_t rank, int64_t size, double timeout_s,
                                        Algorithm algorithm) {
  const std::chrono::milliseconds timeout(static_cast<int64_t>(timeout_s * 1000));
  keep_no_record();
  try {
    auto options = c10d::ProcessGroupGloo::Options::create(timeout);
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
    rendezvous.store()->setTimeout(timeout);
    auto backend = c10::make_intrusive<c10d::ProcessGroupGloo>(rendezvous.store(), static_cast<int>(rank),
                                                               static_cast<int>(size), options);
    return make_c10d({.backend = std::move(backend),
                      .store = rendezvous.store(),
                      .timeout_s = timeout_s,
                      .algorithm = algorithm,
                      .connect = [=](Rendezvous& other, int64_t new_rank, int64_t new_size) {
                        return make_gloo(other, new_rank, new_size, timeout_s, algorithm);
                      }});
  } catch (const std::exception& error) {
    throw CommError(concat("rank ", rank, " of ", size, " could not connect: ", shortened(first_line(error), 300)));
  }
}

}  // namespace mgt::comm
