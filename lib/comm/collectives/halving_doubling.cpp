#include "comm/collectives/halving_doubling.h"

#include "comm/collectives/round.h"

#include "torch_pch.h"

namespace mgt::comm::halving_doubling {
namespace {

// The aligned block of `length` ranks, and of their parts, that `rank` is in.
Range block(int64_t rank, int64_t length) {
  const int64_t begin = rank / length * length;
  return {begin, begin + length};
}

}  // namespace

void reduce_scatter(Link& link, const at::Tensor& vector, const at::Tensor& sums, const at::Tensor& own) {
  const int64_t rank = link.rank(), size = link.size();
  at::Tensor current = vector;
  for (int64_t distance = size / 2; distance > 0; distance /= 2) {
    const int64_t partner = rank ^ distance;
    const Range keep = block(rank, distance), give = block(partner, distance);
    const at::Tensor sum = distance == 1 ? own : parts(sums, size, keep);
    exchange_and_add(link, parts(current, size, give), partner, parts(current, size, keep), sum, partner);
    current = sums;
  }
}

void all_gather(Link& link, const at::Tensor& vector) {
  const int64_t rank = link.rank(), size = link.size();
  for (int64_t distance = 1; distance < size; distance *= 2) {
    const int64_t partner = rank ^ distance;
    exchange(link, parts(vector, size, block(rank, distance)), partner, parts(vector, size, block(partner, distance)),
             partner);
  }
}

}  // namespace mgt::comm::halving_doubling
