// Adam: weight decay is added to the gradient.
#include "optim/adam.h"

namespace mgt::optim::adam {

extern const Entry entry;
const Entry entry = adam_entry("adam", "Adam; weight decay in the gradient", 0.0, Decay::in_gradient);

}  // namespace mgt::optim::adam
