// Whether a data set and a model go together, found out before anything is trained. Pure functions.
#pragma once

#include "config/config.h"
#include "data/dataset.h"
#include "model/model.h"

namespace mgt::launch {

// DataError: samples of another shape than the model's input (names the file). ConfigError: more classes than outputs,
// a loss that does not fit the targets.
void check_fit(const config::Config& config, const model::Model& model, const data::Splits& data);

}  // namespace mgt::launch
