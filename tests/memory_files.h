// A file system in memory, for tests that make their own files or damage given ones.
#pragma once

#include "core/file_system.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <system_error>

namespace mgt::test {

class MemoryFiles final : public FileSystem {
 public:
  std::map<std::string, std::string> contents;
  std::string unreadable;  // a path whose every read fails

  Kind kind(const std::string& path) const override { return contents.contains(path) ? Kind::regular : Kind::missing; }
  int64_t size(const std::string& path) const override { return static_cast<int64_t>(contents.at(path).size()); }
  std::string read(const std::string& path, int64_t offset, int64_t length) const override {
    if (path == unreadable) throw std::system_error(EIO, std::generic_category(), path);
    const std::string& content = contents.at(path);
    const auto begin = std::min(static_cast<std::size_t>(offset), content.size());
    return content.substr(begin, static_cast<std::size_t>(length));
  }
  void write_whole(const std::string& path, std::string_view content) override { contents[path] = content; }
  void append(const std::string& path, std::string_view content) override { contents[path] += content; }
  void make_directories(const std::string&) override {}
};

inline std::string file_content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace mgt::test
