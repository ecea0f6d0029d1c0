#include "strategy/parts/worker.h"

#include "optim/entry.h"

#include "torch_pch.h"

#include <map>

namespace mgt::strategy {

Worker::Worker(const Context& context, at::Device device)
    : Worker(context, device, {0, static_cast<int64_t>(context.model.blocks.size())}) {}

Worker::Worker(const Context& context, at::Device device, Range blocks)
    : replica_(context.model, blocks, context.dtype, device, context.seed),
      optimizer_(optim::make(context.config, replica_.parameters())) {}

double Worker::compute_gradients(const data::Batch& batch, int64_t samples, const model::SumOverReplicas& statistics) {
  replica_.zero_gradients();
  const bool joins_others = statistics && replica_.model().sync_statistics;  // also when it brings no rows
  if (batch.size() == 0 && !joins_others) return 0;
  const at::Tensor outputs =
      replica_.forward(batch.inputs, {.training = true, .statistics = joins_others ? &statistics : nullptr});
  const at::Tensor loss =
      model::summed_loss(replica_.model().loss, outputs, batch.targets) / static_cast<double>(samples);
  loss.backward();
  return loss.item<double>();
}

std::vector<NamedTensor> Worker::parameters() const {
  std::vector<NamedTensor> parameters;
  for (std::size_t index = 0; index < replica_.slots().size(); ++index) {
    parameters.push_back({replica_.slots()[index].name, replica_.parameter_views()[index]});
  }
  return parameters;
}

void Worker::update(double lr) {
  const at::NoGradGuard no_grad;
  optimizer_->step(replica_.parameters(), replica_.gradients(), lr);
}

std::vector<model::StateSlice> Worker::state(bool primary) {
  std::vector<model::StateSlice> slices = replica_.state(primary);
  for (model::StateSlice& slice : optimizer_slices(*optimizer_, replica_.slots(), primary)) {
    slices.push_back(std::move(slice));
  }
  return slices;
}

EvalCounts count(const model::Replica& replica, const data::Batch& batch) {
  if (batch.size() == 0) return {};
  const at::NoGradGuard no_grad;
  const at::Tensor outputs = replica.forward(batch.inputs, {.training = false});
  return {.correct = model::count_correct(outputs, batch.targets), .total = batch.size()};
}

void copy_primary_to_replicas(std::vector<model::StateSlice> state, std::optional<model::StateKind> kind) {
  const at::NoGradGuard no_grad;
  std::map<std::string, at::Tensor> primary;
  for (const model::StateSlice& slice : state) {
    if (slice.primary) primary[slice.name] = slice.view;
  }
  for (model::StateSlice& slice : state) {
    if (!slice.primary && (!kind || slice.kind == *kind)) slice.view.copy_(primary.at(slice.name));
  }
}

std::vector<model::StateSlice> optimizer_slices(optim::Optimizer& optimizer, const std::vector<model::Slot>& slots,
                                                bool primary) {
  std::vector<model::StateSlice> slices;
  for (const optim::StateTensor& state : optimizer.state()) {
    for (const model::Slot& slot : slots) {
      const at::Tensor view = state.flat.narrow(0, slot.range.begin, slot.range.size()).view(slot.shape);
      slices.push_back(model::whole(slot.name + "." + state.name, model::StateKind::optimizer, view, primary));
    }
  }
  return slices;
}

}  // namespace mgt::strategy
