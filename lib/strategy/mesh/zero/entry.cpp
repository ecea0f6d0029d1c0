// ZeRO (Rajbhandari et al., SC 2020): data parallel ranks that share out what ddp keeps on each of them. Stage 1:
// optimizer state; 2: gradients too; 3: parameters too, gathered block by block when they are needed.
#include "core/text.h"
#include "strategy/mesh/mesh.h"

#include <algorithm>

namespace mgt::strategy::zero {
namespace {

using config::Kind;

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

config::Option on(const std::string& key, const std::string& help) {
  return {.key = key, .kind = Kind::boolean, .fallback = true, .help = help};
}

}  // namespace

extern const Entry entry;
const Entry entry = {
    .variant = {.name = "zero",
                .summary = "as ddp, with optimizer state, gradients and parameters shared out over the ranks (ZeRO)",
                .options = {{.key = "stage",
                             .kind = Kind::integer,
                             .fallback = int64_t{2},
                             .help = "what is shared out; 1: optimizer state, 2: gradients too, 3: parameters too",
                             .bounds = {.at_least = 1, .at_most = 3},
                             .examples = {int64_t{1}, int64_t{3}}},
                            bucket_option(),
                            on("overlap_comm",
                               "communicate while computing; in stage 3 that gathers the next block early"),
                            on("contiguous_gradients",
                               "put each gradient into its bucket at once, not when all of the bucket are there"),
                            on("reduce_scatter", "false: all-reduce gradients and keep a part, twice the bytes"),
                            on("allgather_partitions", "false: each rank broadcasts its part in turn"),
                            {.key = "offload",
                             .kind = Kind::text,
                             .fallback = std::string("none"),
                             .help = "cpu: optimizer state of GPU ranks is kept and updated on the host",
                             .choices = {"none", "cpu"}}},
                .check = {}},
    .ranks = Ranks::one_per_device,
    .can_be_invariant = true,
    .check_devices = check_devices,
    .make = make,
};

}  // namespace mgt::strategy::zero
