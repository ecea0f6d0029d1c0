// Tensor parallelism (Shoeybi et al., "Megatron-LM", 2019): a layer cut over ranks that work on it together. Of two
// matrix layers in a row the first is cut by outputs and the second by inputs, with what lies between cut by channels;
// then one sum over the ranks forward, and one backward, makes the pair whole. Attention is cut by heads. What has no
// partner is done by every rank, but in a model of one matrix layer, which is cut by inputs. Slices differ by at most one channel. Pure functions.
#pragma once

#include "model/model.h"

namespace mgt::model {

// The model of rank `part` of `parts`: the same blocks, with slices of their tensors.
Model slice(const Model& model, int64_t part, int64_t parts);

// The same of one block that is whole from the outside.
Block slice_inside(const Block& block, int64_t part, int64_t parts);

// The smallest number of channels or heads in a block that is cut so; none: the largest integer.
int64_t smallest_inside(const Block& block);

// The most parts that leave no slice empty; 0 where nothing can be cut.
int64_t most_parts(const Model& model);

// A matrix layer's slice, given the layer `narrow` of that many outputs alone.
Block slice_of_outputs(const Block& whole, Block narrow, Range outputs);

// ... and given the layer `narrow` of that many inputs, without a bias. `add_bias` adds the whole's to the sum.
Block slice_of_inputs(const Block& whole, Block narrow, Range inputs,
                      std::function<at::Tensor(const at::Tensor& sum, const at::Tensor& bias)> add_bias);

// A tensor that each slice uses, as it is: its gradient is the sum of theirs.
at::Tensor enter_slices(const at::Tensor& input, const ForwardContext& context);

// The sum of what the slices made: each one's gradient is that of the sum.
at::Tensor leave_slices(const at::Tensor& part, const ForwardContext& context);

// A spec's piece `range` along `dim`.
TensorSpec piece(const TensorSpec& whole, int64_t dim, Range range);

}  // namespace mgt::model
