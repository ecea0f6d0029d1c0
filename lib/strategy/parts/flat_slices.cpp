#include "strategy/parts/flat_slices.h"

#include "torch_pch.h"

#include <algorithm>

namespace mgt::strategy {

std::vector<Overlap> overlaps(std::span<const model::Slot> slots, Range own, bool owns_whole) {
  std::vector<Overlap> found;
  for (const model::Slot& slot : slots) {
    const Range both{std::max(slot.range.begin, own.begin), std::min(slot.range.end, own.end)};
    if (both.size() <= 0) continue;
    found.push_back(
        {&slot, {both.begin - slot.range.begin, both.end - slot.range.begin}, both.begin - own.begin, owns_whole});
  }
  return found;
}

at::Tensor part_of(const at::Tensor& memory, const Overlap& overlap) {
  const at::Tensor flat = memory.narrow(0, overlap.offset, overlap.of_tensor.size());
  return overlap.is_whole() ? flat.view(overlap.slot->shape) : flat;
}

model::StateSlice slice_of(const std::string& name, model::StateKind kind, const at::Tensor& memory,
                           const Overlap& overlap, bool primary) {
  const model::Slot& slot = *overlap.slot;
  const at::Tensor part = part_of(memory, overlap);
  const bool owned = primary && (overlap.owns_whole || !slot.global.empty());
  model::StateSlice slice = model::in_box(name, kind, part, owned, slot.global, slot.offset);
  if (overlap.is_whole()) return slice;
  if (slot.global.empty()) slice.global = slot.shape;
  slice.box = {.offset = slot.global.empty() ? model::Shape(slot.shape.size(), 0) : slot.offset, .extent = slot.shape};
  slice.flat = overlap.of_tensor;
  return slice;
}

std::vector<model::StateSlice> optimizer_slices(optim::Optimizer& optimizer, std::span<const Overlap> overlaps,
                                                bool primary) {
  std::vector<model::StateSlice> slices;
  for (const optim::StateTensor& state : optimizer.state()) {
    for (const Overlap& overlap : overlaps) {
      slices.push_back(
          slice_of(overlap.slot->name + "." + state.name, model::StateKind::optimizer, state.flat, overlap, primary));
    }
  }
  return slices;
}

optim::Subject subject_of(const at::Tensor& parameters, std::span<const Overlap> overlaps, bool no_decay) {
  if (!no_decay) return optim::whole(parameters);
  optim::Subject subject{parameters, {}};
  for (const Overlap& overlap : overlaps) {
    if (overlap.slot->shape.size() < 2) continue;
    subject.decaying.push_back({overlap.offset, overlap.offset + overlap.of_tensor.size()});
  }
  return subject;
}

}  // namespace mgt::strategy
