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
at::Tensor initial_values(const TensorSpec& spec, uint64_t seed, uint64_t place) {
  const int64_t count = elements(spec.shape);
  if (spec.init.kind == Init::Kind::constant) return at::full({count}, spec.init.value, at::kDouble);
  at::Tensor values = at::empty({count}, at::kDouble);
  Stream stream(seed, Purpose::init, 0, place);
  for (double& value : std::span(values.data_ptr<double>(), static_cast<std::size_t>(count))) {
    value = spec.init.kind == Init::Kind::normal ? spec.init.value * stream.normal()
                                                 : spec.init.value * (2.0 * stream.uniform() - 1.0);
  }
  return values;
}

}  // namespace

std::vector<Slot> flat_layout(const Model& model, Range blocks, at::ScalarType dtype) {
  const auto item_size = static_cast<int64_t>(c10::elementSize(dtype));
  std::vector<Slot> slots;
  int64_t offset = 0;
  for (int64_t block = blocks.begin; block < blocks.end; ++block) {
    for (const TensorSpec& spec : model.blocks[static_cast<std::size_t>(block)].parameters) {
      const int64_t count = elements(spec.shape);
      slots.push_back({spec.name, spec.shape, {offset, offset + count}, block});
      offset += padded(count, item_size);
    }
  }
  return slots;
}

Replica::Replica(const Model& model, at::ScalarType dtype, at::Device device, uint64_t seed)
    : Replica(model, {0, static_cast<int64_t>(model.blocks.size())}, dtype, device, seed) {}

Replica::Replica(const Model& model, Range blocks, at::ScalarType dtype, at::Device device, uint64_t seed)
    : model_(&model), blocks_(blocks), slots_(flat_layout(model, blocks, dtype)) {
  const at::NoGradGuard no_grad;
  const auto item_size = static_cast<int64_t>(c10::elementSize(dtype));
  const int64_t total = slots_.empty() ? 0 : slots_.back().range.begin + padded(slots_.back().range.size(), item_size);
  const auto options = at::TensorOptions().dtype(dtype).device(device);
  parameters_ = at::zeros({total}, options);
  gradients_ = at::zeros({total}, options);
  for (const Slot& slot : slots_) {
    at::Tensor view = parameters_.narrow(0, slot.range.begin, slot.range.size()).view(slot.shape).detach();
    view.set_requires_grad(true);
    view.mutable_grad() = gradients_.narrow(0, slot.range.begin, slot.range.size()).view(slot.shape);
    views_.push_back(std::move(view));
  }
  uint64_t place = 0;
  std::size_t slot = 0;
  for (int64_t index = 0; index < static_cast<int64_t>(model.blocks.size()); ++index) {
    const Block& block = model.blocks[static_cast<std::size_t>(index)];
    const bool mine = blocks.begin <= index && index < blocks.end;
    if (mine) first_of_block_.push_back({slot, buffers_.size()});
    for (const TensorSpec& spec : block.parameters) {
      if (mine) views_[slot++].view({-1}).copy_(initial_values(spec, seed, place));
      ++place;
    }
    for (const TensorSpec& spec : block.buffers) {
      if (!mine) continue;
      const auto type = spec.integer ? at::kLong : dtype;
      buffers_.push_back(at::full(spec.shape, spec.init.value, at::TensorOptions().dtype(type).device(device)));
      buffer_names_.push_back(spec.name);
    }
  }
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
  for (std::size_t index = 0; index < slots_.size(); ++index) {
    slices.push_back(whole(slots_[index].name, StateKind::parameter, views_[index].detach(), primary));
  }
  for (std::size_t index = 0; index < buffers_.size(); ++index) {
    slices.push_back(whole(buffer_names_[index], StateKind::buffer, buffers_[index], primary));
  }
  return slices;
}

void Replica::copy_from(const Replica& source) {
  const at::NoGradGuard no_grad;
  parameters_.copy_(source.parameters_);
  for (std::size_t index = 0; index < buffers_.size(); ++index) buffers_[index].copy_(source.buffers_[index]);
}

}  // namespace mgt::model
