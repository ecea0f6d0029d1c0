#include "train/loop.h"

#include "checkpoint/gather.h"
#include "checkpoint/weights.h"
#include "comm/device.h"
#include "core/error.h"
#include "core/text.h"

#include "torch_pch.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

namespace mgt::train {
namespace {

constexpr int64_t kEvaluationBatch = 1000;  // rows over all ranks: large enough to fill them, small in memory

// All queued work done on this rank's devices and all ranks here: only then may a clock be read.
void meet(const Job& job) {
  for (const at::Device device : job.devices) comm::services(device).synchronize(device);
  job.communicator.barrier();
}

NumericsError loss_not_finite(const StepRecord& record) {
  return NumericsError(concat("the loss is ", std::isnan(record.loss) ? "nan" : "infinite", " at step ", record.step,
                              " (epoch ", record.epoch,
                              "); lower optimizer.lr, or look for bad values in the data or in `init`"));
}

class Loop {
 public:
  Loop(Job job, Observer& observer) : job_(std::move(job)), observer_(observer) {}

  Summary run() {
    for (int64_t epoch = 0; epoch < job_.epochs && !finished(); ++epoch) {
      EpochRecord record = train_epoch(epoch);
      evaluate_into(record);
      const auto weights = checkpoint::gather_weights(job_.communicator, job_.strategy.state(), job_.devices.front());
      if (job_.communicator.rank() == 0) record.weights = checkpoint::hash_weights(weights);
      observer_.epoch_done(record);
      add_to_summary(record);
    }
    const double epochs_done = static_cast<double>(steps_) / static_cast<double>(job_.sampler.steps_per_epoch());
    summary_.sec_per_epoch = train_s_ / epochs_done;
    summary_.samples_per_sec = static_cast<double>(samples_) / train_s_;
    summary_.steps = steps_;
    return summary_;
  }

 private:
  bool finished() const { return job_.max_steps && steps_ >= *job_.max_steps; }

  EpochRecord train_epoch(int64_t epoch) {
    EpochRecord record{.epoch = epoch + 1};
    int64_t samples = 0;
    meet(job_);
    const int64_t bytes_before = bytes_sent();
    const double started_s = job_.clock.now_s();
    for (int64_t step = 0; step < job_.sampler.steps_per_epoch() && !finished(); ++step) {
      const StepRecord done = train_step(epoch, step);
      record.train_loss += done.loss * static_cast<double>(done.samples);
      record.lr = done.lr;
      samples += done.samples;
      observer_.step_done(done);
    }
    meet(job_);
    record.train_s = job_.clock.now_s() - started_s;
    summary_.train_bytes_sent += bytes_sent() - bytes_before;
    record.step = steps_;
    record.train_loss /= static_cast<double>(samples);
    record.samples_per_s = static_cast<double>(samples) / record.train_s;
    samples_ += samples;
    train_s_ += record.train_s;
    return record;
  }

  int64_t bytes_sent() const { return job_.communicator.ledger().total().bytes_sent + job_.strategy.bytes_sent(); }

  StepRecord train_step(int64_t epoch, int64_t step) {
    if (job_.stop_signal && *job_.stop_signal != 0) throw Interrupted(*job_.stop_signal);
    const std::vector<int64_t> rows = job_.sampler.indices(epoch, step);
    const auto count = static_cast<int64_t>(rows.size());
    const Range mine = job_.strategy.shard(count);
    const data::Batch batch = data::gather(
        job_.data.train,
        std::span(rows).subspan(static_cast<std::size_t>(mine.begin), static_cast<std::size_t>(mine.size())),
        job_.dtype);
    StepRecord record{.epoch = epoch + 1, .step = steps_ + 1, .step_in_epoch = step + 1, .samples = count};
    record.lr = job_.lr(steps_);
    const strategy::StepResult done =
        job_.strategy.step(batch, {.lr = record.lr, .samples = count, .probe = job_.probe});
    record.loss = done.loss;
    record.gradient_norm = done.gradient_norm;
    if (!std::isfinite(record.loss)) throw loss_not_finite(record);
    if (steps_ == 0) {
      for (const at::Device device : job_.devices) comm::services(device).synchronize(device);
      summary_.first_step_s = since_process_start_s();
    }
    ++steps_;
    return record;
  }

  void evaluate_into(EpochRecord& record) {
    if (!job_.data.test) return;
    const double started_s = job_.clock.now_s();
    const strategy::EvalCounts counts = evaluate(job_.strategy, *job_.data.test, job_.dtype);
    record.eval_s = job_.clock.now_s() - started_s;
    record.evaluated = true;
    record.test_correct = counts.correct;
    record.test_total = counts.total;
  }

  void add_to_summary(const EpochRecord& record) {
    summary_.epochs = record.epoch;
    summary_.final_train_loss = record.train_loss;
    summary_.evaluated = record.evaluated;
    if (!record.evaluated) return;
    summary_.test_correct = record.test_correct;
    summary_.test_total = record.test_total;
    summary_.best_test_acc = std::max(summary_.best_test_acc, accuracy(record.test_correct, record.test_total));
  }

  Job job_;
  Observer& observer_;
  Summary summary_;
  int64_t steps_ = 0;
  int64_t samples_ = 0;
  double train_s_ = 0;
};

}  // namespace

Summary run(Job job, Observer& observer) { return Loop(std::move(job), observer).run(); }

strategy::EvalCounts evaluate(strategy::Strategy& strategy, const data::Dataset& dataset, at::ScalarType dtype) {
  strategy::EvalCounts sum;
  std::vector<int64_t> rows(static_cast<std::size_t>(dataset.size()));
  std::iota(rows.begin(), rows.end(), int64_t{0});
  for (int64_t begin = 0; begin < dataset.size(); begin += kEvaluationBatch) {
    const int64_t count = std::min(kEvaluationBatch, dataset.size() - begin);
    const Range mine = strategy.shard(count);
    const auto first = static_cast<std::size_t>(begin + mine.begin);
    const strategy::EvalCounts counts = strategy.evaluate(
        data::gather(dataset, std::span(rows).subspan(first, static_cast<std::size_t>(mine.size())), dtype));
    sum.correct += counts.correct;
    sum.total += counts.total;
  }
  require(sum.total == dataset.size(), "evaluation sees every sample once");
  return sum;
}

}  // namespace mgt::train
