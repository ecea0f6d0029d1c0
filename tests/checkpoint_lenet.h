// The state of the small LeNet (channels 4 and 6, hidden 16) that the cases' weights belong to, made by hand.
#pragma once

#include "torch_pch.h"

#include "core/error.h"
#include "model/state.h"
#include "test.h"

#include <string>
#include <vector>

namespace mgt::test {

// One flat tensor for all parameters, as strategies have it; each slice is a view into it.
struct SmallLenet {
  explicit SmallLenet(at::ScalarType dtype = at::kDouble) : flat(at::zeros({2368}, dtype)) {
    add("conv1.weight", {4, 1, 3, 3});
    add("conv1.bias", {4});
    add("conv2.weight", {6, 4, 5, 5});
    add("conv2.bias", {6});
    add("fc1.weight", {16, 96});
    add("fc1.bias", {16});
    add("fc2.weight", {10, 16});
    add("fc2.bias", {10});
  }

  const at::Tensor& view(const std::string& name) const {
    for (const model::StateSlice& slice : state) {
      if (slice.name == name) return slice.view;
    }
    throw InternalError("no tensor " + name);
  }

  at::Tensor flat;
  std::vector<model::StateSlice> state;

 private:
  void add(const std::string& name, const model::Shape& shape) {
    const int64_t count = model::elements(shape);
    const at::Tensor slice = flat.narrow(0, used_, count).view(shape);
    state.push_back(model::whole(name, model::StateKind::parameter, slice, true));
    used_ += count;
  }

  int64_t used_ = 0;
};

}  // namespace mgt::test
