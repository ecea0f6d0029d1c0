// The content of a file as a stream of bytes, inflated on the way where the file is gzip; the first two bytes tell, not
// the name. Memory stays small whatever the file claims to hold: the caller provides the room, piece by piece.
// Owned by the one who reads the file; belongs to one thread.
#pragma once

#include "core/error.h"
#include "core/file_system.h"
#include "core/text.h"

#include <zlib.h>

#include <cstdint>
#include <span>
#include <string>

namespace mgt::data {

class ByteSource {
 public:
  // DataError: missing, a directory, not a regular file.
  ByteSource(const FileSystem& files, std::string path);
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  // Fills `out` from where the last read ended; fewer bytes only where the content ends. A gzip stream's checksum and
  // length have been verified once a read came back short. DataError: cannot be read, damaged, bytes after the end.
  int64_t read(std::span<uint8_t> out);

  // No more bytes than this can come out, so that a promise can be judged before memory is given to it.
  int64_t most() const;
  bool most_is_exact() const { return !gzip_; }

  // DataError: the file's name, and what is wrong with it.
  template <typename... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    throw DataError(concat(path_, ": ", parts...));
  }

 private:
  std::string bytes_at(int64_t offset, int64_t length) const;
  void refill();
  std::size_t copy_into(std::span<uint8_t> out);
  std::size_t inflate_into(std::span<uint8_t> out);

  const FileSystem& files_;
  std::string path_;
  int64_t size_ = 0;
  int64_t offset_ = 0;  // of what follows the piece
  std::string piece_;   // of the file
  bool gzip_ = false;
  bool ended_ = false;  // the gzip stream
  z_stream stream_{};   // what is left of the piece, of a plain file too
};

}  // namespace mgt::data
