// Runs a config's ranks as threads with a spectator in each: either keeping what they compute, or comparing it with
// what was kept of another run. The training is the real one, `launch::train_rank`.
#pragma once

#include "config/config.h"
#include "data/dataset.h"
#include "train/records.h"
#include "verify/fault.h"
#include "verify/findings.h"
#include "verify/row_sets.h"
#include "verify/trace.h"

#include <functional>
#include <memory>

namespace mgt::verify {

// How the gradients and the statistics of one device are computed that a run must equal.
struct Reference {
  RowSets sets = {};     // which rows share BatchNorm statistics; by default all of a batch
  int64_t rounding = 0;  // which other rounding of the same function (make_reference); 0: none
};

using Data = std::shared_ptr<const data::Splits>;

// What a run of `config` (one device, strategy single) computed. Errors as of a training.
Trace record(const config::Config& config, const Data& data, const Reference& reference);

// A plain training of `config`, its ranks as threads. Errors as of a training.
train::Summary train(const config::Config& config, const Data& data);

// The fault of one rank; called for each.
using MakeFault = std::function<Fault(int64_t rank)>;

// Trains as `config` says, and adds every difference from `expected` to `findings`. Errors as of a training, and
// DataError where all ranks have the same rows, which shows nothing.
void compare(const config::Config& config, const Data& data, const Trace& expected, Findings& findings,
             const MakeFault& make_fault = {});

}  // namespace mgt::verify
