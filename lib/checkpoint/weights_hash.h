// What identifies trained weights: one hash of all, and one a tensor to say which differs. A value; no torch.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace mgt::checkpoint {

struct WeightsHash {
  std::string sha256;                                        // of the lines "NAME DTYPE SHAPE SHA256", by name
  std::vector<std::pair<std::string, std::string>> tensors;  // name, SHA-256 of its bytes; by name
};

}  // namespace mgt::checkpoint
