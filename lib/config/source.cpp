#include "config/message.h"
#include "config/reader.h"
#include "core/error.h"
#include "core/text.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace mgt::config {
namespace {

constexpr int64_t kLargest = 64 * 1024;
constexpr std::string_view kExtension = ".yaml";

// The names of the shipped configs, without extension, sorted. The file-system seam has no listing: this one serves
// only the text of an error.
std::vector<std::string> shipped_names(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry(folder, ignored), end; entry != end; entry.increment(ignored)) {
    if (entry->path().extension() == kExtension) names.push_back(entry->path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

[[noreturn]] void fail_not_found(const std::string& name, const std::string& shipped_folder) {
  constexpr std::size_t kListLimit = 1000;
  const std::vector<std::string> names = shipped_names(shipped_folder);
  const std::string meant = nearest(std::filesystem::path(name).stem().string(), names);
  std::string message = "no such file here or among the shipped configs";
  if (!meant.empty()) message += "; did you mean " + meant + "?";
  if (!names.empty()) message += "; shipped are " + shortened(join(names), kListLimit);
  fail({Origin::Source::file, name}, "", message);
}

}  // namespace

Source read_file(const FileSystem& files, const std::string& path) {
  const Origin origin{Origin::Source::file, path};
  switch (files.kind(path)) {
    case FileSystem::Kind::missing:
      fail(origin, "", "no such file; check the path");
    case FileSystem::Kind::directory:
      fail(origin, "", "is a directory; name a YAML file in it");
    case FileSystem::Kind::other:
      fail(origin, "", "is a pipe, socket or device; write the config into a file");
    case FileSystem::Kind::regular:
      break;
  }
  try {
    std::string text = files.read(path, 0, kLargest + 1);
    if (static_cast<int64_t>(text.size()) > kLargest)
      fail(origin, "", "is larger than 64 KiB; a config is a short file");
    return {path, std::move(text)};
  } catch (const std::system_error& error) {
    fail(origin, "", concat("cannot be read (", error.code().message(), "); check its permissions"));
  }
}

std::string find_config(const FileSystem& files, const std::string& name, const std::string& shipped_folder) {
  const std::string shipped = shipped_folder + "/" + name;
  for (const std::string& path : {name, shipped, shipped + std::string(kExtension)}) {
    if (files.kind(path) == FileSystem::Kind::regular) return path;
  }
  // A directory or pipe of that name: `read_file` says what it is.
  if (files.kind(name) != FileSystem::Kind::missing) return name;
  fail_not_found(name, shipped_folder);
}

}  // namespace mgt::config
