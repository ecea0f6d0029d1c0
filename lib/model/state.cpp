#include "model/state.h"

#include "core/text.h"

#include <utility>

namespace mgt::model {

int64_t elements(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

std::string shape_text(const Shape& shape) { return concat("(", join(shape), ")"); }

StateSlice whole(std::string name, StateKind kind, const at::Tensor& view, bool primary) {
  const Shape shape = view.sizes().vec();
  return {.name = std::move(name),
          .kind = kind,
          .global = shape,
          .box = {.offset = Shape(shape.size(), 0), .extent = shape},
          .flat = {},
          .primary = primary,
          .view = view};
}

}  // namespace mgt::model
