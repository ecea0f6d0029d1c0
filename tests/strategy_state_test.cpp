// The state of every strategy, optimizer and number of ranks, carried over into every other.
#include "test.h"
#include "training.h"

#include "checkpoint/gather.h"
#include "core/text.h"
#include "model/entry.h"

#include "torch_pch.h"

#include <atomic>
#include <cmath>

using namespace mgt;
using model::StateSlice;

namespace {

constexpr double kBound = 1e-12;
constexpr int64_t kStepsBefore = 3, kStepsAfter = 3;

struct Way {
  std::string strategy;  // YAML
  int64_t devices;
};

std::vector<Way> all_ways() {
  std::vector<Way> ways = {{"single", 1}, {"scratch", 2}, {"data_parallel", 2}, {"layer_split", 2}};
  for (const int64_t ranks : {1, 2, 3}) ways.push_back({"{name: ddp, bucket_mb: 0.002}", ranks});
  for (const int64_t stage : {1, 2, 3}) {
    for (const int64_t ranks : {2, 3, 4}) {
      ways.push_back({concat("{name: zero, stage: ", stage, ", bucket_mb: 0.002}"), ranks});
    }
  }
  ways.insert(ways.end(), {{"{name: pipeline, microbatches: 2}", 3},
                           {"{name: pipeline, schedule: interleaved, microbatches: 2}", 2},
                           {"tensor", 2},
                           {"{name: hybrid, tensor: 2, zero: 3, microbatches: 1}", 4},
                           {"{name: hybrid, pipeline: 2, zero: 2, microbatches: 2}", 4},
                           {"{name: hybrid, pipeline: 2, tensor: 2, zero: 1, microbatches: 1}", 8}});
  return ways;
}

std::vector<std::string> optimizers() {
  return {"{name: sgd, lr: 0.1, momentum: 0.9, dampening: 0.5}", "{name: adam, lr: 0.01, weight_decay: 0.01}",
          "{name: adamw, lr: 0.01}"};
}

data::Splits pictures() {
  static const data::Splits all = test::golden_data();
  return all;
}

const std::string kLenet = "{name: lenet, channels: [2, 3], hidden: 7}";
const std::string kResnet =
    "{name: resnet18, style: torchvision, bn: sync, channels: [4, 6], blocks: [1, 1], init_std: 0.2}";

test::Training training(const Way& way, const std::string& optimizer, const std::string& model = kLenet) {
  return {.yaml = concat("model: ", model, "\nprecision: fp64\nbatch_size: 10\nseed: 1\nstrategy: ", way.strategy,
                         "\noptimizer: ", optimizer, "\n"),
          .devices = way.devices,
          .steps = kStepsBefore,
          .data = {.train = pictures().train, .test = {}},
          .order = {},
          .init = "",
          .fill = {}};
}

// A run under another strategy, whose own first weights are others, that takes a state over.
test::Outcome taken_over(const std::vector<StateSlice>& state, test::Training training, int64_t steps,
                         test::Backend backend = test::Backend::local) {
  training.yaml += "seed: 2\n";
  training.yaml.erase(training.yaml.find("seed: 1\n"), 8);
  training.first_step = kStepsBefore;
  training.steps = steps;
  training.fill = [&state](std::vector<StateSlice>& slices) { checkpoint::scatter(state, slices); };
  training.backend = backend;
  return test::train(training);
}

void require_equal(const std::vector<StateSlice>& state, const std::vector<StateSlice>& wanted) {
  REQUIRE(state.size() == wanted.size());
  for (std::size_t index = 0; index < state.size(); ++index) {
    INFO(wanted[index].name);
    REQUIRE(state[index].name == wanted[index].name);
    REQUIRE(state[index].kind == wanted[index].kind);
    REQUIRE(at::equal(state[index].view, wanted[index].view));
  }
}

void require_close(const test::Outcome& outcome, const test::Outcome& wanted) {
  REQUIRE(outcome.losses.size() == wanted.losses.size());
  for (std::size_t step = 0; step < wanted.losses.size(); ++step) {
    INFO("step " << step);
    REQUIRE(std::abs(outcome.losses[step] - wanted.losses[step]) < kBound * std::abs(wanted.losses[step]));
  }
  REQUIRE(outcome.state.size() == wanted.state.size());
  for (std::size_t index = 0; index < wanted.state.size(); ++index) {
    INFO(wanted.state[index].name);
    REQUIRE(test::relative_difference(outcome.state[index].view, wanted.state[index].view) < kBound);
  }
}

// What a run that was not interrupted does after the steps before.
test::Outcome uninterrupted(test::Training training) {
  training.steps = kStepsBefore + kStepsAfter;
  test::Outcome outcome = test::train(training);
  outcome.losses.erase(outcome.losses.begin(), outcome.losses.begin() + kStepsBefore);
  return outcome;
}

void carry_over(const Way& from, const std::vector<Way>& to, const std::string& optimizer,
                const std::string& model = kLenet) {
  const test::Outcome before = test::train(training(from, optimizer, model));
  const test::Outcome after = uninterrupted(training(from, optimizer, model));
  for (const Way& way : to) {
    INFO(optimizer << " from " << from.strategy << " on " << from.devices << " to " << way.strategy << " on "
                   << way.devices);
    require_equal(taken_over(before.state, training(way, optimizer, model), 0).state, before.state);
    require_close(taken_over(before.state, training(way, optimizer, model), kStepsAfter), after);
  }
}

}  // namespace

TEST_CASE("every strategy's state opens under every other and training goes on: sgd (M-07, D-7)") {
  for (const Way& from : all_ways()) carry_over(from, all_ways(), optimizers()[0]);
}

TEST_CASE("every strategy's state opens under every other and training goes on: adam (M-07, D-7)") {
  for (const Way& from : all_ways()) carry_over(from, all_ways(), optimizers()[1]);
}

TEST_CASE("every strategy's state opens under every other and training goes on: adamw (M-07, D-7)") {
  for (const Way& from : all_ways()) carry_over(from, all_ways(), optimizers()[2]);
}

TEST_CASE("state with BatchNorm's statistics is carried over too (M-07, S-55)") {
  const std::vector<Way> ways = {{"single", 1},
                                 {"data_parallel", 2},
                                 {"ddp", 3},
                                 {"{name: zero, stage: 2}", 2},
                                 {"{name: zero, stage: 3}", 4},
                                 {"layer_split", 2},
                                 {"tensor", 2},
                                 {"{name: hybrid, pipeline: 2, tensor: 2, zero: 3, microbatches: 1}", 8}};
  for (const Way& from : ways) carry_over(from, ways, "{name: sgd, lr: 0.05, momentum: 0.9}", kResnet);
}

TEST_CASE("state is carried over between processes' communicators (M-07)") {
  for (const int64_t stage : {1, 3}) {
    const Way way{concat("{name: zero, stage: ", stage, "}"), 3};
    test::Training first = training({"{name: zero, stage: 2}", 2}, optimizers()[1]);
    first.backend = test::Backend::gloo;
    const test::Outcome before = test::train(first);
    const test::Outcome after =
        taken_over(before.state, training(way, optimizers()[1]), kStepsAfter, test::Backend::gloo);
    require_close(after, uninterrupted(training({"single", 1}, optimizers()[1])));
  }
}

TEST_CASE(
    "with determinism: invariant, state that is carried over gives the same bits as no interruption (M-02, M-07)") {
  const std::vector<Way> ways = {{"single", 1},
                                 {"scratch", 2},
                                 {"ddp", 4},
                                 {"{name: zero, stage: 1}", 2},
                                 {"{name: zero, stage: 2}", 4},
                                 {"{name: zero, stage: 3}", 2},
                                 {"pipeline", 4},
                                 {"{name: hybrid, pipeline: 2, zero: 1}", 4}};
  const auto invariant = [](const Way& way) {
    test::Training made = training(way, optimizers()[1]);
    made.yaml += "determinism: invariant\nvirtual_shards: 4\n";
    return made;
  };
  const test::Outcome after = uninterrupted(invariant(ways[0]));
  for (const Way& from : ways) {
    const test::Outcome before = test::train(invariant(from));
    for (const Way& to : ways) {
      INFO("from " << from.strategy << " to " << to.strategy);
      const test::Outcome taken = taken_over(before.state, invariant(to), kStepsAfter);
      REQUIRE(taken.losses == after.losses);
      require_equal(taken.state, after.state);
    }
  }
}

TEST_CASE("where all ranks have a copy, state that rank 0 alone has loaded becomes everyone's (M-07)") {
  const test::Outcome before = test::train(training({"single", 1}, optimizers()[1]));
  test::Training other = training({"ddp", 3}, optimizers()[1]);
  other.first_step = kStepsBefore;
  std::atomic<int> loaded = 0;
  other.fill = [&](std::vector<StateSlice>& slices) {
    if (!slices.front().primary) return;  // rank 0's are
    checkpoint::scatter(before.state, slices);
    ++loaded;
  };
  require_close(test::train(other), uninterrupted(training({"single", 1}, optimizers()[1])));
  REQUIRE(loaded == 1);
}

TEST_CASE("every element of the state has one primary owner, and the count of steps is in it once (M-07)") {
  for (const Way& way : all_ways()) {
    INFO(way.strategy << " on " << way.devices);
    const test::Training one = training(way, optimizers()[1]);
    const config::Config config = test::config_of(one.yaml);
    const bool ranks = strategy::entry_of(config).ranks == strategy::Ranks::one_per_device;
    std::atomic<int64_t> elements = 0, counts = 0;
    test::on_ranks(ranks ? way.devices : 1, test::Backend::local, 10, [&](comm::Communicator& communicator) {
      test::TrainingRank rank(one, config, communicator);
      rank.begin();
      for (const StateSlice& slice : rank.strategy().state()) {
        if (slice.primary) elements += slice.view.numel();
        if (slice.primary && slice.name == "optimizer.steps") ++counts;
      }
    });
    const int64_t parameters = model::build(config).parameter_count();
    REQUIRE(elements == 3 * parameters + 1);  // Adam keeps two values of each
    REQUIRE(counts == 1);
  }
}
