// Stand-in for a Gloo header that LibTorch packages leave out; see third_party/README.md.
#pragma once

#include <chrono>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

}  // namespace gloo
