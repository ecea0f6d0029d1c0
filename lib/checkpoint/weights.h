// Weights in and out of a strategy's state: strict loading of `init: FILE.safetensors`, saving of the trained weights,
// and their hash. Works on StateSlices alone, so it knows no strategy.
#pragma once

#include "checkpoint/safetensors.h"
#include "checkpoint/weights_hash.h"
#include "model/model.h"

#include <string>
#include <vector>

namespace mgt::checkpoint {

// Fills every parameter and buffer slice from the file. The sets of names must be equal, shapes equal, floating dtypes
// (converted to the slice's dtype; I64 for integer buffers), values finite. A file without any buffer is accepted for
// a model with buffers only if `buffers_optional`. CheckpointError names file and tensor, and both shapes.
void load_weights(const FileSystem& files, const std::string& path, const std::vector<model::StateSlice>& state,
                  bool buffers_optional = false);

// The same where `state` is a part of the model's: the file must have all of the model's tensors.
void load_weights(const FileSystem& files, const std::string& path, const model::Model& model,
                  const std::vector<model::StateSlice>& state);

// Parameters and buffers of the slices that are primary, which must be whole (gather.h), as one safetensors file.
void save_weights(FileSystem& files, const std::string& path, const std::vector<model::StateSlice>& state);

// Over names, shapes, dtypes and bytes of all parameters and buffers, which must be whole.
WeightsHash hash_weights(const std::vector<model::StateSlice>& state);

}  // namespace mgt::checkpoint
