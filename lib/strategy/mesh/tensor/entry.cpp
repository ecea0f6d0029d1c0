// Tensor parallel: each layer is cut over the devices (model/slices.h), which work on the same rows at the same time
// and sum what they have made once a pair of layers, forward and backward.
#include "strategy/mesh/mesh.h"
#include "strategy/mesh/tensor_options.h"

#include "core/text.h"

namespace mgt::strategy::tensor {
namespace {

std::unique_ptr<Strategy> make(const Context& context) {
  return make_mesh(context, {.slices = context.communicator.size()});
}

void check_devices(const config::Config& config, const model::Model& model, const std::vector<std::string>& devices) {
  const auto count = static_cast<int64_t>(devices.size());
  const config::Section& section = config.section("strategy");
  const bool given = section.has("degree");
  if (given && section.integer("degree") != count) {
    config.error_at("strategy.degree",
                    concat(counted(section.integer("degree"), "slice"), " on ", counted(count, "device"),
                           "; leave it out, give as many devices, or write strategy: {name: hybrid, data: ...}"));
  }
  check_slices(config, model, given ? section.integer("degree") : count, given ? "strategy.degree" : "devices");
}

}  // namespace

extern const Entry entry;
const Entry entry = {
    .variant = {.name = "tensor",
                .summary = "each layer cut over the ranks, which work on the same rows together",
                .options = {config::integer("degree", {}, "slices of each layer; absent: one a device",
                                            {.at_least = 1, .at_most = 1024})},
                .check = {}},
    .ranks = Ranks::one_per_device,
    .splits_batch = false,
    .check_devices = check_devices,
    .make = make,
};

}  // namespace mgt::strategy::tensor
