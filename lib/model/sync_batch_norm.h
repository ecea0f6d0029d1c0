// Batch normalization over a batch whose rows are spread over several replicas: mean and variance of all of them, so
// that k replicas compute what one device would (Ioffe and Szegedy, 2015, over the whole batch). Written with
// differentiable operations and one all-reduce that is its own gradient, so it runs over any communicator and on any
// device. Every replica calls it in the same order, also with no rows of its own. What both kinds of BatchNorm share
// is here too.
#pragma once

#include "model/model.h"

namespace mgt::model {

struct BatchNormShape {
  double momentum = 0.1;  // of the running statistics
  double epsilon = 1e-5;
};

// Where each channel has a single value, its variance is none: NumericsError names the layer, as PyTorch refuses it.
void check_has_variance(const std::string& layer, int64_t values_per_channel);

// `input` (N, C, H, W) are this replica's rows. `weights` are scale and shift; running mean, running variance (made of
// the unbiased variance, as PyTorch's) and the count of batches.
at::Tensor sync_batch_norm(const std::string& layer, const at::Tensor& input, const BlockWeights& weights,
                           const BatchNormShape& shape, const SumOverReplicas& sum);

}  // namespace mgt::model
