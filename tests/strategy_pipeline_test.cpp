// Pipelines on blocks whose time is known: how long stages wait, and how many activations they hold.
#include "test.h"
#include "training.h"

#include "launch/batch_plan.h"
#include "model/layers.h"
#include "strategy/entry.h"

#include "torch_pch.h"

#include <chrono>
#include <numeric>
#include <thread>

using namespace mgt;

namespace {

void sleep_ms(int64_t duration_ms) { std::this_thread::sleep_for(std::chrono::milliseconds(duration_ms)); }

// Takes 10 ms forward and 20 ms backward, whatever the batch.
model::Block calibrated_block(const std::string& name) {
  model::Block block = model::linear(name, 4, 4, {});
  block.forward = [linear = block.forward](const at::Tensor& input, const model::BlockWeights& weights,
                                           const model::ForwardContext& context) {
    sleep_ms(10);
    const at::Tensor output = linear(input, weights, context);
    if (output.requires_grad()) {
      output.register_hook([](const at::Tensor& gradient) {
        sleep_ms(20);
        return gradient;
      });
    }
    return output;
  };
  return block;
}

model::Model calibrated(int64_t blocks) {
  model::Model model{.name = "calibrated", .input = {4}, .outputs = 4, .loss = model::Loss::mse};
  for (int64_t index = 0; index < blocks; ++index) {
    model.blocks.push_back(calibrated_block("fc" + std::to_string(index)));
  }
  return model;
}

double note(const std::vector<strategy::Note>& notes, const std::string& name) {
  for (const strategy::Note& note : notes) {
    if (note.name == name) return note.value;
  }
  throw std::runtime_error("no note " + name);
}

// What the stages tell of a few steps.
struct Told {
  std::vector<double> idle_percent;
  std::vector<double> in_flight;

  double mean_idle_percent() const {
    return std::accumulate(idle_percent.begin(), idle_percent.end(), 0.0) / static_cast<double>(idle_percent.size());
  }
};

Told run(const std::string& schedule, int64_t stages, int64_t pieces) {
  const config::Config config =
      test::config_of("strategy: {name: pipeline, schedule: " + schedule + ", microbatches: " + std::to_string(pieces) +
                      "}\noptimizer: {name: sgd, lr: 0.01}\nprecision: fp64\n");
  const model::Model model = calibrated(stages);
  Told told{std::vector<double>(static_cast<std::size_t>(stages)),
            std::vector<double>(static_cast<std::size_t>(stages))};
  test::on_ranks(stages, test::Backend::local, 20, [&](comm::Communicator& communicator) {
    const auto made = strategy::entry_of(config).make({config,
                                                       model,
                                                       {at::kCPU},
                                                       communicator,
                                                       at::kDouble,
                                                       /*seed=*/1,
                                                       /*threads=*/1,
                                                       /*micro_batch=*/{2 * pieces, pieces}});
    const data::Batch batch{at::ones({2 * pieces, 4}, at::kDouble), at::zeros({2 * pieces, 4}, at::kDouble)};
    for (int step = 0; step < 4; ++step) made->step(batch, {.lr = 0.01, .samples = 2 * pieces});
    const std::vector<strategy::Note> notes = made->notes();
    told.in_flight[static_cast<std::size_t>(communicator.rank())] = note(notes, "activations held at most");
    told.idle_percent[static_cast<std::size_t>(communicator.rank())] = note(notes, "idle");
  });
  return told;
}

}  // namespace

TEST_CASE("the idle share of a pipeline is (p - 1) / (m + p - 1), within 5 points (S-106, M-21)") {
  for (const std::string schedule : {"gpipe", "1f1b"}) {
    for (const auto& [stages, pieces] : {std::pair<int64_t, int64_t>{2, 1}, {2, 4}, {2, 8}, {4, 4}}) {
      const double ideal = 100.0 * static_cast<double>(stages - 1) / static_cast<double>(pieces + stages - 1);
      double idle = run(schedule, stages, pieces).mean_idle_percent();
      // A machine with other work adds idle time, never takes any.
      for (int again = 0; again < 3 && idle > ideal + 5; ++again)
        idle = run(schedule, stages, pieces).mean_idle_percent();
      INFO(schedule << ", " << stages << " stages, " << pieces << " pieces: " << idle << " %, ideal " << ideal << " %");
      REQUIRE(std::abs(idle - ideal) <= 5);
    }
  }
}

TEST_CASE("many pieces that the stages do not divide pass through chunks and end") {
  const test::Outcome outcome = test::train(
      {.yaml = "model: {name: lenet, channels: [4, 6], hidden: 16}\nprecision: fp64\nbatch_size: 64\n"
               "strategy: {name: pipeline, schedule: interleaved, microbatches: 61}\noptimizer: {name: sgd, lr: 0.2}\n",
       .devices = 2,
       .steps = 2,
       .data = test::golden_data(),
       .order = {},
       .init = "",
       .fill = {}});
  REQUIRE(outcome.losses.size() == 2);
}

TEST_CASE("1f1b holds the activations of min(m, p - stage) pieces, gpipe those of all") {
  for (const int64_t pieces : {1, 3, 6}) {
    const Told one_by_one = run("1f1b", 4, pieces), gpipe = run("gpipe", 4, pieces);
    for (int64_t stage = 0; stage < 4; ++stage) {
      REQUIRE(one_by_one.in_flight[static_cast<std::size_t>(stage)] == std::min<int64_t>(pieces, 4 - stage));
      REQUIRE(gpipe.in_flight[static_cast<std::size_t>(stage)] == pieces);
    }
  }
}
