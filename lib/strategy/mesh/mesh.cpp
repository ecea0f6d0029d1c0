#include "strategy/mesh/mesh.h"

#include "core/clock.h"
#include "model/slices.h"
#include "strategy/mesh/stage.h"
#include "strategy/parts/balance.h"
#include "strategy/parts/step_count.h"

#include "torch_pch.h"

#include <cmath>

namespace mgt::strategy {
namespace {

std::vector<Range> cut_of(const Context& context, const MeshPlan& plan) {
  const int64_t parts = plan.pipeline.stages * plan.pipeline.chunks;
  if (parts == 1) return {{0, static_cast<int64_t>(context.model.blocks.size())}};
  return plan.cut.empty() ? balanced_cut(context.model.multiply_adds(), parts) : plan.cut;
}

Context with_model(const Context& context, const model::Model& model) {
  return {context.config, model,        context.devices, context.communicator,
          context.dtype,  context.seed, context.threads, context.micro_batch};
}

class Mesh final : public Strategy {
 public:
  Mesh(const Context& context, const MeshPlan& plan)
      : axes_(context.communicator, plan.pipeline.stages, plan.slices),
        sliced_(model::slice(context.model, axes_.slice(), plan.slices)),
        sharing_(plan.sharing),
        pipeline_(plan.pipeline),
        pieces_(context, axes_.data().size(), axes_.data().rank()),
        device_(context.devices.front()),
        stage_(with_model(context, sliced_), plan.sharing, plan.pipeline, cut_of(context, plan), axes_) {
    share_statistics();
  }

  Range shard(int64_t rows) const override { return pieces_.rows(rows); }

  StepResult step(const data::Batch& batch, const StepInput& input) override {
    const StepResult result = compute_gradients(on_device(batch), input.samples);
    show(input.probe, &Probe::gradients_ready);
    for (const auto& chunk : stage_.chunks()) chunk->update(input.lr, result.gradient_norm, steps_.done());
    steps_.advance();
    show(input.probe, &Probe::updated);
    statistics_differ_ = true;
    return result;
  }

  EvalCounts evaluate(const data::Batch& batch) override {
    share_statistics();
    EvalCounts mine = stage_.evaluate(on_device(batch));
    if (axes_.slice() > 0) mine = {};  // all slices see the same
    at::Tensor counts = at::tensor({mine.correct, mine.total}, at::kLong).to(device_);
    axes_.world().all_reduce(counts).wait();
    counts = counts.cpu();
    return {.correct = counts[0].item<int64_t>(), .total = counts[1].item<int64_t>()};
  }

  std::vector<model::StateSlice> state() override {
    std::vector<model::StateSlice> slices = {steps_.slice(/*primary=*/axes_.world().rank() == 0)};
    for (const auto& chunk : stage_.chunks()) {
      for (model::StateSlice& slice : chunk->state()) slices.push_back(std::move(slice));
    }
    return slices;
  }

  void state_loaded() override {
    for (const auto& chunk : stage_.chunks()) chunk->state_loaded();
    steps_.take_from_first(axes_.world(), device_);
    statistics_differ_ = true;
    share_statistics();
  }

  std::vector<Note> notes() const override;

  int64_t bytes_sent() const override { return axes_.bytes_sent(); }

 private:
  // Leaves the mean gradient of the global batch where this rank updates it.
  StepResult compute_gradients(const data::Batch& own, int64_t samples) {
    const double began_s = real_clock().now_s();
    most_pieces_ = std::max(most_pieces_, pieces_.count(samples));
    const double loss = loss_of_data(stage_.train(own, samples, pieces_));
    const bool whole = stage_.chunks().front()->has_whole_gradients();
    const bool counts = !whole || axes_.is_first_of_data();  // replicated gradients count once
    at::Tensor sums = at::cat({at::full({1}, loss, at::kDouble), squares() * (counts ? 1 : 0)}).to(device_);
    const double before_s = real_clock().now_s();
    axes_.world().all_reduce(sums).wait();
    sums = sums.cpu();
    const double now_s = real_clock().now_s();
    wait_s_ += now_s - before_s;  // a stage that has done its part waits here for the others
    step_s_ += now_s - began_s;
    return {.loss = sums[0].item<double>(),
            .gradient_norm = std::sqrt(sums.narrow(0, 1, sums.numel() - 1).sum().item<double>())};
  }

  // What is to be added up over the world: all slices see the same loss, and along the tree all data ranks do.
  double loss_of_data(double own) {
    if (!pieces_.along_tree()) return axes_.slice() == 0 ? own : 0;
    std::vector<at::Tensor> losses = {at::full({1}, own, at::TensorOptions(at::kDouble).device(device_))};
    tree_sum_over_ranks(axes_.data(), losses);
    return axes_.is_first_of_data() ? losses[0].item<double>() : 0;
  }

  // Of this rank's gradients: their sum, or along the tree one for each tensor of the model at its own place, so that
  // they are added in the same order wherever the model is cut.
  at::Tensor squares() {
    if (!pieces_.along_tree()) {
      std::vector<at::Tensor> norms;
      for (const auto& chunk : stage_.chunks()) norms.push_back(chunk->gradient_norms());
      return at::cat(norms).square().sum().view({1});
    }
    at::Tensor squares = at::zeros({tensors_before(static_cast<int64_t>(sliced_.blocks.size()))}, at::kDouble);
    for (const auto& chunk : stage_.chunks()) {
      const at::Tensor norms = chunk->gradient_norms();
      squares.narrow(0, tensors_before(chunk->replica().blocks().begin), norms.numel()).copy_(norms.square());
    }
    return squares;
  }

  int64_t tensors_before(int64_t block) const {
    int64_t count = 0;
    for (int64_t index = 0; index < block; ++index) {
      count += static_cast<int64_t>(sliced_.blocks[static_cast<std::size_t>(index)].parameters.size());
    }
    return count;
  }

  void show(Probe* probe, void (Probe::*moment)(int64_t, const Probe::Parameters&)) {
    if (!probe) return;
    Probe::Parameters parameters;
    for (const auto& chunk : stage_.chunks()) {
      for (NamedTensor& parameter : chunk->parameters()) parameters.push_back(std::move(parameter));
    }
    (probe->*moment)(0, parameters);
  }

  data::Batch on_device(const data::Batch& batch) { return data::slice(batch, 0, batch.size(), device_); }

  // BatchNorm with local statistics: the running statistics of the first data rank are what is evaluated and saved.
  void share_statistics() {
    if (!statistics_differ_) return;
    for (const auto& chunk : stage_.chunks()) {
      for (at::Tensor buffer : chunk->replica().buffers()) axes_.data().broadcast(buffer, 0).wait();
    }
    statistics_differ_ = false;
  }

  Axes axes_;
  model::Model sliced_;  // this rank's slices of the layers
  Sharing sharing_;
  Pipeline pipeline_;
  Pieces pieces_;
  bool reduces_ = axes_.data().size() > 1;
  at::Device device_;
  Stage stage_;
  StepCount steps_;
  bool statistics_differ_ = true;
  int64_t most_pieces_ = 0;  // of a step
  double wait_s_ = 0;        // for other ranks at the end of steps, since construction
  double step_s_ = 0;        // all of the steps, but for the update
};

std::vector<Note> Mesh::notes() const {
  Resident bytes;
  int64_t buckets = 0, early = 0;
  for (const auto& chunk : stage_.chunks()) {
    bytes += chunk->resident();
    buckets += chunk->units();
    early += chunk->reductions_in_backward();
  }
  std::vector<Note> notes;
  if (reduces_) {
    notes.push_back({"buckets of gradients", static_cast<double>(buckets), ""});
    notes.push_back({"reduced during backward", static_cast<double>(early), "buckets"});
  }
  const auto add = [&notes](const char* name, int64_t value) {
    notes.push_back({name, static_cast<double>(value), "bytes"});
  };
  add("parameters of a rank", bytes.parameters);
  add("gradients of a rank", bytes.gradients);
  add("optimizer state of a rank", bytes.optimizer);
  add("padding", bytes.padding);
  if (sharing_.shares_parameters()) add("gathered at most", bytes.gathered_peak);
  if (sharing_.shares_gradients()) add("gradients on their way at most", bytes.buckets_peak);
  if (axes_.stages() > 1) {
    notes.push_back({"activations held at most", static_cast<double>(stage_.most_in_flight()),
                     pipeline_.chunks > 1 ? "pieces of a chunk" : "pieces"});
    const double idle_s = stage_.idle_s() + wait_s_;
    notes.push_back({"idle", step_s_ > 0 ? 100 * idle_s / step_s_ : 0, "%", Note::OverRanks::mean});
    notes.push_back({"idle, were stages equal", 100 * idle_share(simulate(pipeline_, most_pieces_)), "%"});
  }
  return notes;
}

}  // namespace

std::unique_ptr<Strategy> make_mesh(const Context& context, const MeshPlan& plan) {
  return std::make_unique<Mesh>(context, plan);
}

config::Option bucket_option() {
  return config::number("bucket_mb", 4, "size of a gradient bucket in MiB", {.above = 0}, {0.001, 0.1});
}

int64_t bucket_bytes(const config::Config& config) {
  return static_cast<int64_t>(std::llround(config.section("strategy").number("bucket_mb") * 1024 * 1024));
}

}  // namespace mgt::strategy
