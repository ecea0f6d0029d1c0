#include "strategy/scratch/scratch.h"

#include "core/error.h"
#include "core/split.h"

#include "torch_pch.h"

#include <cmath>

namespace mgt::strategy::scratch {
namespace {

std::vector<at::Device> places_of(const std::vector<Device>& devices) {
  std::vector<at::Device> places;
  for (const Device& device : devices) places.push_back(device.device);
  return places;
}

// A device with no rows takes part with a gradient of zero.
void clear_gradients(std::vector<Device>& devices) {
  for (Device& device : devices) {
    for (at::Tensor& param : device.params) param.mutable_grad() = at::zeros_like(param);
  }
}

// Forward on each device, then backward on each: on GPUs the devices work at the same time. Gradients add up over the
// pieces. Returns the sum of the losses.
double forward_and_backward(const std::vector<at::Tensor>& X_shards, const std::vector<at::Tensor>& y_shards,
                            const std::vector<Device>& devices, const Net& net, const SummedLoss& loss,
                            int64_t pieces) {
  double sum = 0;
  for (int64_t piece = 0; piece < pieces; ++piece) {
    std::vector<at::Tensor> losses;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const Range rows = split(X_shards[i].size(0), pieces, piece);
      if (rows.size() == 0) continue;
      losses.push_back(loss(net(X_shards[i].narrow(0, rows.begin, rows.size()), devices[i]),
                            y_shards[i].narrow(0, rows.begin, rows.size())));
    }
    for (at::Tensor& l : losses) l.backward();
    for (const at::Tensor& l : losses) sum += l.item<double>();
  }
  return sum;
}

}  // namespace

Params get_params(const Params& params, at::Device device) {
  Params new_params;
  for (const at::Tensor& param : params) {
    // `to` alone would return the same tensor where it already is: always copy.
    at::Tensor copy = param.detach().to(device, param.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
    new_params.push_back(copy.set_requires_grad(true));
  }
  return new_params;
}

std::pair<std::vector<at::Tensor>, std::vector<at::Tensor>> split_batch(const at::Tensor& X, const at::Tensor& y,
                                                                        const std::vector<at::Device>& devices) {
  require(X.size(0) == y.size(0), "X and y of a batch have the same length");
  std::vector<at::Tensor> X_shards, y_shards;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const Range rows = split(X.size(0), static_cast<int64_t>(devices.size()), static_cast<int64_t>(i));
    X_shards.push_back(X.narrow(0, rows.begin, rows.size()).to(devices[i]));
    y_shards.push_back(y.narrow(0, rows.begin, rows.size()).to(devices[i]));
  }
  return {X_shards, y_shards};
}

BatchResult train_batch(const at::Tensor& X, const at::Tensor& y, std::vector<Device>& devices, const Net& net,
                        const SummedLoss& loss, const Recipe& recipe, const Watch& watch) {
  BatchResult result;
  const auto batch_size = static_cast<double>(X.size(0));
  clear_gradients(devices);
  const auto [X_shards, y_shards] = split_batch(X, y, places_of(devices));
  const int64_t pieces = pieces_of(X.size(0), static_cast<int64_t>(devices.size()), recipe.micro_batch);
  result.loss = forward_and_backward(X_shards, y_shards, devices, net, loss, pieces) / batch_size;
  if (watch.gradients_computed) watch.gradients_computed();

  const at::NoGradGuard no_grad;
  for (std::size_t p = 0; p < devices[0].params.size(); ++p) {
    std::vector<at::Tensor> gradients;
    for (Device& device : devices) gradients.push_back(device.params[p].grad());
    result.traffic += recipe.allreduce(gradients);
  }
  for (Device& device : devices) {
    for (at::Tensor& param : device.params) param.mutable_grad().div_(batch_size);  // of the whole batch
  }
  if (watch.gradients_ready) watch.gradients_ready();
  result.gradient_norm = update(devices, recipe);
  if (watch.updated) watch.updated();
  return result;
}

double update(std::vector<Device>& devices, const Recipe& recipe) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& param : devices[0].params) gradients.push_back(param.grad());
  const double norm = std::sqrt(optim::sum_of_squares(gradients));
  for (Device& device : devices) {
    for (std::size_t p = 0; p < device.params.size(); ++p) {
      optim::clip(device.params[p].mutable_grad(), recipe.clip, norm);
      device.optimizers[p]->step(device.params[p], device.params[p].mutable_grad(), recipe.lr, recipe.done);
    }
  }
  return norm;
}

}  // namespace mgt::strategy::scratch
