// Counter-based random numbers (Philox 4x32-10; Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
// A number depends only on (seed, purpose, epoch, index), never on how many were drawn before, so results do not
// depend on ranks, workers or order. Values; a Stream belongs to one thread.
#pragma once

#include <array>
#include <cstdint>

namespace mgt {

// What a stream is for: two purposes never share numbers.
enum class Purpose : uint32_t { init = 1, shuffle = 2, synthetic = 3, label_noise = 4 };

// One block of Philox 4x32-10.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// The numbers of one (seed, purpose, epoch, index), drawn in order.
class Stream {
 public:
  Stream(uint64_t seed, Purpose purpose, uint32_t epoch = 0, uint64_t index = 0);

  uint32_t bits();                 // 32 uniform bits
  uint64_t below(uint64_t bound);  // uniform in [0, bound), without bias; bound >= 1
  double uniform();                // in [0, 1), 53 bits
  double normal();                 // mean 0, variance 1 (Box-Muller)

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 4> block_{};
  int used_ = 4;
  bool has_spare_ = false;
  double spare_ = 0;
};

}  // namespace mgt
