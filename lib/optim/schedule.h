// Learning-rate schedules: the learning rate as a pure function of the optimizer step, after an optional ramp, under an
// explicit rule for the batch. The values are those of torch.optim.lr_scheduler, in closed form. A schedule knows
// nothing of ranks: each rank has its own, any thread may ask it, and all get the same answer in every world.
#pragma once

#include "config/config.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace mgt::optim {

using Schedule = std::function<double(int64_t step)>;  // learning rate of optimizer step `step`, from 0

// A schedule ends with the run: its length is not for the user to repeat.
struct RunLength {
  int64_t steps = 1;  // of the optimizer, over all epochs
  int64_t steps_per_epoch = 1;
  int64_t batch_size = 1;  // samples of a step, which a rule for the batch scales by
};

// The `schedule` section of the schema.
config::SectionSpec schedule_section();

// The schedule that the config names. ConfigError when its ramp is longer than the run.
Schedule make_schedule(const config::Config& config, const RunLength& run);

}  // namespace mgt::optim
