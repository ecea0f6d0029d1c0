#include "test.h"
#include "training.h"

#include "comm/local/local.h"
#include "core/error.h"
#include "train/loop.h"

#include "torch_pch.h"

#include <chrono>
#include <csignal>
#include <limits>
#include <thread>

using namespace mgt;

namespace {

// Moves only by what a strategy spends.
class FakeClock final : public Clock {
 public:
  double now_s() const override { return time_s; }
  mutable double time_s = 100;
};

// Takes 2 s a step and 7 s an evaluation of the fake clock; counts what it is given.
class FakeStrategy final : public strategy::Strategy {
 public:
  explicit FakeStrategy(FakeClock& clock) : clock_(clock) {}
  Range shard(int64_t rows) const override { return {0, rows}; }
  strategy::StepResult step(const data::Batch& batch, const strategy::StepInput& input) override {
    clock_.time_s += 2;
    sizes.push_back(batch.size());
    lrs.push_back(input.lr);
    return {loss};
  }
  strategy::EvalCounts evaluate(const data::Batch& batch) override {
    clock_.time_s += 7;
    return {.correct = batch.size() / 2, .total = batch.size() - lost};
  }
  std::vector<model::StateSlice> state() override { return {}; }

  std::vector<int64_t> sizes;
  std::vector<double> lrs;
  double loss = 1.5;
  int64_t lost = 0;

 private:
  FakeClock& clock_;
};

class Records final : public train::Observer {
 public:
  void run_started(const train::RunInfo&) override {}
  void step_done(const train::StepRecord& record) override { steps.push_back(record); }
  void epoch_done(const train::EpochRecord& record) override { epochs.push_back(record); }
  std::vector<train::StepRecord> steps;
  std::vector<train::EpochRecord> epochs;
};

struct Run {
  FakeClock clock;
  FakeStrategy strategy{clock};
  Records records;
  data::Splits data = test::golden_data();
  std::unique_ptr<comm::Communicator> communicator = comm::make_local(comm::make_hub(1, 5), 0);

  train::Summary go(int64_t epochs, std::optional<int64_t> max_steps = {}, const std::atomic<int>* stop = nullptr) {
    return train::run({.data = data,
                       .sampler = data::Sampler(data.train.size(), 64, data::file_order(data.train.size())),
                       .strategy = strategy,
                       .communicator = *communicator,
                       .devices = {at::kCPU},
                       .dtype = at::kFloat,
                       .lr = [](int64_t step) { return 0.1 * static_cast<double>(step); },
                       .epochs = epochs,
                       .max_steps = max_steps,
                       .clock = clock,
                       .stop_signal = stop},
                      records);
  }
};

}  // namespace

TEST_CASE("seconds per epoch are training time alone, without evaluation (S-72, E-10)") {
  Run run;
  const train::Summary summary = run.go(3);
  REQUIRE(summary.sec_per_epoch == Approx(6));  // three steps of 2 s; 7 s of evaluation are not in it
  REQUIRE(run.records.epochs[1].train_s == Approx(6));
  REQUIRE(run.records.epochs[1].eval_s == Approx(7));
  REQUIRE(summary.samples_per_sec == Approx(147.0 / 6));
}

TEST_CASE("the clock stops only when every rank is done (S-31, E-10)") {
  // Rank 1 is slow; rank 0, which reports, must count the time that it waits.
  class Slow final : public strategy::Strategy {
   public:
    explicit Slow(int64_t rank) : rank_(rank) {}
    Range shard(int64_t rows) const override { return split(rows, 2, rank_); }
    strategy::StepResult step(const data::Batch&, const strategy::StepInput&) override {
      if (rank_ == 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      return {1.0};
    }
    strategy::EvalCounts evaluate(const data::Batch& batch) override { return {0, batch.size()}; }
    std::vector<model::StateSlice> state() override { return {}; }

   private:
    int64_t rank_;
  };
  data::Splits data = test::golden_data();
  data.test.reset();
  std::vector<double> train_s(2);
  test::on_ranks(2, test::Backend::local, 20, [&](comm::Communicator& communicator) {
    Slow strategy(communicator.rank());
    Records records;
    train::run({.data = data,
                .sampler = data::Sampler(data.train.size(), 64, data::file_order(data.train.size())),
                .strategy = strategy,
                .communicator = communicator,
                .devices = {at::kCPU},
                .dtype = at::kFloat,
                .lr = [](int64_t) { return 0.1; },
                .epochs = 1},
               records);
    train_s[static_cast<std::size_t>(communicator.rank())] = records.epochs.front().train_s;
  });
  // Three steps of 100 ms on the other rank, which may have begun a little before this one's clock; alone it takes
  // none.
  REQUIRE(train_s[0] >= 0.25);
}

TEST_CASE("each epoch trains all batches, the short one too, then evaluates the whole test set (S-48, S-70)") {
  Run run;
  const train::Summary summary = run.go(2);
  REQUIRE(run.strategy.sizes == std::vector<int64_t>{64, 64, 19, 64, 64, 19});
  REQUIRE(run.records.epochs.size() == 2);
  REQUIRE(run.records.epochs[0].test_total == 101);
  REQUIRE(summary.steps == 6);
  REQUIRE(run.strategy.lrs[5] == Approx(0.5));  // the rate is a function of the step
}

TEST_CASE("max_steps ends within an epoch, and seconds per epoch count the part that was done") {
  Run run;
  const train::Summary summary = run.go(10, 4);
  REQUIRE(summary.steps == 4);
  REQUIRE(summary.epochs == 2);
  REQUIRE(summary.sec_per_epoch == Approx(6));
}

TEST_CASE("a loss that is not a number ends the run with epoch and step") {
  Run run;
  run.strategy.loss = std::numeric_limits<double>::quiet_NaN();
  try {
    run.go(1);
    FAIL("nobody noticed");
  } catch (const NumericsError& error) {
    REQUIRE_THAT(error.what(), Catch::Matchers::Contains("step 1") && Catch::Matchers::Contains("epoch 1"));
  }
}

TEST_CASE("an evaluation that lost a sample is noticed (D-1)") {
  Run run;
  run.strategy.lost = 1;
  REQUIRE_THROWS_AS(run.go(1), InternalError);
}

TEST_CASE("a signal ends the run at the next step with its exit code") {
  Run run;
  const std::atomic<int> stop = SIGINT;
  try {
    run.go(1, {}, &stop);
    FAIL("nobody noticed");
  } catch (const Interrupted& error) {
    REQUIRE(error.code() == ExitCode::interrupted);
  }
  REQUIRE(run.strategy.sizes.empty());
}
