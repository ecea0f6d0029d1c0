// The book's functions (scratch.h) as a strategy: one process, replicas that take turns.
#include "optim/entry.h"
#include "strategy/entry.h"
#include "strategy/parts/step_count.h"
#include "strategy/parts/worker.h"
#include "strategy/scratch/scratch.h"

#include "torch_pch.h"

namespace mgt::strategy::scratch {
namespace {

class Scratch final : public Strategy {
 public:
  explicit Scratch(const Context& context)
      : model_(context.model),
        recipe_{.allreduce = allreduce_named(context.config.section("strategy").text("allreduce")),
                .clip = optim::clip_of(context.config),
                .micro_batch = context.micro_batch} {
    const model::Replica initial(context.model, context.dtype, context.devices.front(), context.seed);
    for (const at::Device place : context.devices) {
      Device device{
          .device = place, .params = get_params(initial.parameter_views(), place), .buffers = {}, .optimizers = {}};
      for (const at::Tensor& buffer : initial.buffers()) device.buffers.push_back(buffer.to(place).clone());
      for (const at::Tensor& param : device.params) {
        const bool decays = param.dim() > 1 || !optim::no_decay(context.config);
        device.optimizers.push_back(
            optim::make(context.config, decays ? optim::whole(param) : optim::Subject{param, {}}));
      }
      devices_.push_back(std::move(device));
      places_.push_back(place);
    }
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const auto owners = static_cast<int64_t>(places_.size());
      const auto shards = virtual_shards_of(context.config, owners, static_cast<int64_t>(i));
      if (shards) virtual_shards_.push_back(*shards);
    }
    for (const model::StateSlice& slice : initial.state(/*primary=*/true)) {
      (slice.kind == model::StateKind::parameter ? param_names_ : buffer_names_).push_back(slice.name);
    }
  }

  Range shard(int64_t rows) const override { return {0, rows}; }

  StepResult step(const data::Batch& batch, const StepInput& input) override {
    const Net net = [this](const at::Tensor& X, const Device& device) {
      return forward(X, device, {.training = true});
    };
    const SummedLoss loss = [this](const at::Tensor& y_hat, const at::Tensor& y) {
      return model::summed_loss(model_.loss, y_hat, y);
    };
    recipe_.lr = input.lr;
    recipe_.done = steps_.done();
    steps_.advance();
    if (!virtual_shards_.empty()) return step_along_tree(batch, input);
    const BatchResult result =
        train_batch(batch.inputs, batch.targets, devices_, net, loss, recipe_, watch_of(input.probe));
    traffic_ += result.traffic;
    return {.loss = result.loss, .gradient_norm = result.gradient_norm};
  }

  EvalCounts evaluate(const data::Batch& batch) override {
    const at::NoGradGuard no_grad;
    copy_primary_to_replicas(state(), model::StateKind::buffer);
    const auto [X_shards, y_shards] = split_batch(batch.inputs, batch.targets, places_);
    EvalCounts counts;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      if (X_shards[i].size(0) == 0) continue;
      counts.correct += model::count_correct(forward(X_shards[i], devices_[i], {.training = false}), y_shards[i]);
      counts.total += X_shards[i].size(0);
    }
    return counts;
  }

  // All devices' copies; the first device's are primary.
  std::vector<model::StateSlice> state() override {
    std::vector<model::StateSlice> slices;
    for (Device& device : devices_) {
      const bool primary = &device == &devices_.front();
      for (std::size_t p = 0; p < device.params.size(); ++p) {
        slices.push_back(
            model::whole(param_names_[p], model::StateKind::parameter, device.params[p].detach(), primary));
        for (const optim::StateTensor& memory : device.optimizers[p]->state()) {
          slices.push_back(
              model::whole(param_names_[p] + "." + memory.name, model::StateKind::optimizer, memory.flat, primary));
        }
      }
      for (std::size_t b = 0; b < device.buffers.size(); ++b) {
        slices.push_back(model::whole(buffer_names_[b], model::StateKind::buffer, device.buffers[b], primary));
      }
    }
    slices.push_back(steps_.slice(/*primary=*/true));
    return slices;
  }

  void state_loaded() override { copy_primary_to_replicas(state()); }

  std::vector<Note> notes() const override {
    std::vector<Note> notes = {{"all-reduce rounds", static_cast<double>(traffic_.rounds), ""}};
    for (std::size_t i = 0; i < traffic_.bytes_sent.size(); ++i) {
      notes.push_back({"device " + std::to_string(i) + " sent", static_cast<double>(traffic_.bytes_sent[i]), "bytes"});
    }
    return notes;
  }

  int64_t bytes_sent() const override { return traffic_.total_bytes(); }

 private:
  at::Tensor forward(const at::Tensor& X, const Device& device, const model::ForwardContext& context) const {
    return model::forward(model_, X, {device.params, device.buffers}, context);
  }

  // As train_batch, but each device's gradient is summed over its virtual shards, and the devices' along the same tree.
  StepResult step_along_tree(const data::Batch& batch, const StepInput& input) {
    const Watch watch = watch_of(input.probe);
    std::vector<double> losses;
    for (std::size_t i = 0; i < devices_.size(); ++i) losses.push_back(sum_shards(i, batch, input.samples));
    if (watch.gradients_computed) watch.gradients_computed();
    const at::NoGradGuard no_grad;
    for (std::size_t p = 0; p < param_names_.size(); ++p) {
      std::vector<at::Tensor> gradients;
      for (Device& device : devices_) gradients.push_back(device.params[p].grad());
      traffic_ += allreduce_tree(gradients);
    }
    if (watch.gradients_ready) watch.gradients_ready();
    const double norm = update(devices_, recipe_);
    if (watch.updated) watch.updated();
    return {.loss = tree_sum(losses), .gradient_norm = norm};
  }

  double sum_shards(std::size_t i, const data::Batch& batch, int64_t samples) {
    Device& device = devices_[i];
    std::vector<at::Tensor> gradients;
    for (at::Tensor& param : device.params) {
      param.mutable_grad() = at::zeros_like(param);
      gradients.push_back(param.grad());
    }
    const Range rows = virtual_shards_[i].rows(samples);
    const auto compute = [&](int64_t shard, const data::Batch& part) {
      if (part.size() == 0) return 0.0;
      const at::Tensor outputs = forward(part.inputs, device, {.training = true, .follows_statistics = shard == 0});
      return backward(model_.loss, outputs, part.targets, samples);
    };
    return virtual_shards_[i].sum(data::slice(batch, rows.begin, rows.end, device.device), samples, gradients, compute);
  }

  Watch watch_of(Probe* probe) {
    if (!probe) return {};
    const auto tell = [this, probe](void (Probe::*moment)(int64_t, const Probe::Parameters&)) {
      return [this, probe, moment] {
        for (std::size_t i = 0; i < devices_.size(); ++i) {
          Probe::Parameters parameters;
          for (std::size_t p = 0; p < param_names_.size(); ++p) {
            parameters.push_back({param_names_[p], devices_[i].params[p]});
          }
          (probe->*moment)(static_cast<int64_t>(i), parameters);
        }
      };
    };
    return {tell(&Probe::gradients_computed), tell(&Probe::gradients_ready), tell(&Probe::updated)};
  }

  const model::Model& model_;
  Recipe recipe_;
  StepCount steps_;
  std::vector<Device> devices_;
  std::vector<at::Device> places_;
  std::vector<std::string> param_names_;
  std::vector<std::string> buffer_names_;
  std::vector<VirtualShards> virtual_shards_;  // by device; empty unless `determinism: invariant`
  Traffic traffic_;
};

std::unique_ptr<Strategy> make(const Context& context) { return std::make_unique<Scratch>(context); }

void check(const config::Config& config) {
  const config::Section& model = config.section("model");
  if (model.has("bn") && model.text("bn") == "sync") {
    config.error_at("model.bn",
                    "sync needs replicas that run at the same time, and those of scratch take turns; choose "
                    "another strategy, such as ddp, or bn: local");
  }
}

}  // namespace

extern const Entry entry;
const Entry entry = {
    .variant = {.name = "scratch",
                .summary = "data parallel from scratch, as the book writes it: one process, replicas in turn",
                .options = {config::text("allreduce", "naive", "how gradients are summed over the devices",
                                         {"naive", "tree", "ring"})},
                .check = check},
    .ranks = Ranks::one_process,
    .can_be_invariant = true,
    .make = make,
};

}  // namespace mgt::strategy::scratch
