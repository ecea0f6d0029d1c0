// Adam (Kingma and Ba, 2014) and AdamW (Loshchilov and Hutter, 2017) share all but the way weights decay.
// The formulas and the order of operations are those of torch.optim. Owned as any Optimizer.
#pragma once

#include "optim/entry.h"

namespace mgt::optim {

enum class Decay { in_gradient, decoupled };  // Adam, AdamW

std::vector<config::Option> adam_options(double weight_decay);
std::unique_ptr<Optimizer> make_adam(const config::Section& section, const Subject& subject, Decay decay);

}  // namespace mgt::optim
