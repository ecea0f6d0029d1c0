// The file-system seam: everything that mgt reads or writes goes through a FileSystem, so that tests can fill the disk
// or lose power. Paths are as the user gave them. Failures throw std::system_error with the path in its text; callers
// turn it into the typed error of their trade. The real one is stateless and may be used from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mgt {

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  enum class Kind { missing, regular, directory, other };   // `other`: pipe, socket, device
  virtual Kind kind(const std::string& path) const = 0;     // follows links
  virtual int64_t size(const std::string& path) const = 0;  // bytes of a regular file

  // `length` bytes from `offset`, fewer where the file ends. Never blocks on a pipe: only regular files are opened.
  virtual std::string read(const std::string& path, int64_t offset, int64_t length) const = 0;

  // The whole content under the final name or nothing: temporary file, sync, rename, sync of the folder.
  virtual void write_whole(const std::string& path, std::string_view content) = 0;
  // Adds to the end, creating the file; for records that may be lost with power.
  virtual void append(const std::string& path, std::string_view content) = 0;
  virtual void make_directories(const std::string& path) = 0;
};

FileSystem& real_file_system();

// Where this program may keep things for the user: $XDG_CACHE_HOME/mgt, else ~/.cache/mgt.
std::string cache_folder();

}  // namespace mgt
