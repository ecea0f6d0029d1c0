// Distributed data parallel: one rank per device, all equal. Each computes the gradient of its shard; buckets are
// all-reduced while backward still runs (Li et al., "PyTorch Distributed", VLDB 2020); every rank makes the same
// update. The simplest case of the mesh: nothing is shared out.
#include "strategy/mesh/mesh.h"

namespace mgt::strategy::ddp {
namespace {

std::unique_ptr<Strategy> make(const Context& context) {
  return make_mesh(context, {.sharing = {.stage = 0,
                                         .bucket_bytes = bucket_bytes(context.config),
                                         .overlap = context.config.section("strategy").boolean("overlap")}});
}

}  // namespace

extern const Entry entry;
const Entry entry = {
    .variant = {.name = "ddp",
                .summary = "one rank per device; gradients all-reduced in buckets while backward runs",
                .options = {bucket_option(),
                            config::boolean("overlap", true,
                                            "start a bucket's all-reduce during backward, not after it")},
                .check = {}},
    .ranks = Ranks::one_per_device,
    .can_be_invariant = true,
    .make = make,
};

}  // namespace mgt::strategy::ddp
