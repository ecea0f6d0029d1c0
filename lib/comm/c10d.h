// A communicator over any c10d backend: Gloo and NCCL differ only in how the backend is made. Shared by comm/gloo and
// the CUDA plug-in; nobody else includes it. Belongs to one rank.
#pragma once

#include "comm/collectives/algorithm.h"
#include "comm/communicator.h"
#include "comm/rendezvous.h"

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <string>

namespace mgt::comm {

struct C10dGroup {
  c10::intrusive_ptr<c10d::Backend> backend;
  c10::intrusive_ptr<c10d::Store> store;  // that the ranks met in; splitting meets there again
  double timeout_s;
  Algorithm algorithm = Algorithm::library;
  // Makes a like communicator of the ranks that meet in another store.
  std::function<std::unique_ptr<Communicator>(Rendezvous& rendezvous, int64_t rank, int64_t size)> connect;
};

// Takes the backend over and shuts it down when destroyed.
std::unique_ptr<Communicator> make_c10d(C10dGroup group);

// What went wrong, without LibTorch's stack frames: the first line of the error's text.
std::string first_line(const std::exception& error);

}  // namespace mgt::comm
