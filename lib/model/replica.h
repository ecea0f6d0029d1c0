// One copy of a model's numbers on one device. Parameters lie in flat tensors, one a unit: a unit is all of the model,
// or a stretch of it that is reduced, shared out or freed together. Gradients lie in others of the same layout (each
// tensor starts on a multiple of 64 bytes); blocks see views. So SGD is one operation and clearing the gradients one
// memset. A Replica belongs to the thread or rank that made it; its storage is never shared with another replica.
#pragma once

#include "model/model.h"

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace mgt::model {

// Where the parameter of a spec lies in the flat tensor of its unit, in elements.
struct Slot {
  std::string name;
  Shape shape;
  Range range;   // without padding
  Shape global;  // of a slice: the whole tensor's shape and where the slice begins; empty: it is whole
  Shape offset;
  Init init;
  uint64_t place = 0;  // among all parameters of the model
  int64_t block = 0;   // index of the block it belongs to
  int64_t unit = 0;
};

struct Layout {
  std::vector<Slot> slots;
  std::vector<Range> units;    // of slots: those that lie together
  std::vector<int64_t> sizes;  // elements of each unit, padding included
};

// The layout of the blocks [blocks.begin, blocks.end) of `model` as one unit.
Layout flat_layout(const Model& model, Range blocks, at::ScalarType dtype);

// The same with other units, which are ranges of slots; their sizes become multiples of `multiple`.
Layout cut(Layout layout, const std::vector<Range>& units, int64_t multiple, at::ScalarType dtype);

class Replica {
 public:
  // All blocks, or the blocks [blocks.begin, blocks.end), as one unit with initial values, the same on every rank and
  // device, and with memory for gradients.
  Replica(const Model& model, at::ScalarType dtype, at::Device device, uint64_t seed);
  Replica(const Model& model, Range blocks, at::ScalarType dtype, at::Device device, uint64_t seed);

  // In units that have no memory yet; nor have gradients.
  Replica(const Model& model, Range blocks, Layout layout, at::ScalarType dtype, at::Device device);

  // The memory of a unit's parameters, and its end. Views and tensors that autograd has saved stay valid: they see the
  // new memory once it is there.
  void hold(int64_t unit);
  void release(int64_t unit);
  bool holds(int64_t unit) const;
  void initialize(int64_t unit, uint64_t seed);
  at::Tensor& unit(int64_t unit) { return units_[static_cast<std::size_t>(unit)]; }  // flat, padding included

  // Gives a unit memory for its gradients, which backward adds to; it is zero. Returns it.
  at::Tensor make_gradients(int64_t unit);

  const Model& model() const { return *model_; }
  const Range& blocks() const { return blocks_; }
  at::Device device() const { return units_.front().device(); }
  at::ScalarType dtype() const { return units_.front().scalar_type(); }
  const Layout& layout() const { return layout_; }
  const std::vector<Slot>& slots() const { return layout_.slots; }

  // Of a replica in one unit: flat, padding included and zero; gradients in the same layout.
  at::Tensor& parameters() { return units_.front(); }
  at::Tensor& gradients() { return gradients_; }
  const at::Tensor& gradients() const { return gradients_; }
  const std::vector<at::Tensor>& parameter_views() const { return views_; }  // leaves that require gradients
  const std::vector<at::Tensor>& buffers() const { return buffers_; }

  // Through the blocks of this replica, or one of them. Gradients are recorded where grad mode is on.
  at::Tensor forward(const at::Tensor& input, const ForwardContext& context) const;
  at::Tensor forward_block(int64_t block, const at::Tensor& input, const ForwardContext& context) const;

  void zero_gradients();

  // Parameters and buffers as slices, in the model's order.
  std::vector<StateSlice> state(bool primary) const;
  std::vector<StateSlice> buffer_state(bool primary) const;
  // Of a cut model: slices are primary by `primary`, whole buffers where `owns_whole` too.
  std::vector<StateSlice> buffer_state(bool primary, bool owns_whole) const;

 private:
  struct First {
    std::size_t parameter;
    std::size_t buffer;
  };

  const Model* model_;
  Range blocks_;
  Layout layout_;
  std::vector<at::Tensor> units_;  // flat parameters
  at::Tensor gradients_;
  std::vector<at::Tensor> views_;
  std::vector<at::Tensor> buffers_;
  std::vector<TensorSpec> buffer_specs_;
  std::vector<First> first_of_block_;  // where each block's tensors begin in views_ and buffers_
};

}  // namespace mgt::model
