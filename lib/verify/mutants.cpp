#include "verify/mutants.h"

#include "core/split.h"
#include "data/sampler.h"

#include "torch_pch.h"

#include <cmath>
#include <memory>

namespace mgt::verify {
namespace {

using comm::Collective;
using comm::Operation;
using Parameters = strategy::Probe::Parameters;

constexpr int64_t kDevices = 3;
constexpr int64_t kRowsOfTwoBatches = 1016;  // evaluated as 1000 and 16 rows
const std::string kTwoEvaluationBatches = "data.test_limit=1016";

at::Tensor gradient(const strategy::NamedTensor& parameter) { return parameter.tensor.grad(); }

void scale_gradients(const Parameters& parameters, double factor) {
  for (const auto& parameter : parameters) gradient(parameter).mul_(factor);
}

Fault scaled(double factor) {
  return {.gradients_ready = [factor](int64_t, const Parameters& parameters) { scale_gradients(parameters, factor); }};
}

// What a replica had at an earlier moment, by replica.
using Kept = std::map<int64_t, std::vector<at::Tensor>>;

Fault stale_gradient(int64_t, int64_t) {
  const auto before = std::make_shared<Kept>();
  return {.gradients_ready = [before](int64_t replica, const Parameters& parameters) {
    std::vector<at::Tensor>& last = (*before)[replica];
    for (std::size_t index = 0; index < parameters.size(); ++index) {
      const at::Tensor now = gradient(parameters[index]);
      if (last.size() < parameters.size()) last.push_back(at::zeros_like(now));
      now.add_(last[index]);
      last[index] = now.clone();
    }
  }};
}

// Of the parameters that the ranks own, each one's first is forgotten.
Fault part_not_saved(int64_t, int64_t) {
  return {.state = [](std::vector<model::StateSlice>& state) {
    const auto first = std::ranges::find_if(state, [](const model::StateSlice& slice) {
      return slice.primary && slice.kind == model::StateKind::parameter;
    });
    if (first != state.end()) state.erase(first);
  }};
}

// Replicas after the first keep the weights that they had before the first update. Of ranks: those after rank 0.
Fault first_replica_alone(int64_t rank, int64_t) {
  const auto before = std::make_shared<Kept>();
  const auto keep = [before](int64_t replica, const Parameters& parameters) {
    std::vector<at::Tensor>& weights = (*before)[replica];
    if (!weights.empty()) return;
    for (const auto& parameter : parameters) weights.push_back(parameter.tensor.detach().clone());
  };
  return {.gradients_computed = keep,
          .gradients_ready = keep,
          .updated = [before, rank](int64_t replica, const Parameters& parameters) {
            const at::NoGradGuard no_grad;
            if (rank == 0 && replica == 0) return;
            for (std::size_t index = 0; index < parameters.size(); ++index) {
              parameters[index].tensor.detach().copy_((*before)[replica].at(index));
            }
          }};
}

// `data[i] = data[0].to(...)` fills a slot of the list and leaves the gradient itself as it was.
Fault rebinding(int64_t, int64_t) {
  const auto own = std::make_shared<Kept>();
  return {.gradients_computed =
              [own](int64_t replica, const Parameters& parameters) {
                (*own)[replica].clear();
                for (const auto& parameter : parameters) (*own)[replica].push_back(gradient(parameter).clone());
              },
          .gradients_ready =
              [own](int64_t replica, const Parameters& parameters) {
                for (std::size_t index = 0; replica > 0 && index < parameters.size(); ++index) {
                  gradient(parameters[index]).copy_((*own)[replica][index]);
                }
              }};
}

// `p.to(device)` gives the same tensor where it already is: all replicas are one, and each updates it.
Fault aliased(int64_t, int64_t) {
  const auto first = std::make_shared<std::vector<at::Tensor>>();
  return {.gradients_computed = [first](int64_t replica, const Parameters& parameters) {
    for (std::size_t index = 0; index < parameters.size(); ++index) {
      at::Tensor tensor = parameters[index].tensor;
      if (replica == 0 && first->size() < parameters.size()) first->push_back(tensor);
      if (replica > 0) tensor.set_data((*first)[index].detach());
    }
  }};
}

// Every row that is left when the batch is cut into equal parts is lost.
Fault dropped_remainder(int64_t rank, int64_t devices) {
  return {.shard = [rank, devices](Range, int64_t rows) {
    const int64_t each = rows / devices;
    return Range{rank * each, (rank + 1) * each};
  }};
}

// The last rank's part reaches into its neighbour's, so that all have the same number of rows.
Fault padded_training(int64_t, int64_t devices) {
  return {.shard = [devices](Range right, int64_t rows) {
    const int64_t each = (rows + devices - 1) / devices;
    return Range{std::max<int64_t>(0, right.end - each), right.end};
  }};
}

Fault same_rows(int64_t, int64_t devices) {
  return {.shard = [devices](Range, int64_t rows) { return split(rows, devices, 0); }};
}

Fault shuffle_by_rank(int64_t rank, int64_t) {
  return {.order = [rank](data::Order order) -> data::Order {
    return [order = std::move(order), rank](int64_t epoch) {
      const std::vector<int64_t> rows = order(epoch);
      std::vector<int64_t> shuffled;
      const auto size = static_cast<int64_t>(rows.size());
      const std::vector<int64_t> places = data::shuffled_order(size, static_cast<uint64_t>(1000 + rank))(epoch);
      for (const int64_t place : places) shuffled.push_back(rows[static_cast<std::size_t>(place)]);
      return shuffled;
    };
  }};
}

// Each rank divides by its own rows, and the ranks' means are averaged.
Fault mean_of_means(int64_t, int64_t devices) {
  const auto rows = std::make_shared<std::pair<int64_t, int64_t>>();  // own, all
  return {.shard =
              [rows](Range right, int64_t all) {
                *rows = {right.size(), all};
                return right;
              },
          .before_reduce =
              [rows, devices](at::Tensor& part) {
                const auto [own, all] = *rows;
                if (own > 0 && part.is_floating_point())
                  part.mul_(static_cast<double>(all) / static_cast<double>(own * devices));
              }};
}

// {loss, sum of squares}; a pipeline adds its idle time.
bool is_step_message(const at::Tensor& message) {
  return (message.numel() == 2 || message.numel() == 3) && message.scalar_type() == at::kDouble && message.dim() == 1;
}

// Neither a loss nor counts.
bool is_bucket(const Operation& operation) {
  return operation.kind == Collective::all_reduce && operation.input.numel() > 3 && operation.input.is_floating_point();
}

// What becomes of the bucket that is reduced first in each step.
Fault first_bucket(int times) {
  const auto seen = std::make_shared<int64_t>(0);  // in this step
  return {.gradients_ready = [seen](int64_t, const Parameters&) { *seen = 0; },
          .times = [seen,
                    times](const Operation& operation) { return is_bucket(operation) && (*seen)++ == 0 ? times : 1; }};
}

// Of the narrow ResNet, what is no larger than two values a channel is a statistic; its gradients go as one bucket.
Fault own_statistics() {
  return {
      .times = [](const Operation& operation) { return is_bucket(operation) && operation.input.numel() < 32 ? 0 : 1; }};
}

// The rows of the last piece, when a rank takes its rows in three.
Fault skipped_microbatch(int64_t, int64_t) {
  return {.shard = [](Range right, int64_t) { return Range{right.begin, right.end - (right.size() + 2) / 3}; }};
}

// Every second activation or gradient that comes is that which came before it.
Fault another_microbatch(int64_t, int64_t) {
  const auto last = std::make_shared<at::Tensor>();
  return {.received = [last](at::Tensor& message) {
    const at::Tensor now = message.clone();
    if (last->defined() && last->sizes() == message.sizes()) message.copy_(*last);
    *last = now;
  }};
}

// Replicated gradients of each data rank count: of two that is twice.
Fault counted_twice(int64_t, int64_t) {
  return {.after_reduce = [](at::Tensor& sum, const at::Tensor&) {
    if (is_step_message(sum)) sum[1].mul_(2.0);
  }};
}

// Of the step's message {loss, sum of squares}, the ranks' sums of squares do not become one.
Fault local_norm(int64_t, int64_t) {
  return {.after_reduce = [](at::Tensor& sum, const at::Tensor& own) {
    if (is_step_message(sum)) sum[1].copy_(own[1]);
  }};
}

// A padding of ones, as one rank has it.
Fault counted_padding(int64_t, int64_t) {
  return {.after_reduce = [](at::Tensor& sum, const at::Tensor&) {
    if (is_step_message(sum)) sum[1].add_(1.0);
  }};
}

// The schedule moves by one step a rank: under `gamma` 0.5, step s of k ranks takes lr(k s).
Fault schedule_by_rank(int64_t, int64_t devices) {
  return {.lr = [devices](double right, int64_t step) {
    return right * std::pow(0.5, static_cast<double>((devices - 1) * step));
  }};
}

// Of what the slices of a layer make, the gradients are not summed on their way back.
Fault missing_backward_sum(int64_t, int64_t) {
  return {.times = [](const Operation& operation) {
    const bool in_backward = !at::GradMode::is_enabled() && operation.input.dim() > 1;
    return operation.kind == Collective::all_reduce && in_backward ? 0 : 1;
  }};
}

Fault missing_all_gather(int64_t, int64_t) {
  return {.times = [](const Operation& operation) {
    return operation.kind == Collective::all_gather && operation.input.is_floating_point() ? 0 : 1;
  }};
}

Fault shard_off_by_one(int64_t, int64_t) {
  return {.before_scatter = [](at::Tensor& parts) { parts.copy_(parts.roll(1)); }};
}

// What backward has filled last is gone before it was sent.
Fault freed_too_early(int64_t rank, int64_t) {
  return {.before_scatter = [rank](at::Tensor& parts) {
    if (rank == 1) parts.narrow(0, 0, (parts.numel() + 3) / 4).zero_();
  }};
}

Fault missing_broadcast(int64_t, int64_t) {
  return {.times = [](const Operation& operation) { return operation.kind == Collective::broadcast ? 0 : 1; }};
}

// The mean of the batches' accuracies, as if all batches were of one size.
Fault mean_of_batch_means(int64_t, int64_t) {
  return {.counts = [](strategy::EvalCounts right) {
    const double accuracy = static_cast<double>(right.correct) / static_cast<double>(right.total);
    return strategy::EvalCounts{std::llround(accuracy * kRowsOfTwoBatches / 2), right.total};
  }};
}

// Every device gets the same number of rows; those that are missing are taken from the front again.
Fault padded_evaluation(int64_t, int64_t devices) {
  return {.counts = [devices](strategy::EvalCounts right) {
    const int64_t padded = (right.total + devices - 1) / devices * devices;
    return strategy::EvalCounts{right.correct + padded - right.total, padded};
  }};
}

Fault evaluation_on_one(int64_t, int64_t devices) {
  return {.counts = [devices](strategy::EvalCounts right) {
    const int64_t seen = split(right.total, devices, 0).size();
    return strategy::EvalCounts{std::min(right.correct, seen), seen};
  }};
}

std::string without_test_set(const config::Config&, bool evaluates) {
  return evaluates ? "" : "data: there is no test set to evaluate on";
}

std::string with_one_test_batch(const config::Config& config, bool evaluates) {
  const config::Section& data = config.section("data");
  const bool small = data.has("test") && data.integer("test") < kRowsOfTwoBatches;
  return small ? "data.test: the test set is evaluated as one batch" : without_test_set(config, evaluates);
}

std::string with_init(const config::Config& config, bool) {
  return config.top().has("init") ? "init: every rank reads its first weights from the file" : "";
}

// The first pair of layers needs no gradient of its input.
std::string with_one_pair(const config::Config& config, bool) {
  const config::Section& model = config.section("model");
  const bool one = model.text("name") == "mlp" && model.integers("hidden").size() < 3;
  return one ? "model.hidden: one pair of layers, which passes no gradient back" : "";
}

using Names = std::vector<std::string>;
const Names kReplicated = {"scratch", "data_parallel", "ddp"};  // a whole replica on each device
const Names kEveryWay = {"scratch", "data_parallel", "ddp", "zero", "pipeline", "tensor"};

std::vector<Mutant> make_mutants() {
  const Names ranks = {"ddp", "zero"}, buckets = {"ddp"}, shared = {"zero"}, in_turn = {"scratch"};
  const Names small_buckets = {"strategy.bucket_mb=0.001"};
  return {
      {"aliased_replicas", "E-01: replicas share storage, so each update happens once a replica", in_turn, {}, aliased},
      {"rebinding_all_reduce", "E-03: the sum replaces a slot of a list, not the gradient", in_turn, {}, rebinding},
      {"divided_twice",
       "E-04: the mean over the batch is divided by the batch again",
       kEveryWay,
       {},
       [](int64_t, int64_t) { return scaled(1.0 / 16); }},
      {"one_replica_updated", "E-05: the update reaches the first replica alone", kReplicated, {}, first_replica_alone},
      {"dropped_remainder", "E-11: rows that do not divide by the devices are lost", ranks, {}, dropped_remainder},
      {"padded_training", "E-16: rows are repeated until the devices divide them", ranks, {}, padded_training},
      {"evaluation_on_one_device",
       "E-12: the first device's part of the test set is taken for all",
       kEveryWay,
       {},
       evaluation_on_one,
       without_test_set},
      {"double_mean",
       "the mean over the ranks is taken twice",
       kEveryWay,
       {},
       [](int64_t, int64_t devices) { return scaled(1.0 / static_cast<double>(devices)); }},
      {"missing_mean",
       "gradients are summed over the devices and not averaged",
       kEveryWay,
       {},
       [](int64_t, int64_t devices) { return scaled(static_cast<double>(devices)); }},
      {"stale_gradient", "gradients are not cleared between steps", kEveryWay, {}, stale_gradient},
      {"mean_of_means", "each rank's mean counts the same, whatever its number of rows", buckets, {}, mean_of_means},
      {"missing_broadcast", "ranks start from weights of their own", ranks, {}, missing_broadcast, with_init},
      {"shuffle_by_rank", "each rank shuffles with a seed of its own", ranks, {}, shuffle_by_rank},
      {"same_rows", "every rank trains on the same rows", ranks, {}, same_rows},
      {"skipped_bucket", "one bucket of gradients is never reduced", buckets, small_buckets,
       [](int64_t, int64_t) { return first_bucket(0); }},
      {"bucket_twice", "one bucket of gradients is reduced twice", buckets, small_buckets,
       [](int64_t, int64_t) { return first_bucket(2); }},
      {"mean_of_batch_means",
       "the test accuracy is the mean of the batches' accuracies",
       kEveryWay,
       {kTwoEvaluationBatches},
       mean_of_batch_means,
       with_one_test_batch},
      {"padded_evaluation",
       "test rows are repeated until the devices divide them",
       kEveryWay,
       {},
       padded_evaluation,
       without_test_set},
      {"local_passed_as_sync",
       "BatchNorm statistics are each rank's own, where they should be the batch's",
       ranks,
       {"strategy.bucket_mb=4", "model={name: resnet18, channels: [4, 8], blocks: [1, 1], bn: sync, init_std: 0.3}"},
       [](int64_t, int64_t) { return own_statistics(); }},
      {"window_divided_twice",
       "a window of accumulation is divided by its number of pieces again",
       kEveryWay,
       {"accumulate=3"},
       [](int64_t, int64_t) { return scaled(1.0 / 3); }},
      {"skipped_microbatch",
       "the last piece of each window is lost",
       {"ddp", "zero", "pipeline"},
       {"accumulate=3"},
       skipped_microbatch},
      {"clip_by_the_local_norm", "a rank clips by the norm of its own part", shared, {"clip.norm=0.01"}, local_norm},
      {"padding_counted", "padding counts in the norm", shared, {"clip.norm=0.01"}, counted_padding},
      {"schedule_per_rank",
       "the schedule moves by one step a rank",
       kEveryWay,
       {"schedule={name: exponential, gamma: 0.5}"},
       schedule_by_rank},
      {"another_microbatch",
       "a stage takes the activation or the gradient of another piece",
       {"pipeline", "hybrid"},
       {"strategy.microbatches=4"},
       another_microbatch},
      {"stale_stage", "the weights of a stage are those of steps ago", {"pipeline"}, {}, first_replica_alone},
      {"counted_twice",
       "replicated gradients count in the norm more than once",
       {"hybrid", "tensor"},
       {"clip.norm=0.01"},
       counted_twice},
      {"missing_backward_sum",
       "slices of a layer keep their own part of the gradient of its input",
       {"tensor"},
       {},
       missing_backward_sum,
       with_one_pair},
      {"part_not_saved", "what a rank owns is missing from what is saved", kEveryWay, {}, part_not_saved},
      {"missing_all_gather", "updated parameters stay with their owner", shared, {}, missing_all_gather},
      {"shard_off_by_one",
       "each rank's part of the gradient begins one element too late",
       shared,
       {},
       shard_off_by_one},
      {"freed_too_early", "a part of the gradient is freed before it is reduced", shared, {}, freed_too_early},
  };
}

}  // namespace

const std::vector<Mutant>& mutants() {
  static const std::vector<Mutant> all = make_mutants();
  return all;
}

Case case_of(const Mutant& mutant, const std::string& strategy) {
  const bool in_two_axes = strategy == "hybrid";
  Case one{.overrides = {"strategy=" + strategy, "launch=threads"}, .world = in_two_axes ? 4 : kDevices};
  if (in_two_axes) one.overrides.push_back("strategy.pipeline=2");
  one.overrides.insert(one.overrides.end(), mutant.overrides.begin(), mutant.overrides.end());
  return one;
}

}  // namespace mgt::verify
