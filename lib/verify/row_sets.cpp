#include "verify/row_sets.h"

#include "launch/batch_plan.h"
#include "model/entry.h"
#include "strategy/parts/worker.h"

#include "torch_pch.h"

#include <cmath>

namespace mgt::verify {
namespace {

using Buffers = std::vector<at::Tensor>;

data::Batch rows_of(const data::Batch& batch, const std::vector<Range>& ranges) {
  std::vector<at::Tensor> inputs, targets;
  for (const Range& range : ranges) {
    inputs.push_back(batch.inputs.narrow(0, range.begin, range.size()));
    targets.push_back(batch.targets.narrow(0, range.begin, range.size()));
  }
  return {at::cat(inputs), at::cat(targets)};
}

class OneDevice final : public strategy::Strategy {
 public:
  OneDevice(const strategy::Context& context, const RowSets& sets, int64_t rounding)
      : worker_(context, context.devices.front()),
        sets_(sets),
        otherwise_rounded_(rounding > 0),
        random_(at::detail::createCPUGenerator(static_cast<uint64_t>(rounding))),
        statistics_(static_cast<std::size_t>(sets.together ? 1 : sets.shards)) {
    statistics_[0] = worker_.replica().buffers();
    share_first();
  }

  Range shard(int64_t rows) const override { return {0, rows}; }

  strategy::StepResult step(const data::Batch& batch, const strategy::StepInput& input) override {
    worker_.replica().zero_gradients();
    double loss = 0;
    std::size_t replica = 0;
    for (const std::vector<Range>& set : sets_.of(batch.size())) {
      const Buffers& statistics = statistics_[replica++ % statistics_.size()];
      const data::Batch rows = rows_of(batch, set);
      if (rows.size() == 0) continue;
      const at::Tensor outputs = model::forward(worker_.replica().model(), rows.inputs, {weights(), statistics}, {});
      loss += strategy::backward(worker_.replica().model().loss, outputs, rows.targets,
                                 otherwise_rounded_ ? 1 : input.samples);
    }
    if (otherwise_rounded_) {
      const at::NoGradGuard no_grad;
      worker_.replica().gradients().div_(input.samples);
      loss /= static_cast<double>(input.samples);
    }
    if (input.probe) input.probe->gradients_ready(0, worker_.parameters());
    const double norm = std::sqrt(worker_.sum_of_squares());
    worker_.update(input.lr, norm);
    return {.loss = loss, .gradient_norm = norm};
  }

  strategy::EvalCounts evaluate(const data::Batch& batch) override {
    share_first();
    return strategy::count(worker_.replica(), batch);
  }

  std::vector<model::StateSlice> state() override { return worker_.state(/*primary=*/true); }

 private:
  // Otherwise rounded: each is off by about an epsilon.
  std::vector<at::Tensor> weights() {
    std::vector<at::Tensor> weights(worker_.replica().parameter_views());
    if (!otherwise_rounded_) return weights;
    const bool is_double = weights.front().scalar_type() == at::kDouble;
    const double epsilon =
        is_double ? std::numeric_limits<double>::epsilon() : double{std::numeric_limits<float>::epsilon()};
    for (at::Tensor& weight : weights) {
      weight = weight * (1 + epsilon * at::randn(weight.sizes(), random_, weight.options().requires_grad(false)));
    }
    return weights;
  }

  // An evaluation makes the first replica's statistics everyone's.
  void share_first() {
    for (std::size_t replica = 1; replica < statistics_.size(); ++replica) {
      statistics_[replica].clear();
      for (const at::Tensor& buffer : statistics_[0]) statistics_[replica].push_back(buffer.clone());
    }
  }

  strategy::Worker worker_;
  RowSets sets_;
  bool otherwise_rounded_;
  at::Generator random_;
  std::vector<Buffers> statistics_;  // by replica; the first are the worker's own
};

}  // namespace

bool RowSets::is_whole(int64_t batch_size) const { return of(batch_size).size() == 1; }

std::vector<std::vector<Range>> RowSets::of(int64_t rows) const {
  const int64_t pieces = strategy::pieces_of(rows, shards, micro_batch);
  std::vector<std::vector<Range>> sets;
  for (int64_t piece = 0; piece < pieces; ++piece) {
    std::vector<Range> parts;
    for (int64_t shard = 0; shard < shards; ++shard) {
      const Range own = split(rows, shards, shard), part = split(own.size(), pieces, piece);
      parts.push_back({own.begin + part.begin, own.begin + part.end});
    }
    if (together)
      sets.push_back(parts);
    else
      for (const Range& part : parts) sets.push_back({part});
  }
  return sets;
}

RowSets row_sets_of(const config::Config& config, int64_t devices) {
  const model::Model model = model::build(config);
  if (model.buffer_count() == 0) return {};
  const launch::BatchPlan plan = launch::batch_plan(config, devices);
  return {.shards = strategy::data_ranks(config, devices),
          .together = model.sync_statistics,
          .micro_batch = {plan.batch_size, plan.accumulate}};
}

bool has_local_statistics(const config::Config& config, int64_t devices) {
  const model::Model model = model::build(config);
  return model.buffer_count() > 0 && !model.sync_statistics && strategy::data_ranks(config, devices) > 1;
}

std::unique_ptr<strategy::Strategy> make_reference(const strategy::Context& context, const RowSets& sets,
                                                   int64_t rounding) {
  return std::make_unique<OneDevice>(context, sets, rounding);
}

}  // namespace mgt::verify
