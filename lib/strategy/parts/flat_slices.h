// What a range of a unit's flat memory holds of each tensor: the whole of a replica, or the part that a rank owns. Pure
// functions.
#pragma once

#include "model/replica.h"
#include "optim/optimizer.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mgt::strategy {

// The part of a tensor in the range, in elements of the flattened tensor, and where it lies from the range's beginning.
struct Overlap {
  const model::Slot* slot;
  Range of_tensor;
  int64_t offset = 0;
  bool owns_whole = true;  // tensors that are not cut are this rank's to save and to count
  bool is_whole() const { return of_tensor.size() == slot->range.size(); }
};

// Of `slots`, which lie in one unit, those that reach into `own`, in their order.
std::vector<Overlap> overlaps(std::span<const model::Slot> slots, Range own, bool owns_whole = true);

// The overlap's part of `memory`, which has the layout of the range: shaped where it is the whole tensor, else flat.
at::Tensor part_of(const at::Tensor& memory, const Overlap& overlap);

// As a slice of the tensor, called `name`.
model::StateSlice slice_of(const std::string& name, model::StateKind kind, const at::Tensor& memory,
                           const Overlap& overlap, bool primary);

// Each tensor's piece of an optimizer's state, called "conv1.weight.momentum".
std::vector<model::StateSlice> optimizer_slices(optim::Optimizer& optimizer, std::span<const Overlap> overlaps,
                                                bool primary);

// What an optimizer must know of the range: `parameters` has its layout. With `no_decay`, tensors of one dimension keep
// out of the decay.
optim::Subject subject_of(const at::Tensor& parameters, std::span<const Overlap> overlaps, bool no_decay);

}  // namespace mgt::strategy
