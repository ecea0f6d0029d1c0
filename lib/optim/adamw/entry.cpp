// AdamW: weight decay acts on the parameters alone.
#include "optim/adam.h"
#include "optim/entry.h"

namespace mgt::optim::adamw {
namespace {

std::unique_ptr<Optimizer> make(const config::Section& section, const Subject& subject) {
  return make_adam(section, subject, Decay::decoupled);
}

}  // namespace

extern const Entry entry;
const Entry entry = {
    .variant = {.name = "adamw",
                .summary = "Adam with decoupled weight decay",
                .options = adam_options(0.01),
                .check = {}},
    .make = make,
};

}  // namespace mgt::optim::adamw
