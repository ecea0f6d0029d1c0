#include "comm/rendezvous.h"

#include "comm/store.h"

#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

namespace mgt::comm {

std::shared_ptr<Rendezvous> rendezvous_in_memory() {
  return std::make_shared<Rendezvous>(c10::make_intrusive<c10d::HashStore>());
}

std::shared_ptr<Rendezvous> rendezvous_in_file(const std::string& file, int64_t size) {
  return std::make_shared<Rendezvous>(c10::make_intrusive<c10d::FileStore>(file, static_cast<int>(size)));
}

}  // namespace mgt::comm
