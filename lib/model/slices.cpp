#include "model/slices.h"

#include "core/error.h"
#include "model/layers.h"

#include "torch_pch.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace mgt::model {
namespace {

// A chain of layers without sequences in it, and which block each belongs to.
struct Leaf {
  Block layer;
  std::size_t block;
};

void flatten_into(std::vector<Leaf>& leaves, const Block& block, std::size_t index) {
  if (block.layers.empty()) leaves.push_back({block, index});
  for (const Block& layer : block.layers) flatten_into(leaves, layer, index);
}

// The channels that this rank has of what is between two matrix layers.
struct Channels {
  Range own;
  int64_t all;
};

// Some inputs' share of a layer that every rank gives its whole input.
Block share_of(const Block& layer, Range inputs) {
  Block share = layer.slicing.by_inputs(inputs);
  share.output_shape = layer.output_shape;
  share.multiply_adds = layer.multiply_adds;
  share.forward = [forward = share.forward, inputs](const at::Tensor& input, const BlockWeights& weights,
                                                    const ForwardContext& context) {
    return forward(enter_slices(input, context).narrow(1, inputs.begin, inputs.size()), weights, context);
  };
  return share;
}

// Walks a chain from layer to layer and cuts what can be.
class Cutter {
 public:
  explicit Cutter(std::vector<Leaf> leaves) : leaves_(std::move(leaves)) {
    bool open = false;  // between the two layers of a pair
    for (std::size_t index = 0; index < leaves_.size(); ++index) {
      const bool matrix = static_cast<bool>(leaves_[index].layer.slicing.by_outputs);
      begins_pair_.push_back(matrix && !open && has_partner(index));
      if (matrix) open = begins_pair_.back();
    }
    has_pairs_ = std::ranges::count(begins_pair_, true) > 0 ||
                 std::ranges::any_of(leaves_, [](const Leaf& leaf) { return leaf.layer.slicing.inside != nullptr; });
  }

  std::vector<Leaf> run(int64_t part, int64_t parts) {
    std::optional<Channels> between;
    for (std::size_t index = 0; index < leaves_.size(); ++index) {
      Block& layer = leaves_[index].layer;
      const Slicing slicing = layer.slicing;
      if (between && slicing.by_inputs) {
        const int64_t width = slicing.inputs / between->all;  // features of one channel, after a flatten
        layer = slicing.by_inputs({between->own.begin * width, between->own.end * width});
        between.reset();
      } else if (between) {
        layer = slicing.by_channels(between->own);
      } else if (begins_pair_[index]) {
        between = Channels{split(slicing.outputs, parts, part), slicing.outputs};
        layer = slicing.by_outputs(between->own);
      } else if (slicing.inside) {
        layer = slicing.inside(part, parts);
      } else if (!has_pairs_ && slicing.by_inputs) {
        layer = share_of(layer, split(slicing.inputs, parts, part));
      }
    }
    return std::move(leaves_);
  }

  // The smallest number of channels, features or heads that are cut; none: the largest integer.
  int64_t smallest() const {
    int64_t least = std::numeric_limits<int64_t>::max();
    for (std::size_t index = 0; index < leaves_.size(); ++index) {
      const Slicing& slicing = leaves_[index].layer.slicing;
      if (begins_pair_[index] || slicing.inside) least = std::min(least, slicing.outputs);
      if (!has_pairs_ && slicing.by_inputs) least = std::min(least, slicing.inputs);
    }
    return least;
  }

 private:
  // Whether a matrix layer takes up the channels of this one, with nothing in between that needs all of them.
  bool has_partner(std::size_t index) const {
    for (std::size_t next = index + 1; next < leaves_.size(); ++next) {
      const Slicing& slicing = leaves_[next].layer.slicing;
      if (slicing.by_inputs) return true;
      if (!slicing.by_channels) return false;
    }
    return false;
  }

  std::vector<Leaf> leaves_;
  std::vector<bool> begins_pair_;  // by leaf
  bool has_pairs_ = false;
};

std::vector<Leaf> leaves_of(const Model& model) {
  std::vector<Leaf> leaves;
  for (std::size_t index = 0; index < model.blocks.size(); ++index) flatten_into(leaves, model.blocks[index], index);
  return leaves;
}

}  // namespace

Model slice(const Model& model, int64_t part, int64_t parts) {
  if (parts == 1) return model;
  Model sliced = model;
  std::vector<std::vector<Block>> layers(model.blocks.size());
  for (Leaf& leaf : Cutter(leaves_of(model)).run(part, parts)) layers[leaf.block].push_back(std::move(leaf.layer));
  for (std::size_t index = 0; index < layers.size(); ++index) {
    sliced.blocks[index] = sequence(model.blocks[index].name, std::move(layers[index]));
  }
  return sliced;
}

Block slice_inside(const Block& block, int64_t part, int64_t parts) {
  std::vector<Leaf> leaves;
  flatten_into(leaves, block, 0);
  std::vector<Block> layers;
  for (Leaf& leaf : Cutter(std::move(leaves)).run(part, parts)) layers.push_back(std::move(leaf.layer));
  return sequence(block.name, std::move(layers));
}

int64_t smallest_inside(const Block& block) {
  std::vector<Leaf> leaves;
  flatten_into(leaves, block, 0);
  return Cutter(std::move(leaves)).smallest();
}

int64_t most_parts(const Model& model) {
  const int64_t least = Cutter(leaves_of(model)).smallest();
  return least == std::numeric_limits<int64_t>::max() ? 0 : least;
}

TensorSpec piece(const TensorSpec& whole, int64_t dim, Range range) {
  TensorSpec spec = whole;
  spec.global = whole.shape;
  spec.offset.assign(whole.shape.size(), 0);
  spec.offset[static_cast<std::size_t>(dim)] = range.begin;
  spec.shape[static_cast<std::size_t>(dim)] = range.size();
  return spec;
}

Block slice_of_outputs(const Block& whole, Block narrow, Range outputs) {
  for (std::size_t index = 0; index < narrow.parameters.size(); ++index) {
    narrow.parameters[index] = piece(whole.parameters[index], 0, outputs);
  }
  narrow.forward = [forward = narrow.forward](const at::Tensor& input, const BlockWeights& weights,
                                              const ForwardContext& context) {
    return forward(enter_slices(input, context), weights, context);
  };
  return narrow;
}

Block slice_of_inputs(const Block& whole, Block narrow, Range inputs,
                      std::function<at::Tensor(const at::Tensor& sum, const at::Tensor& bias)> add_bias) {
  narrow.parameters = {piece(whole.parameters[0], 1, inputs)};
  const bool has_bias = whole.parameters.size() > 1;
  if (has_bias) narrow.parameters.push_back(whole.parameters[1]);
  narrow.forward = [forward = narrow.forward, has_bias, add_bias = std::move(add_bias)](
                       const at::Tensor& input, const BlockWeights& weights, const ForwardContext& context) {
    const at::Tensor sum =
        leave_slices(forward(input, {weights.parameters.first(1), weights.buffers}, context), context);
    return has_bias ? add_bias(sum, weights.parameters[1]) : sum;
  };
  return narrow;
}

at::Tensor enter_slices(const at::Tensor& input, const ForwardContext& context) {
  if (!context.slices || !input.requires_grad()) return input;
  const at::Tensor same = input.view_as(input);
  same.register_hook([sum = context.slices](const at::Tensor& gradient) {
    at::Tensor whole = gradient.clone(at::MemoryFormat::Contiguous);
    (*sum)(whole);
    return whole;
  });
  return same;
}

at::Tensor leave_slices(const at::Tensor& part, const ForwardContext& context) {
  if (!context.slices) return part;
  at::Tensor whole = part.detach().clone(at::MemoryFormat::Contiguous);
  (*context.slices)(whole);
  return part.requires_grad() ? whole + (part - part.detach()) : whole;  // the same values, with the part's gradient
}

}  // namespace mgt::model
