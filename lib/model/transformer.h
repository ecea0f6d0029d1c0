// What a vision Transformer is made of besides linear layers, as blocks (Dosovitskiy et al., "An image is worth 16x16
// words", 2020). Tensors are named as torchvision's `vision_transformer` names them. Pure functions that return values.
// Shapes in comments: N samples, T tokens, D the width of a token.
#pragma once

#include "model/layers.h"

#include <string>

namespace mgt::model {

Block layer_norm(const std::string& name, int64_t width);  // over the last dimension; eps 1e-6
Block gelu();                                              // x times the normal distribution function of x, exactly
Block first_token();                                       // (N, T, D) -> (N, D)

// x + main(x)
Block skip(const std::string& name, Block main);

struct Patches {
  Shape image;  // (C, H, W)
  int64_t patch = 1;
  int64_t width = 1;
};

// (N, C, H, W) -> (N, T, D): a class token, then a token for each patch (row by row), all plus learned positions.
Block patch_embedding(const Patches& shape, const WeightInit& init);

// Every token looks at all tokens of its sample, `heads` times in parallel: (N, T, D) -> (N, T, D). The projections to
// queries, keys and values are tensors of their own, in which a head is a range of rows, and in the projection back a
// range of columns: the heads of a tensor-parallel rank are one slice of each.
Block self_attention(const std::string& name, int64_t width, int64_t heads, const WeightInit& init);

}  // namespace mgt::model
