// A data set in memory and the batches cut from it. One resident tensor for all samples, gathered and converted a batch
// at a time; there is no per-sample path. Values; a loaded Dataset is read-only and shared by all ranks of a process.
// Of LibTorch this header sees only ATen/core/Tensor.h, the value type.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mgt::data {

struct Dataset {
  std::string name;    // the file of the inputs, or "synthetic": for messages
  at::Tensor inputs;   // uint8 (N, C, H, W), or float64 (N, features)
  at::Tensor targets;  // int64 (N) in [0, classes), or float64 (N, outputs) when classes is 0
  int64_t classes = 0;

  int64_t size() const { return inputs.defined() ? inputs.size(0) : 0; }
};

struct Splits {
  Dataset train;
  std::optional<Dataset> test;                // absent: no evaluation
  std::optional<double> bayes_accuracy = {};  // the best that any classifier can reach, where it is known
};

struct Batch {
  at::Tensor inputs;   // (n, C, H, W) or (n, features), in the compute dtype; uint8 pixels become pixel / 255
  at::Tensor targets;  // int64 (n), or (n, outputs) in the compute dtype
  int64_t size() const { return inputs.size(0); }
};

// The batch of these rows, on the device of the data set. `rows` may be empty: then n is 0.
Batch gather(const Dataset& dataset, std::span<const int64_t> rows, at::ScalarType dtype);

// The rows [begin, end) of a batch on `device`; a copy only where the device differs.
Batch slice(const Batch& batch, int64_t begin, int64_t end, at::Device device);

// The first `count` rows; count >= 1. More than there are: all.
Dataset first_rows(const Dataset& dataset, int64_t count);

// The same data set resident on `device`.
Dataset to_device(const Dataset& dataset, at::Device device);

// SHA-256 over inputs and targets as they lie in memory; of splits: over that of the training and of the test set.
std::string content_sha256(const Dataset& dataset);
std::string content_sha256(const Splits& splits);

}  // namespace mgt::data
