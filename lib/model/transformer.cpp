#include "model/transformer.h"

#include "core/error.h"
#include "core/text.h"
#include "model/slices.h"

#include "torch_pch.h"

#include <cmath>
#include <utility>

namespace mgt::model {
namespace {

constexpr double kNormEpsilon = 1e-6;        // torchvision's for vision_transformer; PyTorch's own default is 1e-5
constexpr double kPositionDeviation = 0.02;  // as in BERT and the paper's code

// The image cut into patches, each flattened as a convolution's weight is. Written so, and not as a convolution whose
// stride is its kernel, the embedding is one matrix product, and its backward pass adds in one order on every device.
at::Tensor cut(const at::Tensor& images, int64_t patch) {  // (N, C, H, W) -> (N, H/patch * W/patch, C * patch * patch)
  return images.unflatten(3, {-1, patch})
      .unflatten(2, {-1, patch})
      .permute({0, 2, 4, 1, 3, 5})
      .flatten(3)
      .flatten(1, 2);
}

at::Tensor split_heads(const at::Tensor& tokens, int64_t head_width) {  // (N, T, D) -> (N, heads, T, head_width)
  return tokens.unflatten(2, {-1, head_width}).transpose(1, 2);
}

// Matrix products and a softmax, not the fused operator: its backward pass on GPUs may add in any order.
at::Tensor attend(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values) {
  const double scale = 1 / std::sqrt(static_cast<double>(queries.size(3)));
  return at::softmax(at::matmul(queries * scale, keys.transpose(2, 3)), -1).matmul(values);
}

}  // namespace

Block layer_norm(const std::string& name, int64_t width) {
  Block block{.name = name};
  block.parameters = {{name + ".weight", {width}, {Init::Kind::constant, 1}},
                      {name + ".bias", {width}, {Init::Kind::constant, 0}}};
  block.output_shape = [](const Shape& input) { return input; };
  block.multiply_adds = [](const Shape&) { return 0; };
  block.forward = [width](const at::Tensor& input, const BlockWeights& weights, const ForwardContext&) {
    return at::layer_norm(input, {width}, weights.parameters[0], weights.parameters[1], kNormEpsilon);
  };
  return block;
}

Block gelu() {
  Block block = {
      .name = "gelu",
      .output_shape = [](const Shape& input) { return input; },
      .multiply_adds = [](const Shape&) { return 0; },
      .forward = [](const at::Tensor& input, const BlockWeights&, const ForwardContext&) { return at::gelu(input); }};
  block.slicing.by_channels = [](Range) { return gelu(); };
  return block;
}

Block first_token() {
  return {.name = "first_token",
          .output_shape = [](const Shape& input) { return Shape{input.back()}; },
          .multiply_adds = [](const Shape&) { return 0; },
          .forward = [](const at::Tensor& input, const BlockWeights&,
                        const ForwardContext&) { return input.select(1, 0); }};
}

Block skip(const std::string& name, Block main) {
  Block whole = main;
  whole.name = name;
  whole.layers.clear();
  whole.slicing = {.outputs = smallest_inside(main),
                   .inside = [=](int64_t part, int64_t parts) { return skip(name, slice_inside(main, part, parts)); }};
  whole.forward = [main = std::move(main)](const at::Tensor& input, const BlockWeights& weights,
                                           const ForwardContext& context) {
    return input + main.forward(input, weights, context);
  };
  return whole;
}

Block patch_embedding(const Patches& shape, const WeightInit& init) {
  const auto [image, patch, width] = shape;
  const int64_t patches = (image[1] / patch) * (image[2] / patch);
  const Init position{Init::Kind::normal, kPositionDeviation};
  Block block = conv2d("conv_proj", {.in = image[0], .out = width, .kernel = patch, .stride = patch}, init);
  block.name = "patch_embedding";
  block.slicing = {};
  block.parameters.push_back({"class_token", {1, 1, width}, position});
  block.parameters.push_back({"encoder.pos_embedding", {1, patches + 1, width}, position});
  block.output_shape = [image, patches, width](const Shape& input) {
    require(input == image, concat("an embedding of images ", shape_text(image), " got ", shape_text(input)));
    return Shape{patches + 1, width};
  };
  block.forward = [patch](const at::Tensor& input, const BlockWeights& weights, const ForwardContext&) {
    const at::Tensor& kernel = weights.parameters[0];
    const at::Tensor class_token = weights.parameters[2].expand({input.size(0), -1, -1});
    const at::Tensor tokens = at::linear(cut(input, patch), kernel.flatten(1), weights.parameters[1]);
    return at::cat({class_token, tokens}, 1) + weights.parameters[3];
  };
  return block;
}

Block self_attention(const std::string& name, int64_t width, int64_t heads, const WeightInit& init) {
  require(width % heads == 0, "heads divide the width");
  const Block query = linear(name + ".q_proj", width, width, init), key = linear(name + ".k_proj", width, width, init),
              value = linear(name + ".v_proj", width, width, init),
              out = linear(name + ".out_proj", width, width, init);
  Block block{.name = name};
  // Keys have no bias: it would add the same to all scores of a query, which softmax takes away again. Its gradient
  // would be zero but for rounding, and Adam would divide rounding by rounding.
  block.parameters = {query.parameters[0], query.parameters[1], key.parameters[0], value.parameters[0],
                      value.parameters[1], out.parameters[0],   out.parameters[1]};
  block.output_shape = [](const Shape& input) { return input; };
  block.multiply_adds = [](const Shape& input) {
    const int64_t tokens = input[0], size = input[1];
    return 4 * tokens * size * size + 2 * tokens * tokens * size;  // projections; scores and their use
  };
  block.forward = [head_width = width / heads](const at::Tensor& input, const BlockWeights& weights,
                                               const ForwardContext& context) {
    const auto& tensors = weights.parameters;
    const at::Tensor own = enter_slices(input, context);
    const at::Tensor queries = split_heads(at::linear(own, tensors[0], tensors[1]), head_width),
                     keys = split_heads(at::linear(own, tensors[2]), head_width),
                     values = split_heads(at::linear(own, tensors[3], tensors[4]), head_width);
    const at::Tensor seen = attend(queries, keys, values).transpose(1, 2).flatten(2);
    return leave_slices(at::linear(seen, tensors[5]), context) + tensors[6];
  };
  block.slicing.outputs = heads;
  block.slicing.inside = [=, specs = block.parameters](int64_t part, int64_t parts) {
    const int64_t head_width = width / heads;
    const Range own = split(heads, parts, part), rows{own.begin * head_width, own.end * head_width};
    Block sliced = self_attention(name, width, heads, init);
    for (std::size_t index = 0; index < 5; ++index) sliced.parameters[index] = piece(specs[index], 0, rows);
    sliced.parameters[5] = piece(specs[5], 1, rows);
    sliced.slicing = {};
    return sliced;
  };
  return block;
}

}  // namespace mgt::model
