#include "strategy/mesh/units.h"

#include "torch_pch.h"

#include <algorithm>

namespace mgt::strategy {

std::vector<Range> bucket_units(const model::Layout& layout, int64_t bucket_bytes, at::ScalarType dtype) {
  const auto item_size = static_cast<int64_t>(c10::elementSize(dtype));
  std::vector<Range> units;
  int64_t end = static_cast<int64_t>(layout.slots.size()), bytes = 0;
  for (int64_t slot = end - 1; slot >= 0; --slot) {
    bytes += layout.slots[static_cast<std::size_t>(slot)].range.size() * item_size;
    if (bytes < bucket_bytes && slot > 0) continue;
    units.push_back({slot, end});
    end = slot;
    bytes = 0;
  }
  if (units.empty()) units.push_back({0, 0});
  std::ranges::reverse(units);
  return units;
}

std::vector<Range> block_units(const model::Layout& layout) {
  std::vector<Range> units;
  for (int64_t slot = 0; slot < static_cast<int64_t>(layout.slots.size()); ++slot) {
    const auto place = static_cast<std::size_t>(slot);
    const bool goes_on = slot > 0 && layout.slots[place].block == layout.slots[place - 1].block;
    if (goes_on)
      units.back().end = slot + 1;
    else
      units.push_back({slot, slot + 1});
  }
  if (units.empty()) units.push_back({0, 0});
  return units;
}

model::Layout shared_layout(const model::Model& model, Range blocks, at::ScalarType dtype, const Sharing& sharing,
                            int64_t ranks) {
  const model::Layout plain = model::flat_layout(model, blocks, dtype);
  const std::vector<Range> units =
      sharing.shares_parameters() ? block_units(plain) : bucket_units(plain, sharing.bucket_bytes, dtype);
  return model::cut(plain, units, sharing.shares_optimizer() ? ranks : 1, dtype);
}

}  // namespace mgt::strategy
