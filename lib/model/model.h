// What a network is, apart from where its numbers lie: an ordered list of blocks, each with the tensors it needs, its
// output shape and its cost. A Model holds no tensor, no rank, no device and no strategy: weights are given to
// `forward` (as the book's lenet(X, params) does), so that replicas, shards and gathered copies are all just weights.
// Built once, immutable, shared by all threads and ranks of a process.
#pragma once

#include "model/state.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace mgt::model {

// How a tensor gets its first values. Random numbers come from core/seed.h, keyed by the tensor's place in the model.
struct Init {
  enum class Kind { constant, normal, uniform };
  Kind kind = Kind::constant;
  double value = 0;  // constant: the value; normal: the standard deviation; uniform: the bound of [-value, value)
};

struct TensorSpec {
  std::string name;  // as in the file of weights: "layer1.0.conv1.weight"
  Shape shape;
  Init init;
  bool integer = false;  // int64 instead of the compute dtype (BatchNorm's num_batches_tracked)
  // Of a layer that is cut (slices.h): the whole tensor's shape, and where in it this piece begins; empty: it is whole.
  Shape global = {};
  Shape offset = {};
};

// Sums a tensor over all replicas that share a batch, in place; each of them calls it in the same order.
using SumOverReplicas = std::function<void(at::Tensor&)>;

struct ForwardContext {
  bool training = true;            // BatchNorm uses batch statistics
  bool follows_statistics = true;  // and its running statistics follow them
  // Where it is given, BatchNorm's statistics are those of all replicas' rows, and it outlives the backward pass; else
  // they are those of the rows at hand.
  const SumOverReplicas* statistics = nullptr;
  // Where the layers are cut: sums over the ranks that have the other slices. It outlives the backward pass.
  const SumOverReplicas* slices = nullptr;
};

// The tensors of one block, in the order of its specs.
struct BlockWeights {
  std::span<const at::Tensor> parameters;
  std::span<const at::Tensor> buffers;
};

struct Block;

// How a layer can be cut for ranks that work on it together (slices.h); all empty: each of them does all of it.
struct Slicing {
  int64_t inputs = 0;                                // of a layer that is a matrix product: channels or features
  int64_t outputs = 0;                               // ... or the heads of an attention
  std::function<Block(Range outputs)> by_outputs;    // some of a matrix' outputs, from the whole input
  std::function<Block(Range inputs)> by_inputs;      // all outputs, of which some inputs' share is summed
  std::function<Block(Range channels)> by_channels;  // of a layer that treats each channel by itself
  std::function<Block(int64_t part, int64_t parts)> inside;  // whole from the outside
};

// One step of a network: a layer, or several joined by `sequence` and `residual` (layers.h). A value; what it does is
// given by functions, so that a new layer is a new value and not a new class.
struct Block {
  std::string name;
  std::vector<TensorSpec> parameters;
  std::vector<TensorSpec> buffers;
  std::function<Shape(const Shape& input)> output_shape;     // both of one sample, without the batch dimension
  std::function<int64_t(const Shape& input)> multiply_adds;  // of one sample's forward
  std::function<at::Tensor(const at::Tensor& input, const BlockWeights&, const ForwardContext&)> forward;
  Slicing slicing = {};
  std::vector<Block> layers = {};  // that a sequence is made of
};

enum class Loss { cross_entropy, mse };

struct Model {
  std::string name;
  Shape input;          // of one sample: (C, H, W) or (features)
  int64_t outputs = 0;  // classes, or the width of a regression
  Loss loss = Loss::cross_entropy;
  bool sync_statistics = false;  // `bn: sync`: replicas pass `ForwardContext::statistics`
  std::vector<Block> blocks;

  int64_t parameter_count() const;
  int64_t buffer_count() const;                // elements
  std::vector<Shape> shapes() const;           // output shape after each block
  std::vector<int64_t> multiply_adds() const;  // of each block, for one sample's forward
};

// Through all blocks of `model`, with the tensors of all blocks in order: the book's `net(X, params)`.
at::Tensor forward(const Model& model, const at::Tensor& input, const BlockWeights& weights,
                   const ForwardContext& context);

// The sum over the samples of the loss: cross entropy, or the squared error averaged over a sample's outputs.
at::Tensor summed_loss(Loss loss, const at::Tensor& outputs, const at::Tensor& targets);

// How many rows of `outputs` have their largest value at the target class (ties: the lowest index).
int64_t count_correct(const at::Tensor& outputs, const at::Tensor& targets);

}  // namespace mgt::model
