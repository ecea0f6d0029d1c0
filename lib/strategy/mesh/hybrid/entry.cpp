// Several ways to use devices at once, as degrees of a mesh: data x pipeline x tensor = devices, with ZeRO as a stage
// on the data axis.
#include "config/run.h"
#include "core/error.h"
#include "core/text.h"
#include "strategy/mesh/mesh.h"
#include "strategy/mesh/pipeline_options.h"
#include "strategy/mesh/tensor_options.h"

#include <algorithm>

namespace mgt::strategy::hybrid {
namespace {

int64_t degree(const config::Config& config, const std::string& axis) {
  return config.section("strategy").integer(axis);
}

// `data` is what the other degrees leave, where it is not given.
int64_t data_degree(const config::Config& config, int64_t devices) {
  const config::Section& section = config.section("strategy");
  if (section.has("data")) return section.integer("data");
  return std::max<int64_t>(1, devices / (degree(config, "pipeline") * degree(config, "tensor")));
}

std::unique_ptr<Strategy> make(const Context& context) {
  return make_mesh(context,
                   {.sharing = {.stage = degree(context.config, "zero"), .bucket_bytes = bucket_bytes(context.config)},
                    .pipeline = pipeline_of(context.config, degree(context.config, "pipeline")),
                    .slices = degree(context.config, "tensor"),
                    .cut = cut_of(context.config)});
}

void check_model(const config::Config& config, const model::Model& model, int64_t pipeline, int64_t tensor) {
  if (tensor > 1 && config::run_of(config).invariant) {
    config.error_at("determinism", concat("invariant is not possible with strategy.tensor ", tensor,
                                          ": sums within a layer depend on how it is cut; write tensor: 1"));
  }
  check_slices(config, model, tensor, "strategy.tensor");
  check_parts(config, model, pipeline, "strategy.pipeline");
}

bool fits(const config::Config& config, const model::Model& model, int64_t pipeline, int64_t tensor) {
  try {
    check_model(config, model, pipeline, tensor);
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

// "1x1x4, 1x2x2, ...": the degrees of so many devices that the model allows.
std::string fitting(const config::Config& config, const model::Model& model, int64_t devices) {
  constexpr std::size_t kMost = 12;
  std::vector<std::string> degrees;
  for (int64_t data = 1; data <= devices; ++data) {
    for (int64_t pipeline = 1; data * pipeline <= devices; ++pipeline) {
      const int64_t tensor = devices / (data * pipeline);
      if (data * pipeline * tensor != devices || !fits(config, model, pipeline, tensor)) continue;
      degrees.push_back(degrees.size() < kMost ? concat(data, "x", pipeline, "x", tensor) : "...");
      if (degrees.size() > kMost) return join(degrees);
    }
  }
  return degrees.empty() ? "none with this split" : join(degrees);
}

// The first degree that the user has given.
std::string key_of_degrees(const config::Config& config) {
  for (const std::string key : {"data", "pipeline", "tensor"}) {
    const config::Section& section = config.section("strategy");
    if (section.has(key) && section.origin(key).source != config::Origin::Source::fallback) return "strategy." + key;
  }
  return "strategy.name";
}

void check_devices(const config::Config& config, const model::Model& model, const std::vector<std::string>& devices) {
  const auto count = static_cast<int64_t>(devices.size());
  const int64_t data = data_degree(config, count), pipeline = degree(config, "pipeline"),
                tensor = degree(config, "tensor");
  if (data * pipeline * tensor != count) {
    config.error_at(key_of_degrees(config),
                    concat("strategy.data ", data, " x strategy.pipeline ", pipeline, " x strategy.tensor ", tensor,
                           " is ", data * pipeline * tensor, ", not the ", counted(count, "device"),
                           "; data x pipeline x tensor that fit: ", fitting(config, model, count)));
  }
  check_model(config, model, pipeline, tensor);
}

std::vector<config::Option> options() {
  const config::Bounds degree{.at_least = 1, .at_most = 1024};
  std::vector<config::Option> options = {
      config::integer("data", {}, "ranks along the data axis; absent: what the other degrees leave", degree),
      config::integer("pipeline", 1, "stages of a pipeline", degree, {2, 3}),
      config::integer("tensor", 1, "slices of each layer", degree, {2}),
      config::integer("zero", 0, "ZeRO stage on the data axis; 0: gradients are all-reduced",
                      {.at_least = 0, .at_most = 3}, {1, 2, 3}),
      bucket_option()};
  for (config::Option& option : pipeline_options()) options.push_back(std::move(option));
  return options;
}

}  // namespace

extern const Entry entry;
const Entry entry = {
    .variant = {.name = "hybrid",
                .summary = "data x pipeline x tensor over one mesh of ranks, with ZeRO along data",
                .options = options(),
                .check = check_pipeline},
    .ranks = Ranks::one_per_device,
    .data_ranks = data_degree,
    .can_be_invariant = true,
    .check_devices = check_devices,
    .stages = [](const config::Config& config, int64_t) { return degree(config, "pipeline"); },
    .draw_schedule = drawn_schedule,
    .make = make,
};

}  // namespace mgt::strategy::hybrid
