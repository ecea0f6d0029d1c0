#include "data/dataset.h"

#include "torch_pch.h"

#include "core/sha256.h"

#include <algorithm>

namespace mgt::data {
namespace {

at::Tensor index_tensor(std::span<const int64_t> rows, at::Device device) {
  return at::tensor(at::ArrayRef<int64_t>(rows.data(), rows.size()), at::kLong).to(device);
}

void add_content(Sha256& hash, const at::Tensor& tensor) {
  const at::Tensor content = tensor.contiguous().cpu();
  hash.update(content.const_data_ptr(), content.nbytes());
}

}  // namespace

Batch gather(const Dataset& dataset, std::span<const int64_t> rows, at::ScalarType dtype) {
  const at::NoGradGuard no_grad;
  const at::Tensor index = index_tensor(rows, dataset.inputs.device());
  const bool pixels = dataset.inputs.scalar_type() == at::kByte;
  const bool labels = dataset.classes > 0;
  at::Tensor inputs = dataset.inputs.index_select(0, index).to(dtype);
  if (pixels) inputs.div_(255);
  at::Tensor targets = dataset.targets.index_select(0, index);
  return {.inputs = inputs, .targets = labels ? targets : targets.to(dtype)};
}

Batch slice(const Batch& batch, int64_t begin, int64_t end, at::Device device) {
  return {.inputs = batch.inputs.narrow(0, begin, end - begin).to(device),
          .targets = batch.targets.narrow(0, begin, end - begin).to(device)};
}

Dataset first_rows(const Dataset& dataset, int64_t count) {
  if (count >= dataset.size()) return dataset;
  Dataset first = dataset;
  // Copied, so that the memory of the other rows is given back.
  first.inputs = dataset.inputs.narrow(0, 0, count).clone();
  first.targets = dataset.targets.narrow(0, 0, count).clone();
  return first;
}

Dataset to_device(const Dataset& dataset, at::Device device) {
  Dataset resident = dataset;
  resident.inputs = dataset.inputs.to(device);
  resident.targets = dataset.targets.to(device);
  return resident;
}

std::string content_sha256(const Dataset& dataset) {
  Sha256 hash;
  add_content(hash, dataset.inputs);
  add_content(hash, dataset.targets);
  return hash.hex();
}

std::string content_sha256(const Splits& splits) {
  return sha256_hex(content_sha256(splits.train) + (splits.test ? content_sha256(*splits.test) : ""));
}

}  // namespace mgt::data
