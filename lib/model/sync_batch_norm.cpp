#include "model/sync_batch_norm.h"

#include "core/error.h"
#include "core/text.h"

#include "torch_pch.h"

#include <torch/csrc/autograd/custom_function.h>

namespace mgt::model {
namespace {

// The sum of a tensor over the replicas. Each replica's loss depends on it, so its gradient is the sum of theirs.
class Sum final : public torch::autograd::Function<Sum> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& part,
                            const SumOverReplicas* sum) {
    context->saved_data["sum"] = reinterpret_cast<int64_t>(sum);
    at::Tensor whole = part.clone();
    (*sum)(whole);
    return whole;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto* sum = reinterpret_cast<const SumOverReplicas*>(context->saved_data["sum"].toInt());
    at::Tensor whole = gradients[0].clone();
    (*sum)(whole);
    return {whole, at::Tensor()};
  }
};

// One value a channel, shaped to meet (N, C, H, W).
at::Tensor per_channel(const at::Tensor& values) { return values.view({1, -1, 1, 1}); }

void follow(at::Tensor running, const at::Tensor& now, double momentum) { running.lerp_(now.detach(), momentum); }

}  // namespace

void check_has_variance(const std::string& layer, int64_t values_per_channel) {
  if (values_per_channel != 1) return;
  throw NumericsError(concat(layer, ": BatchNorm over a single value per channel, one row of 1 x 1 pixels; use larger ",
                             "batches (batch_size), fewer pieces (accumulate, microbatches), or data.drop_last: true"));
}

at::Tensor sync_batch_norm(const std::string& layer, const at::Tensor& input, const BlockWeights& weights,
                           const BatchNormShape& shape, const SumOverReplicas& sum) {
  const int64_t channels = input.size(1), own_values = input.numel() / channels;
  const at::Tensor own_count = at::full({1}, static_cast<double>(own_values), input.options());
  const at::Tensor totals = Sum::apply(at::cat({input.sum({0, 2, 3}), own_count}), &sum);
  const at::Tensor count = totals.narrow(0, channels, 1).detach();
  if (own_values <= 1) check_has_variance(layer, count.item<int64_t>());  // else a GPU need not be waited for
  const at::Tensor mean = totals.narrow(0, 0, channels) / count;
  // Two passes: the difference of large sums would lose the digits that the proof looks at.
  const at::Tensor centered = input - per_channel(mean);
  const at::Tensor variance = Sum::apply(centered.square().sum({0, 2, 3}), &sum) / count;
  {
    const at::NoGradGuard no_grad;
    follow(weights.buffers[0], mean, shape.momentum);
    follow(weights.buffers[1], variance * count / (count - 1), shape.momentum);
  }
  const at::Tensor scale = weights.parameters[0] * (variance + shape.epsilon).rsqrt();
  return centered * per_channel(scale) + per_channel(weights.parameters[1]);
}

}  // namespace mgt::model
