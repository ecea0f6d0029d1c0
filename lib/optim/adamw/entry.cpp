// AdamW: weight decay acts on the parameters alone.
#include "optim/adam.h"

namespace mgt::optim::adamw {

extern const Entry entry;
const Entry entry = adam_entry("adamw", "Adam with decoupled weight decay", 0.01, Decay::decoupled);

}  // namespace mgt::optim::adamw
