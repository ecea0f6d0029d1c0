#include "verify/local_statistics.h"

#include "model/entry.h"
#include "strategy/parts/worker.h"

#include "torch_pch.h"

namespace mgt::verify {
namespace {

using Buffers = std::vector<at::Tensor>;

class LocalStatistics final : public strategy::Strategy {
 public:
  LocalStatistics(const strategy::Context& context, int64_t shards)
      : worker_(context, context.devices.front()), statistics_(static_cast<std::size_t>(shards)) {
    statistics_[0] = worker_.replica().buffers();
    share_first();
  }

  Range shard(int64_t rows) const override { return {0, rows}; }

  strategy::StepResult step(const data::Batch& batch, const strategy::StepInput& input) override {
    worker_.replica().zero_gradients();
    double loss = 0;
    for (std::size_t shard = 0; shard < statistics_.size(); ++shard) {
      const Range rows = split(batch.size(), static_cast<int64_t>(statistics_.size()), static_cast<int64_t>(shard));
      if (rows.size() == 0) continue;
      const data::Batch part = data::slice(batch, rows.begin, rows.end, worker_.replica().device());
      const at::Tensor outputs = forward(part, statistics_[shard], {.training = true});
      loss += strategy::backward(worker_.replica().model().loss, outputs, part.targets, input.samples);
    }
    if (input.probe) input.probe->gradients_ready(0, worker_.parameters());
    worker_.update(input.lr);
    return {loss};
  }

  strategy::EvalCounts evaluate(const data::Batch& batch) override {
    share_first();
    return strategy::count(worker_.replica(), batch);
  }

  std::vector<model::StateSlice> state() override { return worker_.state(/*primary=*/true); }

 private:
  at::Tensor forward(const data::Batch& batch, const Buffers& buffers, const model::ForwardContext& context) {
    return model::forward(worker_.replica().model(), batch.inputs, {worker_.replica().parameter_views(), buffers},
                          context);
  }

  // An evaluation makes the first replica's statistics everyone's.
  void share_first() {
    for (std::size_t shard = 1; shard < statistics_.size(); ++shard) {
      statistics_[shard].clear();
      for (const at::Tensor& buffer : statistics_[0]) statistics_[shard].push_back(buffer.clone());
    }
  }

  strategy::Worker worker_;
  std::vector<Buffers> statistics_;  // by shard; the first are the worker's own
};

}  // namespace

bool has_local_statistics(const config::Config& config) {
  const model::Model model = model::build(config);
  return model.buffer_count() > 0 && !model.sync_statistics && strategy::entry_of(config).splits_batch;
}

std::unique_ptr<strategy::Strategy> make_local_statistics(const strategy::Context& context, int64_t shards) {
  return std::make_unique<LocalStatistics>(context, shards);
}

}  // namespace mgt::verify
