// The c10d store behind a Rendezvous; for c10d backends only (comm/gloo, the CUDA plug-in).
#pragma once

#include "comm/rendezvous.h"

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace mgt::comm {

class Rendezvous {
 public:
  explicit Rendezvous(c10::intrusive_ptr<c10d::Store> store) : store_(std::move(store)) {}
  const c10::intrusive_ptr<c10d::Store>& store() const { return store_; }

 private:
  c10::intrusive_ptr<c10d::Store> store_;
};

}  // namespace mgt::comm
