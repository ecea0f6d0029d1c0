#include "model/layers.h"

#include "core/error.h"
#include "core/text.h"
#include "model/slices.h"
#include "model/sync_batch_norm.h"

#include "torch_pch.h"

#include <cmath>

namespace mgt::model {
namespace {

int64_t pooled(int64_t size, int64_t kernel, int64_t stride, int64_t padding) {
  const int64_t room = size + 2 * padding - kernel;  // 0 where the kernel does not fit: checked when a model is built
  return size < 1 || room < 0 ? 0 : room / stride + 1;
}

int64_t no_cost(const Shape&) { return 0; }
Shape same_shape(const Shape& input) { return input; }

Init weight_init(const WeightInit& init, int64_t fan_in) {
  if (init.kind == WeightInit::Kind::normal) return {Init::Kind::normal, init.deviation};
  return {Init::Kind::uniform, 1.0 / std::sqrt(static_cast<double>(fan_in))};
}

Init bias_init(const WeightInit& init, int64_t fan_in) {
  if (init.kind == WeightInit::Kind::normal) return {Init::Kind::constant, 0};
  return weight_init(init, fan_in);
}

// The part of `weights` that belongs to `block`, when `parameters` and `buffers` of its elders come first.
BlockWeights part(const BlockWeights& weights, std::size_t parameters, std::size_t buffers, const Block& block) {
  return {weights.parameters.subspan(parameters, block.parameters.size()),
          weights.buffers.subspan(buffers, block.buffers.size())};
}

void append(Block& whole, const Block& piece) {
  whole.parameters.insert(whole.parameters.end(), piece.parameters.begin(), piece.parameters.end());
  whole.buffers.insert(whole.buffers.end(), piece.buffers.begin(), piece.buffers.end());
}

// A layer without weights that treats each channel by itself is its own slice.
Block by_channel(Block layer) {
  layer.slicing.by_channels = [same = layer](Range) { return same; };
  return layer;
}

}  // namespace

Block conv2d(const std::string& name, const Conv& conv, const WeightInit& init) {
  const int64_t fan_in = conv.in * conv.kernel * conv.kernel;
  Block block{.name = name};
  block.parameters = {{name + ".weight", {conv.out, conv.in, conv.kernel, conv.kernel}, weight_init(init, fan_in)}};
  if (conv.bias) block.parameters.push_back({name + ".bias", {conv.out}, bias_init(init, fan_in)});
  block.output_shape = [conv](const Shape& input) {
    require(input.size() == 3 && input[0] == conv.in,
            concat("a convolution of ", conv.in, " channels got ", shape_text(input)));
    return Shape{conv.out, pooled(input[1], conv.kernel, conv.stride, conv.padding),
                 pooled(input[2], conv.kernel, conv.stride, conv.padding)};
  };
  block.multiply_adds = [fan_in, shape = block.output_shape](const Shape& input) {
    return elements(shape(input)) * fan_in;
  };
  block.forward = [conv](const at::Tensor& input, const BlockWeights& weights, const ForwardContext&) {
    const at::Tensor bias = conv.bias ? weights.parameters[1] : at::Tensor();
    return at::conv2d(input, weights.parameters[0], bias, {conv.stride, conv.stride}, {conv.padding, conv.padding});
  };
  block.slicing.inputs = conv.in;
  block.slicing.outputs = conv.out;
  block.slicing.by_outputs = [=](Range outputs) {
    Conv narrow = conv;
    narrow.out = outputs.size();
    return slice_of_outputs(conv2d(name, conv, init), conv2d(name, narrow, init), outputs);
  };
  block.slicing.by_inputs = [=](Range inputs) {
    Conv narrow = conv;
    narrow.in = inputs.size();
    narrow.bias = false;
    return slice_of_inputs(conv2d(name, conv, init), conv2d(name, narrow, init), inputs,
                           [](const at::Tensor& sum, const at::Tensor& bias) {
                             return sum + bias.view({1, -1, 1, 1});
                           });
  };
  return block;
}

Block linear(const std::string& name, int64_t in, int64_t out, const WeightInit& init) {
  Block block{.name = name};
  block.parameters = {{name + ".weight", {out, in}, weight_init(init, in)},
                      {name + ".bias", {out}, bias_init(init, in)}};
  block.output_shape = [in, out](const Shape& input) {
    require(!input.empty() && input.back() == in, concat("a linear layer of ", in, " inputs got ", shape_text(input)));
    Shape output = input;
    output.back() = out;
    return output;
  };
  block.multiply_adds = [out](const Shape& input) { return elements(input) * out; };
  block.forward = [](const at::Tensor& input, const BlockWeights& weights, const ForwardContext&) {
    const bool has_bias = weights.parameters.size() > 1;
    return at::linear(input, weights.parameters[0], has_bias ? weights.parameters[1] : at::Tensor());
  };
  block.slicing.inputs = in;
  block.slicing.outputs = out;
  block.slicing.by_outputs = [=](Range outputs) {
    return slice_of_outputs(linear(name, in, out, init), linear(name, in, outputs.size(), init), outputs);
  };
  block.slicing.by_inputs = [=](Range inputs) {
    return slice_of_inputs(linear(name, in, out, init), linear(name, inputs.size(), out, init), inputs,
                           [](const at::Tensor& sum, const at::Tensor& bias) { return sum + bias; });
  };
  return block;
}

Block batch_norm(const std::string& name, int64_t channels) {
  static constexpr BatchNormShape kShape;
  Block block{.name = name};
  block.parameters = {{name + ".weight", {channels}, {Init::Kind::constant, 1}},
                      {name + ".bias", {channels}, {Init::Kind::constant, 0}}};
  block.buffers = {{name + ".running_mean", {channels}, {Init::Kind::constant, 0}},
                   {name + ".running_var", {channels}, {Init::Kind::constant, 1}},
                   {name + ".num_batches_tracked", {}, {Init::Kind::constant, 0}, true}};
  block.output_shape = same_shape;
  block.multiply_adds = no_cost;
  block.forward = [=](const at::Tensor& input, const BlockWeights& weights, const ForwardContext& context) {
    const bool follows = context.training && context.follows_statistics;
    if (follows) at::Tensor(weights.buffers[2]).add_(1);
    if (context.training && context.statistics) {
      return sync_batch_norm(name, input, weights, kShape, *context.statistics);
    }
    if (context.training) check_has_variance(name, input.numel() / channels);
    const auto running = [&](std::size_t index) {
      return context.training && !follows ? std::nullopt : std::optional(weights.buffers[index]);
    };
    return at::batch_norm(input, weights.parameters[0], weights.parameters[1], running(0), running(1), context.training,
                          kShape.momentum, kShape.epsilon, /*cudnn_enabled=*/true);
  };
  block.slicing.by_channels = [=](Range own) {
    const Block whole = batch_norm(name, channels);
    Block narrow = batch_norm(name, own.size());
    for (std::size_t index = 0; index < 2; ++index) {
      narrow.parameters[index] = piece(whole.parameters[index], 0, own);
      narrow.buffers[index] = piece(whole.buffers[index], 0, own);
    }
    return narrow;
  };
  return block;
}

Block relu() {
  return by_channel(
      {.name = "relu",
       .output_shape = same_shape,
       .multiply_adds = no_cost,
       .forward = [](const at::Tensor& input, const BlockWeights&, const ForwardContext&) { return at::relu(input); }});
}

Block avg_pool(int64_t kernel, int64_t stride) {
  return by_channel(
      {.name = "avg_pool",
       .output_shape =
           [=](const Shape& input) {
             return Shape{input[0], pooled(input[1], kernel, stride, 0), pooled(input[2], kernel, stride, 0)};
           },
       .multiply_adds = no_cost,
       .forward =
           [=](const at::Tensor& input, const BlockWeights&, const ForwardContext&) {
             return at::avg_pool2d(input, {kernel, kernel}, {stride, stride});
           }});
}

Block max_pool(int64_t kernel, int64_t stride, int64_t padding) {
  return by_channel({.name = "max_pool",
                     .output_shape =
                         [=](const Shape& input) {
                           return Shape{input[0], pooled(input[1], kernel, stride, padding),
                                        pooled(input[2], kernel, stride, padding)};
                         },
                     .multiply_adds = no_cost,
                     .forward =
                         [=](const at::Tensor& input, const BlockWeights&, const ForwardContext&) {
                           return at::max_pool2d(input, {kernel, kernel}, {stride, stride}, {padding, padding});
                         }});
}

Block global_avg_pool() {
  return by_channel({.name = "global_avg_pool",
                     .output_shape = [](const Shape& input) { return Shape{input[0]}; },
                     .multiply_adds = no_cost,
                     .forward =
                         [](const at::Tensor& input, const BlockWeights&, const ForwardContext&) {
                           return input.mean({2, 3});
                         }});
}

Block flatten() {
  return by_channel({.name = "flatten",
                     .output_shape = [](const Shape& input) { return Shape{elements(input)}; },
                     .multiply_adds = no_cost,
                     .forward = [](const at::Tensor& input, const BlockWeights&,
                                   const ForwardContext&) { return input.flatten(1); }});
}

Block sequence(const std::string& name, std::vector<Block> layers) {
  Block whole{.name = name};
  for (const Block& layer : layers) append(whole, layer);
  whole.output_shape = [layers](Shape shape) {
    for (const Block& layer : layers) shape = layer.output_shape(shape);
    return shape;
  };
  whole.multiply_adds = [layers](Shape shape) {
    int64_t total = 0;
    for (const Block& layer : layers) {
      total += layer.multiply_adds(shape);
      shape = layer.output_shape(shape);
    }
    return total;
  };
  whole.layers = layers;
  whole.forward = [layers = std::move(layers)](at::Tensor value, const BlockWeights& weights,
                                               const ForwardContext& context) {
    std::size_t parameters = 0, buffers = 0;
    for (const Block& layer : layers) {
      value = layer.forward(value, part(weights, parameters, buffers, layer), context);
      parameters += layer.parameters.size();
      buffers += layer.buffers.size();
    }
    return value;
  };
  return whole;
}

Block residual(const std::string& name, Block main, Block shortcut) {
  Block whole{.name = name};
  append(whole, main);
  append(whole, shortcut);
  whole.output_shape = main.output_shape;
  whole.multiply_adds = [main, shortcut](const Shape& input) {
    return main.multiply_adds(input) + shortcut.multiply_adds(input);
  };
  whole.slicing.outputs = smallest_inside(main);
  whole.slicing.inside = [=](int64_t index, int64_t parts) {
    return residual(name, slice_inside(main, index, parts), shortcut);
  };
  whole.forward = [main = std::move(main), shortcut = std::move(shortcut)](
                      const at::Tensor& input, const BlockWeights& weights, const ForwardContext& context) {
    const at::Tensor straight = main.forward(input, part(weights, 0, 0, main), context);
    const at::Tensor skipped =
        shortcut.forward(input, part(weights, main.parameters.size(), main.buffers.size(), shortcut), context);
    return at::relu(straight + skipped);
  };
  return whole;
}

}  // namespace mgt::model
