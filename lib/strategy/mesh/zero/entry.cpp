// ZeRO (Rajbhandari et al., SC 2020): data parallel ranks that share out what ddp keeps on each of them. Stage 1:
// optimizer state; 2: gradients too; 3: parameters too, gathered block by block when they are needed.
#include "core/text.h"
#include "strategy/mesh/mesh.h"

#include <algorithm>

namespace mgt::strategy::zero {
namespace {

std::unique_ptr<Strategy> make(const Context& context) {
  const config::Section& section = context.config.section("strategy");
  return make_mesh(context, {.sharing = {.stage = section.integer("stage"),
                                         .bucket_bytes = bucket_bytes(context.config),
                                         .overlap = section.boolean("overlap_comm"),
                                         .contiguous_gradients = section.boolean("contiguous_gradients"),
                                         .reduce_scatter = section.boolean("reduce_scatter"),
                                         .all_gather = section.boolean("allgather_partitions"),
                                         .offload = section.text("offload") == "cpu"}});
}

void check_devices(const config::Config& config, const model::Model&, const std::vector<std::string>& devices) {
  const bool on_gpus = std::ranges::all_of(devices, [](const std::string& name) { return name.starts_with("cuda"); });
  if (config.section("strategy").text("offload") == "cpu" && !on_gpus) {
    config.error_at("strategy.offload", concat("cpu moves optimizer state off GPUs, but the devices are ",
                                               join(devices), ", where it is on the host already; write none"));
  }
}

}  // namespace

extern const Entry entry;
const Entry entry = {
    .variant =
        {.name = "zero",
         .summary = "as ddp, with optimizer state, gradients and parameters shared out over the ranks (ZeRO)",
         .options =
             {config::integer("stage", 2, "what is shared out; 1: optimizer state, 2: gradients too, 3: parameters too",
                              {.at_least = 1, .at_most = 3}, {1, 3}),
              bucket_option(),
              config::boolean("overlap_comm", true,
                              "communicate while computing; in stage 3 that gathers the next block early"),
              config::boolean("contiguous_gradients", true,
                              "put each gradient into its bucket at once, not when all of the bucket are there"),
              config::boolean("reduce_scatter", true, "false: all-reduce gradients and keep a part, twice the bytes"),
              config::boolean("allgather_partitions", true, "false: each rank broadcasts its part in turn"),
              config::text("offload", "none", "cpu: optimizer state of GPU ranks is kept and updated on the host",
                           {"none", "cpu"})},
         .check = {}},
    .ranks = Ranks::one_per_device,
    .can_be_invariant = true,
    .check_devices = check_devices,
    .make = make,
};

}  // namespace mgt::strategy::zero
