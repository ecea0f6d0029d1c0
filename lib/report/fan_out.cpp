#include "report/fan_out.h"

namespace mgt::report {

FanOut::FanOut(std::vector<train::Observer*> observers) : observers_(std::move(observers)) {}

void FanOut::run_started(const train::RunInfo& info) {
  for (train::Observer* observer : observers_) observer->run_started(info);
}

void FanOut::step_done(const train::StepRecord& record) {
  for (train::Observer* observer : observers_) observer->step_done(record);
}

void FanOut::epoch_done(const train::EpochRecord& record) {
  for (train::Observer* observer : observers_) observer->epoch_done(record);
}

}  // namespace mgt::report
