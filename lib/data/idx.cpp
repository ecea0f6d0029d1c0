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
#include <span>
#include <sstream>
#include <string_view>
#include <vector>

namespace mgt::data {
namespace {

constexpr uint32_t kUnsignedByte = 0x08;  // the only type code in use for images and labels

// What a file should hold.
struct Content {
  std::string_view name;
  int least_dims;
  int most_dims;
  std::string_view dims_text;
};
constexpr Content kImages{"images", 3, 4, "3 or 4"};
constexpr Content kLabels{"labels", 1, 1, "1"};

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

[[noreturn]] void fail_size(const ByteSource& source, std::span<const int64_t> sizes, const std::string& found) {
  source.fail("the header promises ", promise_text(sizes), ", found ", found, "; fetch the file again");
}

// The big-endian word at byte `at` of the header.
uint32_t header_word(ByteSource& source, int64_t at) {
  std::array<uint8_t, 4> bytes{};
  const int64_t found = source.read(bytes);
  if (found < 4) source.fail("ends inside the IDX header, after ", at + found, " bytes; fetch the file again");
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
}

// The number of sizes that follow the magic number.
int read_dims(ByteSource& source, const Content& content) {
  const uint32_t magic = header_word(source, 0);
  const int dims = static_cast<int>(magic & 0xff);
  if (magic >> 16 != 0) {
    source.fail("not an IDX file: magic number ", hexadecimal(magic), " does not begin with 0x0000");
  }
  if (magic >> 8 != kUnsignedByte) {
    source.fail("magic number ", hexadecimal(magic),
                " is IDX of another type; only unsigned bytes (0x08 in the third byte) can be read");
  }
  if (dims < content.least_dims || dims > content.most_dims) {
    source.fail("magic number ", magic, " stands for ", dims, " dimensions where ", content.name, " have ",
                content.dims_text, "; is it the right file?");
  }
  return dims;
}

// The sizes that the header gives; none is zero.
std::vector<int64_t> read_sizes(ByteSource& source, const Content& content) {
  const int dims = read_dims(source, content);
  std::vector<int64_t> sizes;
  for (int dim = 0; dim < dims; ++dim) sizes.push_back(header_word(source, 4 + 4 * dim));
  if (std::ranges::count(sizes, 0) > 0) source.fail("no ", content.name, ": the header says ", join(sizes, " x "));
  return sizes;
}

// The bytes that the sizes promise, once it is known that the file can hold them.
int64_t plausible_bytes(const ByteSource& source, std::span<const int64_t> sizes) {
  const int64_t header_bytes = 4 + 4 * static_cast<int64_t>(sizes.size());
  const int64_t room = source.most() - header_bytes;
  const std::optional<int64_t> promised = checked_product(sizes);
  if (source.most_is_exact() && promised != room) fail_size(source, sizes, concat(room));
  if (!promised || *promised > room) fail_size(source, sizes, concat("a gzip file with room for at most ", room));
  return *promised;
}

at::Tensor read_values(const FileSystem& files, const std::string& path, const Content& content) {
  ByteSource source(files, path);
  const std::vector<int64_t> sizes = read_sizes(source, content);
  const int64_t promised = plausible_bytes(source, sizes);
  at::Tensor values = at::empty(sizes, at::kByte);
  const int64_t found = source.read({values.mutable_data_ptr<uint8_t>(), static_cast<std::size_t>(promised)});
  if (found < promised) fail_size(source, sizes, concat(found));
  uint8_t surplus = 0;
  if (source.read({&surplus, 1}) > 0) fail_size(source, sizes, "more");
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
  if (wrong != values.end()) {
    throw DataError(concat(path, ": label ", int{*wrong}, " of sample ", wrong - values.begin(), " is not in 0 to ",
                           classes - 1, "; set data.classes if there are more classes"));
  }
  return labels.to(at::kLong);  // (N)
}

}  // namespace

Dataset read_idx(const FileSystem& files, const IdxPaths& paths, int64_t classes) {
  Dataset dataset{.name = paths.images,
                  .inputs = read_images(files, paths.images),
                  .targets = read_labels(files, paths.labels, classes),
                  .classes = classes};
  if (dataset.targets.size(0) != dataset.size()) {
    throw DataError(concat(paths.images, ": ", dataset.size(), " images, but ", dataset.targets.size(0), " labels in ",
                           paths.labels, "; give files that belong together"));
  }
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
