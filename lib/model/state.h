// One piece of one logical tensor, and the flat layout that parameters lie in. `Strategy::state` describes all that a
// rank owns in these words; checkpoints, hashes, export and verification need nothing else.
// Values. Views may be read and written by the rank that owns them, between steps.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/split.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mgt::model {

using Shape = std::vector<int64_t>;

int64_t elements(const Shape& shape);        // 1 for a scalar's empty shape
std::string shape_text(const Shape& shape);  // "(16, 96)"

enum class StateKind { parameter, buffer, optimizer };

// Offset and extent in each dimension of the whole tensor.
struct Box {
  Shape offset;
  Shape extent;
};

struct StateSlice {
  std::string name;  // "conv1.weight"; optimizer state: "conv1.weight.momentum"
  StateKind kind = StateKind::parameter;
  Shape global;               // the whole tensor's shape
  Box box;                    // this rank's piece
  std::optional<Range> flat;  // a range of the flattened box; absent: all of it
  bool primary = true;        // exactly one rank owns each element for saving; replicas are not primary
  at::Tensor view;
};

bool is_whole(const StateSlice& slice);

// The piece of the whole tensor that the slice stands for, in the form of its view: to be read, since it may be a copy.
at::Tensor piece_of(const at::Tensor& tensor, const StateSlice& slice);

// Writes the slice's values into the whole tensor.
void put_piece(const at::Tensor& tensor, const StateSlice& slice);

// A slice that is the whole tensor, or with `global` the box of it that begins at `offset`.
StateSlice in_box(std::string name, StateKind kind, const at::Tensor& view, bool primary, const Shape& global,
                  const Shape& offset);

// A slice that is the whole tensor.
StateSlice whole(std::string name, StateKind kind, const at::Tensor& view, bool primary);

}  // namespace mgt::model
