#include "comm/rendezvous.h"

#include "comm/store.h"

#include <cstdlib>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

namespace mgt::comm {

// LibTorch's flight recorder is one for all groups of a process and takes no lock before it notes an operation (2.11,
// ProcessGroupGloo::enqueue): ranks that are threads crash in it. It reads its size, here none, when it is first used.
std::shared_ptr<Rendezvous> rendezvous_in_memory() {
  setenv("TORCH_FR_BUFFER_SIZE", "0", /*overwrite=*/1);
  return std::make_shared<Rendezvous>(c10::make_intrusive<c10d::HashStore>());
}

std::shared_ptr<Rendezvous> rendezvous_in_file(const std::string& file, int64_t size) {
  return std::make_shared<Rendezvous>(c10::make_intrusive<c10d::FileStore>(file, static_cast<int>(size)));
}

}  // namespace mgt::comm
