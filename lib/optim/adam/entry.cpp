// Adam: weight decay is added to the gradient.
#include "optim/adam.h"
#include "optim/entry.h"

namespace mgt::optim::adam {
namespace {

std::unique_ptr<Optimizer> make(const config::Section& section, const Subject& subject) {
  return make_adam(section, subject, Decay::in_gradient);
}

}  // namespace

extern const Entry entry;
const Entry entry = {
    .variant = {.name = "adam",
                .summary = "Adam; weight decay in the gradient",
                .options = adam_options(0.0),
                .check = {}},
    .make = make,
};

}  // namespace mgt::optim::adam
