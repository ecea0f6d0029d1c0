#include "checkpoint/safetensors.h"

#include "torch_pch.h"

#include "core/error.h"
#include "core/product.h"
#include "core/text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cstring>
#include <limits>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

namespace mgt::checkpoint {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian and copied as it is");

using Json = nlohmann::json;

constexpr int64_t kLengthBytes = 8;
constexpr int64_t kMostHeaderBytes = 100'000'000;  // the format's own limit
constexpr std::size_t kMostNameBytes = 512;
constexpr int kDeepestLevel = 2;  // header, tensor, its lists
constexpr const char* kMetadata = "__metadata__";

struct Dtype {
  std::string_view name;
  at::ScalarType type;
};
constexpr std::array<Dtype, 10> kDtypes = {{{"F64", at::kDouble},
                                            {"F32", at::kFloat},
                                            {"F16", at::kHalf},
                                            {"BF16", at::kBFloat16},
                                            {"I64", at::kLong},
                                            {"I32", at::kInt},
                                            {"I16", at::kShort},
                                            {"I8", at::kChar},
                                            {"U8", at::kByte},
                                            {"BOOL", at::kBool}}};

[[noreturn]] void throw_no_file(const std::string& path, FileSystem::Kind kind) {
  if (kind == FileSystem::Kind::missing) throw CheckpointError(path + ": no such file");
  if (kind == FileSystem::Kind::directory) throw CheckpointError(path + ": a directory, not a safetensors file");
  throw CheckpointError(path + ": not a regular file");
}

[[noreturn]] void throw_damaged(const std::string& path, const std::string& what) {
  throw CheckpointError(concat(path, ": not a sound safetensors file: ", what, "; copy or save it again"));
}

[[noreturn]] void throw_tensor(const std::string& path, const std::string& name, const std::string& what) {
  throw_damaged(path, concat("tensor ", name, ": ", what));
}

[[noreturn]] void throw_pytorch_file(const std::string& path) {
  throw CheckpointError(path +
                        ": a pickled PyTorch file, which can run code and is never opened; "
                        "save it with safetensors.torch.save_file");
}

std::string read_bytes(const FileSystem& files, const std::string& path, int64_t offset, int64_t length) {
  std::string bytes;
  try {
    bytes = files.read(path, offset, length);
  } catch (const std::system_error& error) {
    throw CheckpointError(concat("cannot read weights: ", error.what()));
  }
  if (static_cast<int64_t>(bytes.size()) < length) throw_damaged(path, "it ends while it is read");
  return bytes;
}

int64_t file_size(const FileSystem& files, const std::string& path) {
  const FileSystem::Kind kind = files.kind(path);
  if (kind != FileSystem::Kind::regular) throw_no_file(path, kind);
  return files.size(path);
}

// A zip archive of pickles, or a bare pickle of protocol 2 to 5.
bool looks_pickled(std::string_view start) {
  return start.starts_with("PK\x03\x04") || (start[0] == '\x80' && start[1] >= 2 && start[1] <= 5);
}

int64_t header_length(const FileSystem& files, const std::string& path, int64_t size) {
  if (size < kLengthBytes) throw_damaged(path, concat(size, " bytes, too few for the header's length"));
  const std::string start = read_bytes(files, path, 0, kLengthBytes);
  uint64_t length = 0;
  std::memcpy(&length, start.data(), start.size());
  const auto most = static_cast<uint64_t>(std::min(kMostHeaderBytes, size - kLengthBytes));
  if (length > most && looks_pickled(start)) throw_pytorch_file(path);
  if (length > most) {
    throw_damaged(path, concat("the header's length of ", length, " bytes is more than the ", most, " possible"));
  }
  return static_cast<int64_t>(length);
}

// Follows the parser and refuses what the JSON library would accept: a name twice in an object, and deep nesting.
class HeaderGuard {
 public:
  explicit HeaderGuard(const std::string& path) : path_(path) {}

  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    const bool opens = event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (opens && depth > kDeepestLevel) throw_damaged(path_, "the header is nested too deeply");
    if (event == Json::parse_event_t::object_start) names_[static_cast<std::size_t>(depth)].clear();
    if (event == Json::parse_event_t::key) check_new(names_[static_cast<std::size_t>(depth - 1)], parsed);
    return true;
  }

 private:
  void check_new(std::set<std::string>& names, const Json& name) const {
    const bool is_new = names.insert(name.get<std::string>()).second;
    if (!is_new) throw_damaged(path_, concat("the header has the name ", shortened(name.dump()), " twice"));
  }

  const std::string& path_;
  std::array<std::set<std::string>, kDeepestLevel + 1> names_;  // of the object that is open at each level
};

Json parse_header(const std::string& text, const std::string& path) {
  try {
    Json header = Json::parse(text, HeaderGuard(path));
    if (!header.is_object()) throw_damaged(path, "the header is not a JSON object");
    return header;
  } catch (const Json::exception& error) {
    throw_damaged(path, concat("the header is not JSON (", shortened(error.what(), 120), ")"));
  }
}

// Names appear in messages, so they must be fit for one line.
void check_name(const std::string& name, const std::string& path) {
  const bool printable = std::ranges::none_of(name, [](unsigned char byte) { return std::iscntrl(byte) != 0; });
  if (name.empty() || name.size() > kMostNameBytes || !printable) {
    throw_damaged(path, "a tensor's name is empty, too long or has control characters");
  }
}

at::ScalarType dtype_of(const std::string& name, const Json& tensor, const std::string& path) {
  const auto known = std::ranges::find_if(kDtypes, [&](const Dtype& dtype) { return tensor["dtype"] == dtype.name; });
  if (known == kDtypes.end()) {
    throw_tensor(path, name, concat("unknown dtype ", shortened(tensor["dtype"].dump(), 20)));
  }
  return known->type;
}

std::vector<int64_t> natural_numbers(const std::string& name, const Json& tensor, const char* key,
                                     const std::string& path) {
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  const Json& list = tensor[key];
  const bool sound = list.is_array() && std::ranges::all_of(list, [](const Json& number) {
                       return number.is_number_unsigned() && number.get<uint64_t>() <= kMost;
                     });
  if (!sound) throw_tensor(path, name, concat(key, " is not a list of whole numbers from 0"));
  return list.get<std::vector<int64_t>>();
}

void check_bytes(const TensorEntry& entry, int64_t data_bytes, const std::string& path) {
  if (entry.end < entry.begin) throw_tensor(path, entry.name, "it ends before it begins");
  if (entry.end > data_bytes) {
    throw_tensor(path, entry.name, concat("it ends at byte ", entry.end, " of the data, which has ", data_bytes));
  }
  std::vector<int64_t> factors = entry.shape;
  factors.push_back(static_cast<int64_t>(c10::elementSize(entry.dtype)));
  if (checked_product(factors) != entry.end - entry.begin) {
    throw_tensor(path, entry.name,
                 concat("shape ", shortened(model::shape_text(entry.shape)), " in ", dtype_name(entry.dtype),
                        " does not fit its ", entry.end - entry.begin, " bytes"));
  }
}

TensorEntry read_entry(const std::string& name, const Json& tensor, int64_t data_bytes, const std::string& path) {
  check_name(name, path);
  for (const char* const key : {"dtype", "shape", "data_offsets"}) {
    if (!tensor.is_object() || !tensor.contains(key)) throw_tensor(path, name, concat("the header lacks its ", key));
  }
  const std::vector<int64_t> offsets = natural_numbers(name, tensor, "data_offsets", path);
  if (offsets.size() != 2) throw_tensor(path, name, "data_offsets is not a pair");
  TensorEntry entry{.name = name,
                    .dtype = dtype_of(name, tensor, path),
                    .shape = natural_numbers(name, tensor, "shape", path),
                    .begin = offsets[0],
                    .end = offsets[1]};
  check_bytes(entry, data_bytes, path);
  return entry;
}

// Each byte of the data belongs to exactly one tensor.
void check_layout(const std::map<std::string, TensorEntry>& tensors, int64_t data_bytes, const std::string& path) {
  std::vector<const TensorEntry*> in_order;
  in_order.reserve(tensors.size());
  for (const auto& [name, entry] : tensors) in_order.push_back(&entry);
  std::ranges::sort(in_order, {}, [](const TensorEntry* entry) { return std::pair(entry->begin, entry->end); });
  int64_t covered = 0;
  for (const TensorEntry* entry : in_order) {
    if (entry->begin < covered) throw_tensor(path, entry->name, "it overlaps the tensor before it");
    if (entry->begin > covered) {
      throw_tensor(path, entry->name, concat(entry->begin - covered, " bytes before it belong to no tensor"));
    }
    covered = entry->end;
  }
  if (covered < data_bytes) throw_damaged(path, concat(data_bytes - covered, " bytes after the last tensor"));
}

// Large elements first, so that each tensor is aligned to its own elements.
std::vector<std::pair<std::string, at::Tensor>> in_file_order(const std::map<std::string, at::Tensor>& tensors) {
  std::vector<std::pair<std::string, at::Tensor>> ordered(tensors.begin(), tensors.end());
  std::ranges::stable_sort(ordered, std::ranges::greater{}, [](const auto& named) { return named.second.itemsize(); });
  return ordered;
}

std::string with_length(std::string header) {
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const uint64_t length = header.size();
  std::string bytes(kLengthBytes, '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes + header;
}

}  // namespace

std::string dtype_name(at::ScalarType dtype) {
  const auto known = std::ranges::find(kDtypes, dtype, &Dtype::type);
  require(known != kDtypes.end(), concat("safetensors has a name for ", c10::toString(dtype)));
  return std::string(known->name);
}

Reader::Reader(const FileSystem& files, std::string path) : files_(files), path_(std::move(path)) {
  const int64_t size = file_size(files_, path_);
  const int64_t length = header_length(files_, path_, size);
  data_start_ = kLengthBytes + length;
  const int64_t data_bytes = size - data_start_;
  const Json header = parse_header(read_bytes(files_, path_, kLengthBytes, length), path_);
  for (const auto& [name, tensor] : header.items()) {
    if (name != kMetadata) tensors_.emplace(name, read_entry(name, tensor, data_bytes, path_));
  }
  check_layout(tensors_, data_bytes, path_);
}

at::Tensor Reader::read(const std::string& name) const {
  const auto found = tensors_.find(name);
  require(found != tensors_.end(), "only tensors of the file are read: " + name);
  const TensorEntry& entry = found->second;
  const std::string bytes = read_bytes(files_, path_, data_start_ + entry.begin, entry.end - entry.begin);
  at::Tensor tensor = at::empty(entry.shape, entry.dtype);
  if (!bytes.empty()) std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

void write_safetensors(FileSystem& files, const std::string& path, const std::map<std::string, at::Tensor>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  std::string data;
  for (const auto& [name, tensor] : in_file_order(tensors)) {
    const at::Tensor content = tensor.detach().cpu().contiguous();
    const std::size_t begin = data.size();
    if (content.numel() > 0) data.append(static_cast<const char*>(content.const_data_ptr()), content.nbytes());
    header[name] = {{"dtype", dtype_name(content.scalar_type())},
                    {"shape", content.sizes().vec()},
                    {"data_offsets", {begin, data.size()}}};
  }
  try {
    files.write_whole(path, with_length(header.dump()) + data);
  } catch (const std::system_error& error) {
    throw CheckpointError(concat("cannot write weights: ", error.what()));
  }
}

}  // namespace mgt::checkpoint
