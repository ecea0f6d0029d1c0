#include "comm/collectives/algorithm.h"

#include "core/error.h"
#include "core/text.h"

#include <bit>

namespace mgt::comm {
namespace {

bool has_algorithms(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce_scatter ||
         collective == Collective::all_gather;
}

}  // namespace

Algorithm algorithm_of(const std::string& name) {
  if (name == "auto") return Algorithm::automatic;
  if (name == "library") return Algorithm::library;
  if (name == "ring") return Algorithm::ring;
  if (name == "halving_doubling") return Algorithm::halving_doubling;
  throw InternalError(concat("no algorithm ", name));
}

Algorithm chosen(Algorithm algorithm, Collective collective, int64_t size) {
  if (size == 1 || !has_algorithms(collective)) return Algorithm::library;
  // As measured over Gloo on 2 to 4 ranks. Its reduce-scatter is an all-reduce of a copy, which sends twice the bytes;
  // its all-gather copies everything once more; its all-reduce is a ring that is as fast, and wakes fewer threads.
  if (algorithm == Algorithm::automatic) {
    algorithm = collective == Collective::all_reduce ? Algorithm::library : Algorithm::halving_doubling;
  }
  const bool in_pairs = std::has_single_bit(static_cast<uint64_t>(size));
  return algorithm == Algorithm::halving_doubling && !in_pairs ? Algorithm::ring : algorithm;
}

}  // namespace mgt::comm
