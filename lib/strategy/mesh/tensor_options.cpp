#include "strategy/mesh/tensor_options.h"

#include "core/text.h"
#include "model/slices.h"

namespace mgt::strategy {

void check_slices(const config::Config& config, const model::Model& model, int64_t slices, const std::string& key) {
  if (slices == 1) return;
  const int64_t most = model::most_parts(model);
  if (slices > most) {
    config.error_at(key, concat(slices, " slices of a layer of ", model.name, " with ", most,
                                most == 1 ? " channel or head" : " channels or heads",
                                " would leave some empty; use at most ", most));
  }
}

}  // namespace mgt::strategy
