// The content of a file as a stream of bytes, inflated on the way where the file is gzip; the first two bytes tell, not
// the name. Memory stays small whatever the file claims to hold: the caller provides the room, piece by piece.
// Owned by the one who reads the file; belongs to one thread.
#pragma once

#include "core/file_system.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace mgt::data {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Fills `out` from where the last read ended; fewer bytes only where the content ends. A gzip stream's checksum and
  // length have been verified once a read came back short. DataError: cannot be read, damaged, bytes after the end.
  virtual int64_t read(std::span<uint8_t> out) = 0;

  // No more bytes than this can come out, so that a promise can be judged before memory is given to it.
  virtual int64_t most() const = 0;
  virtual bool most_is_exact() const = 0;  // unless compressed
};

// DataError: missing, a directory, not a regular file.
std::unique_ptr<ByteSource> open_bytes(const FileSystem& files, const std::string& path);

}  // namespace mgt::data
