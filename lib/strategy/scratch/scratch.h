// Data parallel training from scratch, as "Dive into Deep Learning", chapter "Training on multiple GPUs", teaches it:
// one process, a list of devices, and the book's functions under the book's names. What the book gets wrong is right
// here: replicas never share storage, uneven batches lose no sample, sums are written in place.
// One thread owns all of it. k devices; X is (n, C, H, W), y is (n).
#pragma once

#include "model/model.h"
#include "optim/clip.h"
#include "optim/optimizer.h"
#include "strategy/parts/microbatches.h"
#include "strategy/scratch/allreduce.h"

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace mgt::strategy::scratch {

using Params = std::vector<at::Tensor>;

// A deep copy of every parameter on `device`, recording gradients that are not there yet.
Params get_params(const Params& params, at::Device device);

// The rows of X and y shared out over the devices: contiguous, sizes differ by at most one, parts may be empty.
// InternalError when X and y have different lengths.
std::pair<std::vector<at::Tensor>, std::vector<at::Tensor>> split_batch(const at::Tensor& X, const at::Tensor& y,
                                                                        const std::vector<at::Device>& devices);

// One device's copy of the network and what belongs to it.
struct Device {
  at::Device device;
  Params params;
  std::vector<at::Tensor> buffers;                            // BatchNorm statistics: this device's own
  std::vector<std::unique_ptr<optim::Optimizer>> optimizers;  // one a parameter
};

// The network as a function of its parameters, and the summed loss of a shard.
using Net = std::function<at::Tensor(const at::Tensor& X, const Device& device)>;
using SummedLoss = std::function<at::Tensor(const at::Tensor& y_hat, const at::Tensor& y)>;

// How a minibatch is worked on, besides the network.
struct Recipe {
  AllReduce allreduce;
  double lr = 0;
  int64_t done = 0;  // steps before this one
  optim::Clip clip = {};
  MicroBatch micro_batch = {};
};

struct BatchResult {
  double loss = 0;           // mean over the batch, before the update
  double gradient_norm = 0;  // before clipping
  Traffic traffic = {};
};

// Who looks on: called, where given, before and after the all-reduce and after the update.
struct Watch {
  std::function<void()> gradients_computed;
  std::function<void()> gradients_ready;
  std::function<void()> updated;
};

// The five steps of data parallelism on one minibatch: split, forward and backward on each device, all-reduce of each
// parameter's gradient, and the same update everywhere, divided by the size of the whole batch.
BatchResult train_batch(const at::Tensor& X, const at::Tensor& y, std::vector<Device>& devices, const Net& net,
                        const SummedLoss& loss, const Recipe& recipe, const Watch& watch = {});

// The same step of the optimizer on every device, whose gradients are equal. Returns the gradient's norm before
// clipping.
double update(std::vector<Device>& devices, const Recipe& recipe);

}  // namespace mgt::strategy::scratch
