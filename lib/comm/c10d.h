// A communicator over any c10d backend: Gloo and NCCL differ only in how the backend is made. Shared by comm/gloo and
// the CUDA plug-in; nobody else includes it. Belongs to one rank.
#pragma once

#include "comm/communicator.h"

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <memory>

namespace mgt::comm {

// Takes the backend over and shuts it down when destroyed.
std::unique_ptr<Communicator> make_c10d(c10::intrusive_ptr<c10d::Backend> backend, double timeout_s);

// What went wrong, without LibTorch's stack frames: the first line of the error's text.
std::string first_line(const std::exception& error);

}  // namespace mgt::comm
