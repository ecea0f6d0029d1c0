#include "model/state.h"

#include "core/text.h"

#include <utility>

namespace mgt::model {
namespace {

at::Tensor box_of(const at::Tensor& tensor, const StateSlice& slice) {
  at::Tensor box = tensor;
  for (std::size_t dim = 0; dim < slice.global.size(); ++dim) {
    box = box.narrow(static_cast<int64_t>(dim), slice.box.offset[dim], slice.box.extent[dim]);
  }
  return box;
}

}  // namespace

int64_t elements(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

std::string shape_text(const Shape& shape) { return concat("(", join(shape), ")"); }

bool is_whole(const StateSlice& slice) { return !slice.flat && slice.box.extent == slice.global; }

at::Tensor piece_of(const at::Tensor& tensor, const StateSlice& slice) {
  at::Tensor piece = box_of(tensor, slice);
  if (slice.flat) piece = piece.flatten().narrow(0, slice.flat->begin, slice.flat->size());
  return piece.reshape(slice.view.sizes());
}

void put_piece(const at::Tensor& tensor, const StateSlice& slice) {
  at::Tensor box = box_of(tensor, slice);
  if (!slice.flat) {
    box.copy_(slice.view);
    return;
  }
  at::Tensor values = box.flatten().clone();  // a box that does not lie in one piece has no flat view
  values.narrow(0, slice.flat->begin, slice.flat->size()).copy_(slice.view);
  box.copy_(values.view(box.sizes()));
}

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

StateSlice in_box(std::string name, StateKind kind, const at::Tensor& view, bool primary, const Shape& global,
                  const Shape& offset) {
  StateSlice slice = whole(std::move(name), kind, view, primary);
  if (global.empty()) return slice;
  slice.global = global;
  slice.box.offset = offset;
  return slice;
}

}  // namespace mgt::model
