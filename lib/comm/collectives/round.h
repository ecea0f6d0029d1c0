// What the algorithms are made of: a vector cut into one part for each rank, and rounds in which every rank sends one
// piece and receives another. Every rank calls the same rounds in the same order. Vectors are flat, contiguous and on
// the CPU; pieces may be empty.
#pragma once

#include "comm/collectives/link.h"
#include "core/split.h"

namespace mgt::comm {

// The parts `which` of `vector`, cut over `count` ranks by the rule of core/split.h; neighbours in one piece.
at::Tensor parts(const at::Tensor& vector, int64_t count, Range which);
at::Tensor part(const at::Tensor& vector, int64_t count, int64_t index);  // index modulo count, which may be negative

// Sends `out`, receives `in`.
void exchange(Link& link, const at::Tensor& out, int64_t to, const at::Tensor& in, int64_t from);

// Sends `out`, and leaves in `sum` what came plus `own`, as long; `sum` may be `own`.
void exchange_and_add(Link& link, const at::Tensor& out, int64_t to, const at::Tensor& own, const at::Tensor& sum,
                      int64_t from);

}  // namespace mgt::comm
