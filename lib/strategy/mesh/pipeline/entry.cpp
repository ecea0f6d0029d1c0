// Pipeline parallel: consecutive blocks on each device, which works on one piece of the batch while the others work on
// others. Activations go to the next stage, gradients back. Idle time is (p - 1) / (m + p - 1) for p stages and m
// pieces.
#include "core/text.h"
#include "strategy/mesh/mesh.h"
#include "strategy/mesh/pipeline_options.h"

namespace mgt::strategy::pipeline {
namespace {

std::unique_ptr<Strategy> make(const Context& context) {
  return make_mesh(
      context, {.pipeline = pipeline_of(context.config, context.communicator.size()), .cut = cut_of(context.config)});
}

void check_devices(const config::Config& config, const model::Model& model, const std::vector<std::string>& devices) {
  const auto count = static_cast<int64_t>(devices.size());
  const config::Section& section = config.section("strategy");
  const int64_t stages = section.has("stages") ? section.integer("stages") : count;
  if (stages != count) {
    config.error_at("strategy.stages",
                    concat(counted(stages, "stage"), " on ", counted(count, "device"),
                           "; leave it out, give as many devices, or write strategy: {name: hybrid, data: ...}"));
  }
  check_parts(config, model, stages, section.has("stages") ? "strategy.stages" : "devices");
}

std::vector<config::Option> options() {
  std::vector<config::Option> options = {config::integer(
      "stages", {}, "devices that the model is cut over; absent: all of them", {.at_least = 1, .at_most = 1024})};
  for (config::Option& option : pipeline_options()) options.push_back(std::move(option));
  return options;
}

}  // namespace

extern const Entry entry;
const Entry entry = {
    .variant = {.name = "pipeline",
                .summary = "consecutive layers on each rank; pieces of a batch follow each other through them",
                .options = options(),
                .check = check_pipeline},
    .ranks = Ranks::one_per_device,
    .splits_batch = false,
    .can_be_invariant = true,
    .check_devices = check_devices,
    .stages = [](const config::Config&, int64_t devices) { return devices; },
    .draw_schedule = drawn_schedule,
    .make = make,
};

}  // namespace mgt::strategy::pipeline
