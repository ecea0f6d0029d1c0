// One observer that tells several others, in the order given. It owns none of them; they must outlive it.
// Used on the rank that reports.
#pragma once

#include "train/records.h"

#include <vector>

namespace mgt::report {

class FanOut final : public train::Observer {
 public:
  explicit FanOut(std::vector<train::Observer*> observers);
  void run_started(const train::RunInfo& info) override;
  void step_done(const train::StepRecord& record) override;
  void epoch_done(const train::EpochRecord& record) override;

 private:
  std::vector<train::Observer*> observers_;
};

}  // namespace mgt::report
