// The training loop and the evaluation, the same for every strategy. Every rank runs it; the observer of each rank
// hears of the global numbers, which are the same on all.
#pragma once

#include "comm/communicator.h"
#include "core/clock.h"
#include "data/dataset.h"
#include "data/sampler.h"
#include "strategy/strategy.h"
#include "train/records.h"

#include <atomic>
#include <functional>
#include <optional>

namespace mgt::train {

struct Job {
  const data::Splits& data;
  data::Sampler sampler;
  strategy::Strategy& strategy;
  comm::Communicator& communicator;
  std::vector<at::Device> devices;  // to synchronise before the clock stops
  at::ScalarType dtype;
  std::function<double(int64_t step)> lr;  // of optimizer step `step`, from 0
  int64_t epochs = 1;
  std::optional<int64_t> max_steps = {};
  const Clock& clock = real_clock();
  const std::atomic<int>* stop_signal = nullptr;  // not 0: a signal asks the run to stop
  strategy::Probe* probe = nullptr;
};

// Trains and evaluates after each epoch. Fills what it knows of the summary: losses, times, counts, steps.
// NumericsError when a loss is not finite, with epoch and step; Interrupted when `stop_signal` says so.
Summary run(Job job, Observer& observer);

// Correct and seen over the whole set, exact whatever the number of ranks; asserts that every sample was seen once.
strategy::EvalCounts evaluate(strategy::Strategy& strategy, const data::Dataset& dataset, at::ScalarType dtype);

}  // namespace mgt::train
