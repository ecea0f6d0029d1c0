// One copy of a model's numbers on one device. All parameters lie in one flat tensor, their gradients in another of the
// same layout (each tensor starts on a multiple of 64 bytes); blocks see views. So SGD is one operation, clearing the
// gradients one memset, and a bucket is a range. The layout is the same in every strategy and world.
// A Replica belongs to the thread or rank that made it; its storage is never shared with another replica.
#pragma once

#include "model/model.h"

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace mgt::model {

// Where the parameter of a spec lies in the flat tensor, in elements.
struct Slot {
  std::string name;
  Shape shape;
  Range range;    // without padding
  int64_t block;  // index of the block it belongs to
};

// The layout of the blocks [blocks.begin, blocks.end) of `model`.
std::vector<Slot> flat_layout(const Model& model, Range blocks, at::ScalarType dtype);

class Replica {
 public:
  // All blocks, or the blocks [blocks.begin, blocks.end), with their initial values: the same on every rank and device.
  Replica(const Model& model, at::ScalarType dtype, at::Device device, uint64_t seed);
  Replica(const Model& model, Range blocks, at::ScalarType dtype, at::Device device, uint64_t seed);

  const Model& model() const { return *model_; }
  const Range& blocks() const { return blocks_; }
  at::Device device() const { return parameters_.device(); }
  at::ScalarType dtype() const { return parameters_.scalar_type(); }
  const std::vector<Slot>& slots() const { return slots_; }

  at::Tensor& parameters() { return parameters_; }  // flat, padding included and zero
  at::Tensor& gradients() { return gradients_; }    // flat, the same layout
  const at::Tensor& gradients() const { return gradients_; }
  const std::vector<at::Tensor>& parameter_views() const { return views_; }  // leaves that require gradients
  const std::vector<at::Tensor>& buffers() const { return buffers_; }

  // Through the blocks of this replica, or one of them. Gradients are recorded where grad mode is on.
  at::Tensor forward(const at::Tensor& input, const ForwardContext& context) const;
  at::Tensor forward_block(int64_t block, const at::Tensor& input, const ForwardContext& context) const;

  void zero_gradients();

  // Parameters and buffers as slices, in the model's order.
  std::vector<StateSlice> state(bool primary) const;

  // Copies parameters and buffers from `source`, which has the same blocks.
  void copy_from(const Replica& source);

 private:
  struct First {
    std::size_t parameter;
    std::size_t buffer;
  };

  const Model* model_;
  Range blocks_;
  std::vector<Slot> slots_;
  at::Tensor parameters_;
  at::Tensor gradients_;
  std::vector<at::Tensor> views_;
  std::vector<at::Tensor> buffers_;
  std::vector<std::string> buffer_names_;
  std::vector<First> first_of_block_;  // where each block's tensors begin in views_ and buffers_
};

}  // namespace mgt::model
