// Adam (Kingma and Ba, 2014) and AdamW (Loshchilov and Hutter, 2017) share all but the way weights decay.
// The formulas and the order of operations are those of torch.optim. Owned as any Optimizer.
#pragma once

#include "optim/entry.h"

namespace mgt::optim {

enum class Decay { in_gradient, decoupled };  // Adam, AdamW

// `weight_decay` is the default of that option.
Entry adam_entry(const std::string& name, const std::string& summary, double weight_decay, Decay decay);

}  // namespace mgt::optim
