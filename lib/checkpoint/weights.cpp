#include "checkpoint/weights.h"

#include "torch_pch.h"

#include "core/error.h"
#include "core/sha256.h"
#include "core/text.h"

#include <algorithm>
#include <map>
#include <set>

namespace mgt::checkpoint {
namespace {

using model::StateKind;
using model::StateSlice;

constexpr std::size_t kMostDifferencesShown = 4;

bool is_whole(const StateSlice& slice) { return !slice.flat && slice.box.extent == slice.global; }

bool has_kind(const TensorEntry& entry, at::ScalarType wanted) {
  return c10::isFloatingType(wanted) ? c10::isFloatingType(entry.dtype) : entry.dtype == wanted;
}

[[noreturn]] void throw_differences(const std::string& path, const std::vector<std::string>& differences) {
  const std::size_t shown = std::min(differences.size(), kMostDifferencesShown);
  const std::vector<std::string> first(differences.begin(), differences.begin() + static_cast<std::ptrdiff_t>(shown));
  const std::string more = shown < differences.size() ? concat("; and ", differences.size() - shown, " more") : "";
  throw CheckpointError(concat(path, ": weights of another model: ", join(first, "; "), more,
                               "; give the config that they were made with"));
}

[[noreturn]] void throw_not_finite(const std::string& path, const std::string& name, const at::Tensor& wrong) {
  const int64_t position = wrong.flatten().nonzero()[0].item<int64_t>();
  throw CheckpointError(concat(path, ": tensor ", name, ": NaN or infinite at position ", position, " (",
                               wrong.sum().item<int64_t>(), " of ", wrong.numel(), " values)"));
}

// The slices that a file of weights fills.
std::vector<StateSlice> weights_of(const std::vector<StateSlice>& state) {
  std::vector<StateSlice> weights;
  std::ranges::copy_if(state, std::back_inserter(weights),
                       [](const StateSlice& slice) { return slice.kind != StateKind::optimizer; });
  return weights;
}

// What is wrong with the file's tensor for this slice; empty when nothing is.
std::string difference(const Reader& reader, const StateSlice& slice) {
  const auto found = reader.tensors().find(slice.name);
  if (found == reader.tensors().end()) return slice.name + " is missing";
  const TensorEntry& entry = found->second;
  if (entry.shape != slice.global) {
    return concat(slice.name, " is ", shortened(model::shape_text(entry.shape)), " where the model has ",
                  model::shape_text(slice.global));
  }
  const at::ScalarType wanted = slice.view.scalar_type();
  if (has_kind(entry, wanted)) return "";
  return concat(slice.name, " is ", dtype_name(entry.dtype), " where the model has ", dtype_name(wanted));
}

void check_same_model(const Reader& reader, const std::vector<StateSlice>& weights) {
  std::vector<std::string> differences;
  std::set<std::string> expected;
  for (const StateSlice& slice : weights) {
    if (!expected.insert(slice.name).second) continue;
    const std::string what = difference(reader, slice);
    if (!what.empty()) differences.push_back(what);
  }
  for (const auto& [name, entry] : reader.tensors()) {
    if (!expected.contains(name)) differences.push_back(shortened(name) + " is not in the model");
  }
  if (!differences.empty()) throw_differences(reader.path(), differences);
}

at::Tensor read_finite(const Reader& reader, const std::string& name, at::ScalarType dtype) {
  at::Tensor tensor = reader.read(name).to(dtype);
  const at::Tensor wrong = at::isfinite(tensor).logical_not();
  if (wrong.any().item<bool>()) throw_not_finite(reader.path(), name, wrong);
  return tensor;
}

// The part of the whole tensor that the slice holds, in the form of its view.
at::Tensor part_of(at::Tensor tensor, const StateSlice& slice) {
  for (std::size_t dim = 0; dim < slice.global.size(); ++dim) {
    tensor = tensor.narrow(static_cast<int64_t>(dim), slice.box.offset[dim], slice.box.extent[dim]);
  }
  if (slice.flat) tensor = tensor.flatten().narrow(0, slice.flat->begin, slice.flat->size());
  return tensor.reshape(slice.view.sizes());
}

// By name; where replicas share one, the primary.
std::map<std::string, StateSlice> whole_weights(const std::vector<StateSlice>& weights) {
  std::map<std::string, StateSlice> by_name;
  for (const StateSlice& slice : weights) {
    require(is_whole(slice), slice.name + " must be gathered before it is saved or hashed");
    if (slice.primary || !by_name.contains(slice.name)) by_name.insert_or_assign(slice.name, slice);
  }
  return by_name;
}

}  // namespace

void load_weights(const FileSystem& files, const std::string& path, const std::vector<StateSlice>& state,
                  bool buffers_optional) {
  const at::NoGradGuard no_grad;
  const Reader reader(files, path);
  std::vector<StateSlice> weights = weights_of(state);
  const auto is_buffer = [](const StateSlice& slice) { return slice.kind == StateKind::buffer; };
  const bool has_buffer = std::ranges::any_of(
      weights, [&](const StateSlice& slice) { return is_buffer(slice) && reader.tensors().contains(slice.name); });
  if (buffers_optional && !has_buffer) std::erase_if(weights, is_buffer);
  check_same_model(reader, weights);

  // All is read before anything is written, so that a damaged file leaves the state as it was.
  std::map<std::string, at::Tensor> values;
  for (const StateSlice& slice : weights) {
    if (!values.contains(slice.name)) {
      values.emplace(slice.name, read_finite(reader, slice.name, slice.view.scalar_type()));
    }
  }
  for (StateSlice& slice : weights) slice.view.copy_(part_of(values.at(slice.name), slice));
}

void save_weights(FileSystem& files, const std::string& path, const std::vector<StateSlice>& state) {
  std::vector<StateSlice> weights = weights_of(state);
  std::erase_if(weights, [](const StateSlice& slice) { return !slice.primary; });
  std::map<std::string, at::Tensor> tensors;
  for (const auto& [name, slice] : whole_weights(weights)) tensors.emplace(name, slice.view);
  write_safetensors(files, path, tensors);
}

WeightsHash hash_weights(const std::vector<StateSlice>& state) {
  WeightsHash hash;
  Sha256 all;
  for (const auto& [name, slice] : whole_weights(weights_of(state))) {
    const at::Tensor content = slice.view.detach().cpu().contiguous();
    Sha256 own;
    own.update(content.const_data_ptr(), content.nbytes());
    hash.tensors.emplace_back(name, own.hex());
    const std::string line = concat(name, " ", dtype_name(content.scalar_type()), " ", model::shape_text(slice.global),
                                    " ", hash.tensors.back().second, "\n");
    all.update(line.data(), line.size());
  }
  hash.sha256 = all.hex();
  return hash;
}

}  // namespace mgt::checkpoint
