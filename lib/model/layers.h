// The layers that models are made of, as blocks, and the two ways to join blocks. Pure functions that return values.
// Shapes in comments: N samples, C channels, H and W pixels.
#pragma once

#include "model/model.h"

#include <string>
#include <vector>

namespace mgt::model {

struct Conv {
  int64_t in = 1;
  int64_t out = 1;
  int64_t kernel = 3;
  int64_t stride = 1;
  int64_t padding = 0;
  bool bias = true;
};

// How weights start; biases of `normal` start at 0. `fan_in` is PyTorch's default for Conv2d and Linear: weight and
// bias uniform in +-1/sqrt(inputs of one output).
struct WeightInit {
  enum class Kind { normal, fan_in };
  Kind kind = Kind::fan_in;
  double deviation = 0;  // normal
};

Block conv2d(const std::string& name, const Conv& shape, const WeightInit& init);  // (N, in, H, W) -> (N, out, H', W')
// (N, ..., in) -> (N, ..., out)
Block linear(const std::string& name, int64_t in, int64_t out, const WeightInit& init);
Block batch_norm(const std::string& name, int64_t channels);  // eps 1e-5, momentum 0.1, as PyTorch's BatchNorm2d
Block relu();
Block avg_pool(int64_t kernel, int64_t stride);
Block max_pool(int64_t kernel, int64_t stride, int64_t padding = 0);
Block global_avg_pool();  // (N, C, H, W) -> (N, C)
Block flatten();          // (N, ...) -> (N, features)

// One after another; `name` is what reports call the whole.
Block sequence(const std::string& name, std::vector<Block> layers);

// relu(main(x) + shortcut(x)) (He et al., "Deep residual learning", 2015). An empty sequence is the identity.
Block residual(const std::string& name, Block main, Block shortcut);

}  // namespace mgt::model
