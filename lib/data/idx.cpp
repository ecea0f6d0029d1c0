#include "data/idx.h"

#include "torch_pch.h"

#include "core/error.h"
#include "core/product.h"
#include "core/text.h"
#include "data/byte_source.h"

#include <algorithm>
#include <array>
#include <future>
#include <iomanip>
#include <memory>
#include <span>
#include <sstream>
#include <string_view>
#include <vector>

namespace mgt::data {
namespace {

constexpr uint8_t kUnsignedByte = 0x08;  // the only type code in use for images and labels

// What a file should hold.
struct Content {
  std::string_view name;
  int least_dims;
  int most_dims;
};
constexpr Content kImages{"images", 3, 4};
constexpr Content kLabels{"labels", 1, 1};

uint32_t big_endian(std::span<const uint8_t, 4> bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
}

std::string hexadecimal(uint32_t value) {
  std::ostringstream out;
  out << "0x" << std::hex << std::setw(8) << std::setfill('0') << value;
  return out.str();
}

// "3 x 28 x 28 = 2352 bytes"
std::string promise_text(std::span<const int64_t> sizes) {
  const std::string factors = join(sizes, " x ");
  const std::optional<int64_t> product = checked_product(sizes);
  if (!product) return factors + " bytes (more than 2^63)";
  return sizes.size() == 1 ? factors + " bytes" : concat(factors, " = ", *product, " bytes");
}

[[noreturn]] void throw_short_header(const std::string& path, int64_t found) {
  throw DataError(concat(path, ": ends inside the IDX header, after ", found, " bytes; fetch the file again"));
}

[[noreturn]] void throw_not_idx(const std::string& path, uint32_t magic) {
  throw DataError(concat(path, ": not an IDX file: magic number ", hexadecimal(magic), " does not begin with 0x0000"));
}

[[noreturn]] void throw_type(const std::string& path, uint32_t magic) {
  throw DataError(concat(path, ": magic number ", hexadecimal(magic),
                         " is IDX of another type; only unsigned bytes (0x08 in the third byte) can be read"));
}

[[noreturn]] void throw_dims(const std::string& path, uint32_t magic, const Content& content) {
  const std::string wanted = content.least_dims == content.most_dims
                                 ? concat(content.least_dims)
                                 : concat(content.least_dims, " or ", content.most_dims);
  throw DataError(concat(path, ": magic number ", magic, " stands for ", magic & 0xff, " dimensions where ",
                         content.name, " have ", wanted, "; is it the right file?"));
}

[[noreturn]] void throw_nothing(const std::string& path, std::span<const int64_t> sizes, const Content& content) {
  throw DataError(concat(path, ": no ", content.name, ": the header says ", join(sizes, " x ")));
}

[[noreturn]] void throw_size(const std::string& path, std::span<const int64_t> sizes, const std::string& found) {
  throw DataError(
      concat(path, ": the header promises ", promise_text(sizes), ", found ", found, "; fetch the file again"));
}

[[noreturn]] void throw_label(const std::string& path, int label, int64_t sample, int64_t classes) {
  throw DataError(concat(path, ": label ", label, " of sample ", sample, " is not in 0 to ", classes - 1,
                         "; set data.classes if there are more classes"));
}

[[noreturn]] void throw_counts(const IdxPaths& paths, int64_t images, int64_t labels) {
  throw DataError(concat(paths.images, ": ", images, " images, but ", labels, " labels in ", paths.labels,
                         "; give files that belong together"));
}

// The sizes that the header gives; none is zero.
std::vector<int64_t> read_header(ByteSource& source, const std::string& path, const Content& content) {
  std::array<uint8_t, 4> word{};
  const int64_t magic_bytes = source.read(word);
  if (magic_bytes < 4) throw_short_header(path, magic_bytes);
  const uint32_t magic = big_endian(word);
  if (magic >> 16 != 0) throw_not_idx(path, magic);
  if (word[2] != kUnsignedByte) throw_type(path, magic);
  const int dims = word[3];
  if (dims < content.least_dims || dims > content.most_dims) throw_dims(path, magic, content);

  std::vector<int64_t> sizes;
  for (int dim = 0; dim < dims; ++dim) {
    const int64_t found = source.read(word);
    if (found < 4) throw_short_header(path, 4 + 4 * dim + found);
    sizes.push_back(big_endian(word));
  }
  if (std::ranges::count(sizes, 0) > 0) throw_nothing(path, sizes, content);
  return sizes;
}

// The bytes that the sizes promise, once it is known that the file can hold them.
int64_t plausible_bytes(const ByteSource& source, const std::string& path, std::span<const int64_t> sizes) {
  const int64_t header_bytes = 4 + 4 * static_cast<int64_t>(sizes.size());
  const int64_t room = source.most() - header_bytes;
  const std::optional<int64_t> promised = checked_product(sizes);
  if (source.most_is_exact() && promised != room) throw_size(path, sizes, concat(room));
  if (!promised || *promised > room) throw_size(path, sizes, concat("a gzip file with room for at most ", room));
  return *promised;
}

at::Tensor read_values(const FileSystem& files, const std::string& path, const Content& content) {
  const std::unique_ptr<ByteSource> source = open_bytes(files, path);
  const std::vector<int64_t> sizes = read_header(*source, path, content);
  const int64_t promised = plausible_bytes(*source, path, sizes);
  at::Tensor values = at::empty(sizes, at::kByte);
  const int64_t found = source->read({values.mutable_data_ptr<uint8_t>(), static_cast<std::size_t>(promised)});
  if (found < promised) throw_size(path, sizes, concat(found));
  uint8_t surplus = 0;
  if (source->read({&surplus, 1}) > 0) throw_size(path, sizes, "more");
  return values;
}

at::Tensor read_images(const FileSystem& files, const std::string& path) {
  const at::Tensor images = read_values(files, path, kImages);
  return images.dim() == 3 ? images.unsqueeze(1) : images;  // (N, C, H, W)
}

at::Tensor read_labels(const FileSystem& files, const std::string& path, int64_t classes) {
  const at::Tensor labels = read_values(files, path, kLabels);
  const std::span<const uint8_t> values(labels.const_data_ptr<uint8_t>(), static_cast<std::size_t>(labels.numel()));
  const auto wrong = std::ranges::find_if(values, [classes](uint8_t label) { return label >= classes; });
  if (wrong != values.end()) throw_label(path, *wrong, wrong - values.begin(), classes);
  return labels.to(at::kLong);  // (N)
}

}  // namespace

Dataset read_idx(const FileSystem& files, const IdxPaths& paths, int64_t classes) {
  Dataset dataset{.name = paths.images,
                  .inputs = read_images(files, paths.images),
                  .targets = read_labels(files, paths.labels, classes),
                  .classes = classes};
  if (dataset.targets.size(0) != dataset.size()) throw_counts(paths, dataset.size(), dataset.targets.size(0));
  return dataset;
}

Splits read_idx(const FileSystem& files, const IdxPaths& train, const std::optional<IdxPaths>& test, int64_t classes) {
  if (!test) return {.train = read_idx(files, train, classes), .test = {}};
  std::future<Dataset> test_set =
      std::async(std::launch::async, [&files, &test, classes] { return read_idx(files, *test, classes); });
  Dataset train_set = read_idx(files, train, classes);
  return {.train = std::move(train_set), .test = test_set.get()};
}

}  // namespace mgt::data
