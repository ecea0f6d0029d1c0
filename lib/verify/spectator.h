// Sits in one rank of a run, sees each step's gradients, loss and state and each evaluation's counts, and hands them to
// its sink. May bring a fault, or another strategy than the config's. Belongs to the rank's thread.
#pragma once

#include "launch/rank.h"
#include "strategy/entry.h"
#include "train/records.h"
#include "verify/fault.h"

#include <functional>
#include <memory>
#include <vector>

namespace mgt::verify {

// Receives what a spectator sees, in the order of events.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void gradients(int64_t replica, const strategy::Probe::Parameters& parameters) = 0;
  virtual void step(const train::StepRecord& record, const std::vector<model::StateSlice>& state) = 0;
  virtual void evaluation(const train::EpochRecord& record) = 0;
  virtual void saved(const std::vector<model::StateSlice>&) {}
};

using MakeStrategy =
    std::function<std::unique_ptr<strategy::Strategy>(const strategy::Entry&, const strategy::Context&)>;

class Spectator final : public launch::Interposer, public train::Observer, private strategy::Probe {
 public:
  // `seed_offset` is added to the seed of the initial weights: ranks that must take them from rank 0 start from others.
  Spectator(Sink& sink, MakeStrategy make, Fault fault, uint64_t seed_offset);

  data::Order order(data::Order made) override;
  std::unique_ptr<strategy::Strategy> make(const strategy::Entry& entry, const strategy::Context& context) override;
  strategy::Probe* probe() override { return this; }
  void saved(const std::vector<model::StateSlice>& weights) override { sink_.saved(weights); }

  void run_started(const train::RunInfo&) override {}
  void step_done(const train::StepRecord& record) override;
  void epoch_done(const train::EpochRecord& record) override;

 private:
  void gradients_computed(int64_t replica, const Parameters& parameters) override;
  void gradients_ready(int64_t replica, const Parameters& parameters) override;
  void updated(int64_t replica, const Parameters& parameters) override;

  Sink& sink_;
  MakeStrategy make_;
  Fault fault_;
  uint64_t seed_offset_;
  strategy::Strategy* strategy_ = nullptr;  // the rank's, which outlives what is asked of it here
};

}  // namespace mgt::verify
