#include "model/model.h"

#include "torch_pch.h"

namespace mgt::model {
namespace {

int64_t total_elements(const std::vector<TensorSpec>& specs) {
  int64_t total = 0;
  for (const TensorSpec& spec : specs) total += elements(spec.shape);
  return total;
}

// Class numbers as rows of 0 and 1, for a squared error on a classification.
at::Tensor one_hot(const at::Tensor& targets, const at::Tensor& outputs) {
  return at::zeros_like(outputs).scatter_(1, targets.unsqueeze(1), 1.0);
}

}  // namespace

int64_t Model::parameter_count() const {
  int64_t total = 0;
  for (const Block& block : blocks) total += total_elements(block.parameters);
  return total;
}

int64_t Model::buffer_count() const {
  int64_t total = 0;
  for (const Block& block : blocks) total += total_elements(block.buffers);
  return total;
}

std::vector<Shape> Model::shapes() const {
  std::vector<Shape> shapes;
  Shape shape = input;
  for (const Block& block : blocks) shapes.push_back(shape = block.output_shape(shape));
  return shapes;
}

std::vector<int64_t> Model::multiply_adds() const {
  std::vector<int64_t> costs;
  Shape shape = input;
  for (const Block& block : blocks) {
    costs.push_back(block.multiply_adds(shape));
    shape = block.output_shape(shape);
  }
  return costs;
}

at::Tensor forward(const Model& model, const at::Tensor& input, const BlockWeights& weights,
                   const ForwardContext& context) {
  at::Tensor value = input;
  std::size_t parameter = 0, buffer = 0;
  for (const Block& block : model.blocks) {
    value = block.forward(value,
                          {weights.parameters.subspan(parameter, block.parameters.size()),
                           weights.buffers.subspan(buffer, block.buffers.size())},
                          context);
    parameter += block.parameters.size();
    buffer += block.buffers.size();
  }
  return value;
}

at::Tensor summed_loss(Loss loss, const at::Tensor& outputs, const at::Tensor& targets) {
  if (loss == Loss::cross_entropy) {
    return at::cross_entropy_loss(outputs, targets, /*weight=*/{}, at::Reduction::Sum);
  }
  const at::Tensor wanted = targets.is_floating_point() ? targets : one_hot(targets, outputs);
  return at::mse_loss(outputs, wanted, at::Reduction::Sum) / outputs.size(1);
}

int64_t count_correct(const at::Tensor& outputs, const at::Tensor& targets) {
  return outputs.argmax(1).eq(targets).sum().item<int64_t>();
}

}  // namespace mgt::model
