#include "strategy/parts/worker.h"

#include "optim/entry.h"
#include "strategy/parts/microbatches.h"

#include "torch_pch.h"

#include <map>

namespace mgt::strategy {

Worker::Worker(const Context& context, at::Device device)
    : Worker(context, device, {0, static_cast<int64_t>(context.model.blocks.size())}) {}

Worker::Worker(const Context& context, at::Device device, Range blocks)
    : replica_(context.model, blocks, context.dtype, device, context.seed),
      overlaps_(overlaps(replica_.slots(), {0, replica_.parameters().numel()})),
      optimizer_(
          optim::make(context.config, subject_of(replica_.parameters(), overlaps_, optim::no_decay(context.config)))),
      clip_(optim::clip_of(context.config)) {}

double Worker::compute_gradients(const data::Batch& batch, int64_t samples, int64_t pieces,
                                 const model::SumOverReplicas& statistics) {
  replica_.zero_gradients();
  double loss = 0;
  for (int64_t piece = 0; piece < pieces; ++piece) {
    loss += add_gradients(piece_of(batch, pieces, piece), samples, statistics);
  }
  return loss;
}

double Worker::add_gradients(const data::Batch& batch, int64_t samples, const model::SumOverReplicas& statistics) {
  const bool joins_others = statistics && replica_.model().sync_statistics;  // also when it brings no rows
  if (batch.size() == 0 && !joins_others) return 0;
  const at::Tensor outputs =
      replica_.forward(batch.inputs, {.training = true, .statistics = joins_others ? &statistics : nullptr});
  return backward(replica_.model().loss, outputs, batch.targets, samples);
}

double Worker::compute_gradients(const data::Batch& own, int64_t samples, const VirtualShards& shards) {
  const auto compute = [&](int64_t shard, const data::Batch& rows) {
    if (rows.size() == 0) return 0.0;
    const at::Tensor outputs = replica_.forward(rows.inputs, {.training = true, .follows_statistics = shard == 0});
    return backward(replica_.model().loss, outputs, rows.targets, samples);
  };
  return shards.sum(own, samples, {&replica_.gradients(), 1}, compute);
}

double backward(model::Loss loss, const at::Tensor& outputs, const at::Tensor& targets, int64_t samples) {
  const at::Tensor mean = model::summed_loss(loss, outputs, targets) / static_cast<double>(samples);
  mean.backward();
  return mean.item<double>();
}

std::vector<NamedTensor> Worker::parameters() const {
  std::vector<NamedTensor> parameters;
  for (std::size_t index = 0; index < replica_.slots().size(); ++index) {
    parameters.push_back({replica_.slots()[index].name, replica_.parameter_views()[index]});
  }
  return parameters;
}

double Worker::sum_of_squares() const {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : replica_.parameter_views()) gradients.push_back(parameter.grad());
  return optim::sum_of_squares(gradients);
}

void Worker::update(double lr, double global_norm) {
  const at::NoGradGuard no_grad;
  optim::clip(replica_.gradients(), clip_, global_norm);
  optimizer_->step(replica_.parameters(), replica_.gradients(), lr, steps_.done());
  steps_.advance();
}

std::vector<model::StateSlice> Worker::state(bool primary) {
  std::vector<model::StateSlice> slices = replica_.state(primary);
  for (model::StateSlice& slice : optimizer_slices(*optimizer_, overlaps_, primary)) {
    slices.push_back(std::move(slice));
  }
  slices.push_back(steps_.slice(primary && replica_.blocks().begin == 0));
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

}  // namespace mgt::strategy
