#include "strategy/scratch/scratch.h"

#include "core/error.h"
#include "core/split.h"

#include "torch_pch.h"

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
                        const SummedLoss& loss, AllReduce allreduce, double lr, const Watch& watch) {
  BatchResult result;
  clear_gradients(devices);
  const auto [X_shards, y_shards] = split_batch(X, y, places_of(devices));

  // Forward on each device, then backward on each: on GPUs the devices work at the same time.
  std::vector<at::Tensor> losses;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (X_shards[i].size(0) > 0) losses.push_back(loss(net(X_shards[i], devices[i]), y_shards[i]));
  }
  for (at::Tensor& l : losses) l.backward();
  if (watch.gradients_computed) watch.gradients_computed();

  const at::NoGradGuard no_grad;
  for (std::size_t p = 0; p < devices[0].params.size(); ++p) {
    std::vector<at::Tensor> gradients;
    for (Device& device : devices) gradients.push_back(device.params[p].grad());
    result.traffic += allreduce(gradients);
  }
  for (Device& device : devices) {
    for (at::Tensor& param : device.params) param.mutable_grad().div_(X.size(0));  // of the whole batch
  }
  if (watch.gradients_ready) watch.gradients_ready();
  for (Device& device : devices) {
    for (std::size_t p = 0; p < device.params.size(); ++p) {
      device.optimizers[p]->step(device.params[p], device.params[p].mutable_grad(), lr);
    }
  }
  if (watch.updated) watch.updated();
  for (const at::Tensor& l : losses) result.loss += l.item<double>() / static_cast<double>(X.size(0));
  return result;
}

}  // namespace mgt::strategy::scratch
