#include "launch/data_fit.h"

#include "core/error.h"
#include "core/text.h"

namespace mgt::launch {
namespace {

void check_input(const model::Model& model, const data::Dataset& dataset) {
  const model::Shape sample = dataset.inputs.sizes().slice(1).vec();
  if (sample == model.input) return;
  throw DataError(concat(dataset.name, ": a sample is ", model::shape_text(sample), " where ", model.name, " takes ",
                         model::shape_text(model.input), "; set model.input, or take other data"));
}

void check_classes(const config::Config& config, const model::Model& model, const data::Dataset& dataset) {
  if (dataset.classes <= model.outputs) return;
  config.error_at("model.outputs", concat(model.outputs, " outputs for the ", dataset.classes, " classes of ",
                                          dataset.name, "; give at least as many"));
}

void check_regression(const config::Config& config, const model::Model& model, const data::Dataset& dataset) {
  if (model.loss != model::Loss::mse) {
    config.error_at("model.loss", concat(dataset.name, " has numbers as targets, not classes; write mse"));
  }
  const int64_t width = dataset.targets.size(1);
  if (width == model.outputs) return;
  config.error_at("model.outputs",
                  concat(model.outputs, " outputs where the targets of ", dataset.name, " have ", width));
}

void check_set(const config::Config& config, const model::Model& model, const data::Dataset& dataset) {
  check_input(model, dataset);
  if (dataset.classes > 0)
    check_classes(config, model, dataset);
  else
    check_regression(config, model, dataset);
}

}  // namespace

void check_fit(const config::Config& config, const model::Model& model, const data::Splits& data) {
  check_set(config, model, data.train);
  if (data.test) check_set(config, model, *data.test);
}

}  // namespace mgt::launch
