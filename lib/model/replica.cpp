#include "model/replica.h"

#include "core/error.h"
#include "core/seed.h"

#include "torch_pch.h"

namespace mgt::model {
namespace {

constexpr int64_t kAlignment = 64;  // bytes; a cache line and the widest vector

int64_t padded(int64_t count, int64_t item_size) {
  const int64_t unit = kAlignment / item_size;
  return (count + unit - 1) / unit * unit;
}

// The first values of a tensor, in double precision, keyed by its place in the whole model.
at::Tensor initial_values(const Slot& slot, uint64_t seed) {
  const Shape& shape = slot.global.empty() ? slot.shape : slot.global;
  const int64_t count = elements(shape);
  if (slot.init.kind == Init::Kind::constant) return at::full({elements(slot.shape)}, slot.init.value, at::kDouble);
  at::Tensor values = at::empty({count}, at::kDouble);
  Stream stream(seed, Purpose::init, 0, slot.place);
  for (double& value : std::span(values.data_ptr<double>(), static_cast<std::size_t>(count))) {
    value = slot.init.kind == Init::Kind::normal ? slot.init.value * stream.normal()
                                                 : slot.init.value * (2.0 * stream.uniform() - 1.0);
  }
  if (slot.global.empty()) return values;
  at::Tensor piece = values.view(shape);
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    piece = piece.narrow(static_cast<int64_t>(dim), slot.offset[dim], slot.shape[dim]);
  }
  return piece.flatten();
}

Range all_blocks(const Model& model) { return {0, static_cast<int64_t>(model.blocks.size())}; }

at::Tensor part(const at::Tensor& flat, const Slot& slot) {
  return flat.narrow(0, slot.range.begin, slot.range.size()).view(slot.shape);
}

// In place, so that every view and saved tensor keeps its storage: `set_data` would free nothing while autograd holds
// on.
void resize_storage(const at::Tensor& tensor, std::size_t bytes) {
  c10::StorageImpl* const storage = tensor.storage().unsafeGetStorageImpl();
  storage->set_data_ptr_noswap(storage->allocator()->allocate(bytes));
  storage->set_nbytes(bytes);
}

}  // namespace

Layout flat_layout(const Model& model, Range blocks, at::ScalarType dtype) {
  Layout layout;
  uint64_t place = 0;
  for (int64_t block = 0; block < blocks.end; ++block) {
    for (const TensorSpec& spec : model.blocks[static_cast<std::size_t>(block)].parameters) {
      if (block >= blocks.begin) {
        layout.slots.push_back({.name = spec.name,
                                .shape = spec.shape,
                                .global = spec.global,
                                .offset = spec.offset,
                                .init = spec.init,
                                .place = place,
                                .block = block});
      }
      ++place;
    }
  }
  const auto count = static_cast<int64_t>(layout.slots.size());
  return cut(std::move(layout), {{0, count}}, 1, dtype);
}

Layout cut(Layout layout, const std::vector<Range>& units, int64_t multiple, at::ScalarType dtype) {
  const auto item_size = static_cast<int64_t>(c10::elementSize(dtype));
  layout.units = units;
  layout.sizes.clear();
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    int64_t offset = 0;
    for (int64_t index = units[unit].begin; index < units[unit].end; ++index) {
      Slot& slot = layout.slots[static_cast<std::size_t>(index)];
      const int64_t count = elements(slot.shape);
      slot.unit = static_cast<int64_t>(unit);
      slot.range = {offset, offset + count};
      offset += padded(count, item_size);
    }
    layout.sizes.push_back((offset + multiple - 1) / multiple * multiple);
  }
  return layout;
}

Replica::Replica(const Model& model, at::ScalarType dtype, at::Device device, uint64_t seed)
    : Replica(model, all_blocks(model), dtype, device, seed) {}

Replica::Replica(const Model& model, Range blocks, at::ScalarType dtype, at::Device device, uint64_t seed)
    : Replica(model, blocks, flat_layout(model, blocks, dtype), dtype, device) {
  hold(0);
  initialize(0, seed);
  gradients_ = make_gradients(0);
}

Replica::Replica(const Model& model, Range blocks, Layout layout, at::ScalarType dtype, at::Device device)
    : model_(&model), blocks_(blocks), layout_(std::move(layout)) {
  const auto options = at::TensorOptions().dtype(dtype).device(device);
  for (std::size_t unit = 0; unit < layout_.units.size(); ++unit) {
    units_.push_back(at::empty({layout_.sizes[unit]}, options));
    for (int64_t index = layout_.units[unit].begin; index < layout_.units[unit].end; ++index) {
      at::Tensor view = part(units_.back(), layout_.slots[static_cast<std::size_t>(index)]).detach();
      views_.push_back(view.set_requires_grad(true));
    }
    release(static_cast<int64_t>(unit));
  }
  std::size_t slot = 0;
  for (int64_t index = blocks.begin; index < blocks.end; ++index) {
    const Block& block = model.blocks[static_cast<std::size_t>(index)];
    first_of_block_.push_back({slot, buffers_.size()});
    slot += block.parameters.size();
    for (const TensorSpec& spec : block.buffers) {
      buffers_.push_back(at::full(spec.shape, spec.init.value, options.dtype(spec.integer ? at::kLong : dtype)));
      buffer_specs_.push_back(spec);
    }
  }
}

void Replica::hold(int64_t index) {
  const at::Tensor& flat = unit(index);
  resize_storage(flat, static_cast<std::size_t>(flat.numel()) * flat.element_size());
}

void Replica::release(int64_t index) { resize_storage(unit(index), 0); }

bool Replica::holds(int64_t index) const {
  const at::Tensor& flat = units_[static_cast<std::size_t>(index)];
  return flat.storage().nbytes() > 0 || flat.numel() == 0;
}

void Replica::initialize(int64_t index, uint64_t seed) {
  const at::NoGradGuard no_grad;
  unit(index).zero_();
  const Range slots = layout_.units[static_cast<std::size_t>(index)];
  for (int64_t slot = slots.begin; slot < slots.end; ++slot) {
    const auto place = static_cast<std::size_t>(slot);
    views_[place].view({-1}).copy_(initial_values(layout_.slots[place], seed));
  }
}

at::Tensor Replica::make_gradients(int64_t index) {
  const at::Tensor flat = at::zeros_like(unit(index));
  const Range slots = layout_.units[static_cast<std::size_t>(index)];
  for (int64_t slot = slots.begin; slot < slots.end; ++slot) {
    const auto place = static_cast<std::size_t>(slot);
    views_[place].mutable_grad() = part(flat, layout_.slots[place]);
  }
  return flat;
}

at::Tensor Replica::forward(const at::Tensor& input, const ForwardContext& context) const {
  at::Tensor value = input;
  for (int64_t block = blocks_.begin; block < blocks_.end; ++block) value = forward_block(block, value, context);
  return value;
}

at::Tensor Replica::forward_block(int64_t block, const at::Tensor& input, const ForwardContext& context) const {
  require(blocks_.begin <= block && block < blocks_.end, "a replica runs only its own blocks");
  const Block& made = model_->blocks[static_cast<std::size_t>(block)];
  const First& first = first_of_block_[static_cast<std::size_t>(block - blocks_.begin)];
  return made.forward(input,
                      {std::span(views_).subspan(first.parameter, made.parameters.size()),
                       std::span(buffers_).subspan(first.buffer, made.buffers.size())},
                      context);
}

void Replica::zero_gradients() {
  const at::NoGradGuard no_grad;
  gradients_.zero_();
}

std::vector<StateSlice> Replica::state(bool primary) const {
  std::vector<StateSlice> slices;
  for (std::size_t index = 0; index < slots().size(); ++index) {
    const Slot& slot = slots()[index];
    slices.push_back(
        in_box(slot.name, StateKind::parameter, views_[index].detach(), primary, slot.global, slot.offset));
  }
  for (StateSlice& slice : buffer_state(primary)) slices.push_back(std::move(slice));
  return slices;
}

std::vector<StateSlice> Replica::buffer_state(bool primary) const { return buffer_state(primary, true); }

std::vector<StateSlice> Replica::buffer_state(bool primary, bool owns_whole) const {
  std::vector<StateSlice> slices;
  for (std::size_t index = 0; index < buffers_.size(); ++index) {
    const TensorSpec& spec = buffer_specs_[index];
    const bool owned = primary && (owns_whole || !spec.global.empty());
    slices.push_back(in_box(spec.name, StateKind::buffer, buffers_[index], owned, spec.global, spec.offset));
  }
  return slices;
}

}  // namespace mgt::model
