#include "core/file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace mgt {
namespace {

[[noreturn]] void throw_system_error(const std::string& path) {
  throw std::system_error(errno, std::generic_category(), path);
}

// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags, mode_t mode = 0)
      : value_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {
    if (value_ < 0) throw_system_error(path);
  }
  ~Descriptor() { ::close(value_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int value() const { return value_; }

 private:
  int value_;
};

void write_all(const Descriptor& file, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(file.value(), content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_system_error(path);
    content.remove_prefix(static_cast<std::size_t>(written));
  }
}

class RealFileSystem final : public FileSystem {
 public:
  Kind kind(const std::string& path) const override {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return Kind::missing;
    if (S_ISREG(status.st_mode)) return Kind::regular;
    return S_ISDIR(status.st_mode) ? Kind::directory : Kind::other;
  }

  int64_t size(const std::string& path) const override {
    return static_cast<int64_t>(std::filesystem::file_size(path));
  }

  std::string read(const std::string& path, int64_t offset, int64_t length) const override {
    const Descriptor file(path, O_RDONLY | O_NONBLOCK);
    struct stat status {};
    if (::fstat(file.value(), &status) != 0) throw_system_error(path);
    if (!S_ISREG(status.st_mode)) {
      errno = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
      throw_system_error(path);
    }
    std::string content(static_cast<std::size_t>(std::clamp<int64_t>(status.st_size - offset, 0, length)), '\0');
    std::size_t filled = 0;
    while (filled < content.size()) {
      const ssize_t count = ::pread(file.value(), content.data() + filled, content.size() - filled,
                                    offset + static_cast<int64_t>(filled));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw_system_error(path);
      if (count == 0) break;
      filled += static_cast<std::size_t>(count);
    }
    content.resize(filled);
    return content;
  }

  void write_whole(const std::string& path, std::string_view content) override {
    const std::string temporary = path + ".tmp";
    try {
      const Descriptor file(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0644);
      write_all(file, content, temporary);
      if (::fsync(file.value()) != 0) throw_system_error(temporary);
      if (::rename(temporary.c_str(), path.c_str()) != 0) throw_system_error(path);
    } catch (...) {
      ::unlink(temporary.c_str());
      throw;
    }
    const std::filesystem::path parent = std::filesystem::path(path).parent_path();
    const Descriptor folder(parent.empty() ? "." : parent.string(), O_RDONLY | O_DIRECTORY);
    ::fsync(folder.value());
  }

  void append(const std::string& path, std::string_view content) override {
    const Descriptor file(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    write_all(file, content, path);
  }

  void make_directories(const std::string& path) override { std::filesystem::create_directories(path); }
};

}  // namespace

FileSystem& real_file_system() {
  static RealFileSystem instance;
  return instance;
}

std::string cache_folder() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  if (cache != nullptr && *cache != '\0') return std::string(cache) + "/mgt";
  return std::string(home != nullptr ? home : "") + "/.cache/mgt";
}

}  // namespace mgt
