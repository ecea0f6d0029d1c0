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

// A tensor that the file must have.
struct Expected {
  std::string name;
  model::Shape shape;
  at::ScalarType dtype;
};

std::vector<Expected> expected_of(const std::vector<StateSlice>& weights) {
  std::vector<Expected> expected;
  for (const StateSlice& slice : weights) expected.push_back({slice.name, slice.global, slice.view.scalar_type()});
  return expected;
}

std::vector<Expected> expected_of(const model::Model& model) {
  std::vector<Expected> expected;
  for (const model::Block& block : model.blocks) {
    for (const model::TensorSpec& spec : block.parameters) expected.push_back({spec.name, spec.shape, at::kDouble});
    for (const model::TensorSpec& spec : block.buffers) {
      expected.push_back({spec.name, spec.shape, spec.integer ? at::kLong : at::kDouble});
    }
  }
  return expected;
}

// What is wrong with the file's tensor for it; empty when nothing is.
std::string difference(const Reader& reader, const Expected& wanted) {
  const auto found = reader.tensors().find(wanted.name);
  if (found == reader.tensors().end()) return wanted.name + " is missing";
  const TensorEntry& entry = found->second;
  if (entry.shape != wanted.shape) {
    return concat(wanted.name, " is ", shortened(model::shape_text(entry.shape)), " where the model has ",
                  model::shape_text(wanted.shape));
  }
  if (has_kind(entry, wanted.dtype)) return "";
  return concat(wanted.name, " is ", dtype_name(entry.dtype), " where the model has ", dtype_name(wanted.dtype));
}

void check_same_model(const Reader& reader, const std::vector<Expected>& expected) {
  std::vector<std::string> differences;
  std::set<std::string> names;
  for (const Expected& wanted : expected) {
    if (!names.insert(wanted.name).second) continue;  // of another replica
    const std::string what = difference(reader, wanted);
    if (!what.empty()) differences.push_back(what);
  }
  for (const auto& [name, entry] : reader.tensors()) {
    if (!names.contains(name)) differences.push_back(shortened(name) + " is not in the model");
  }
  if (!differences.empty()) throw_differences(reader.path(), differences);
}

at::Tensor read_finite(const Reader& reader, const std::string& name, at::ScalarType dtype) {
  at::Tensor tensor = reader.read(name).to(dtype);
  const at::Tensor wrong = at::isfinite(tensor).logical_not();
  if (wrong.any().item<bool>()) throw_not_finite(reader.path(), name, wrong);
  return tensor;
}

bool is_buffer(const StateSlice& slice) { return slice.kind == StateKind::buffer; }

bool has_buffer(const Reader& reader, const std::vector<StateSlice>& weights) {
  return std::ranges::any_of(
      weights, [&](const StateSlice& slice) { return is_buffer(slice) && reader.tensors().contains(slice.name); });
}

// All is read before anything is written, so that a damaged file leaves the state as it was.
void fill(const Reader& reader, const std::vector<StateSlice>& weights) {
  const at::NoGradGuard no_grad;
  std::map<std::string, at::Tensor> values;
  for (const StateSlice& slice : weights) {
    if (!values.contains(slice.name)) {
      values.emplace(slice.name, read_finite(reader, slice.name, slice.view.scalar_type()));
    }
  }
  for (const StateSlice& slice : weights) at::Tensor(slice.view).copy_(model::piece_of(values.at(slice.name), slice));
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
  const Reader reader(files, path);
  std::vector<StateSlice> weights = weights_of(state);
  if (buffers_optional && !has_buffer(reader, weights)) std::erase_if(weights, is_buffer);
  check_same_model(reader, expected_of(weights));
  fill(reader, weights);
}

void load_weights(const FileSystem& files, const std::string& path, const model::Model& model,
                  const std::vector<StateSlice>& state) {
  const Reader reader(files, path);
  check_same_model(reader, expected_of(model));
  fill(reader, weights_of(state));
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
