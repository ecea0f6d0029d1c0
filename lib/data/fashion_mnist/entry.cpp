// Fashion-MNIST: 60,000 and 10,000 grey pictures of clothes, 28 x 28, ten classes.
#include "core/error.h"
#include "core/text.h"
#include "data/entry.h"
#include "data/idx.h"

#include <array>

namespace mgt::data::fashion_mnist {
namespace {

constexpr int64_t kClasses = 10;
constexpr const char* kDebianFolder = "/usr/share/datasets/fashion-mnist";  // of the package dataset-fashion-mnist
constexpr std::array<const char*, 4> kFiles = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                               "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

std::vector<std::string> folders(const config::Section& section) {
  if (section.has("dir")) return {section.text("dir")};
  return {kDebianFolder, cache_folder() + "/data/fashion-mnist"};
}

// The path of the file, plain or gzip; empty when the folder has neither.
std::string find_file(const FileSystem& files, const std::string& folder, const std::string& name) {
  const std::string plain = folder + "/" + name;
  for (const std::string& path : {plain, plain + ".gz"}) {
    if (files.kind(path) != FileSystem::Kind::missing) return path;
  }
  return "";
}

[[noreturn]] void throw_not_found(const std::vector<std::string>& searched) {
  throw DataError(concat("Fashion-MNIST not found: ", join(searched, "; "),
                         "; run `apt-get install dataset-fashion-mnist` or `scripts/fetch_data`, or set data.dir"));
}

// The paths of `kFiles` in the first folder that has all of them.
std::array<std::string, 4> find_files(const FileSystem& files, const std::vector<std::string>& candidates) {
  std::vector<std::string> searched;
  for (const std::string& folder : candidates) {
    std::array<std::string, 4> paths;
    std::string missing;
    for (std::size_t i = 0; i < kFiles.size() && missing.empty(); ++i) {
      paths[i] = find_file(files, folder, kFiles[i]);
      if (paths[i].empty()) missing = kFiles[i];
    }
    if (missing.empty()) return paths;
    searched.push_back(concat(folder, " has no ", missing, "[.gz]"));
  }
  throw_not_found(searched);
}

Splits load(const config::Section& section, const LoadContext& context) {
  const auto [images, labels, test_images, test_labels] = find_files(context.files, folders(section));
  return read_idx(context.files, {images, labels}, IdxPaths{test_images, test_labels}, kClasses);
}

}  // namespace

extern const Entry entry;
const Entry entry = {
    .variant = {.name = "fashion_mnist",
                .summary = "60,000 training and 10,000 test pictures of clothes, 28 x 28, 10 classes",
                .options = {config::text("dir", {},
                                         "folder of the four IDX files, plain or .gz; absent: the usual places")}},
    .load = load};

}  // namespace mgt::data::fashion_mnist
