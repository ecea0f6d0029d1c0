// How a model's flat memory is cut into units for the ranks of a data axis: what is reduced, shared out and gathered
// together. Pure functions.
#pragma once

#include "model/replica.h"
#include "strategy/mesh/sharing.h"

namespace mgt::strategy {

// Consecutive slots of at least `bucket_bytes`, cut from the end, since backward fills the last first; what is left at
// the beginning may be smaller.
std::vector<Range> bucket_units(const model::Layout& layout, int64_t bucket_bytes, at::ScalarType dtype);

// One unit a block that has parameters.
std::vector<Range> block_units(const model::Layout& layout);

// The layout for `ranks`: by block in stage 3, else by bucket, each unit padded to a multiple of the ranks where it is
// shared out.
model::Layout shared_layout(const model::Model& model, Range blocks, at::ScalarType dtype, const Sharing& sharing,
                            int64_t ranks);

}  // namespace mgt::strategy
