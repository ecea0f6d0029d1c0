#include "data/byte_source.h"

#include "core/error.h"
#include "core/text.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <system_error>
#include <utility>

namespace mgt::data {
namespace {

constexpr int64_t kPieceBytes = int64_t{1} << 20;
constexpr int64_t kDeflateMostGrowth = 1032;  // a match of 258 bytes takes at least two bits

[[noreturn]] void throw_no_file(const std::string& path, FileSystem::Kind kind) {
  if (kind == FileSystem::Kind::missing) throw DataError(path + ": no such file");
  if (kind == FileSystem::Kind::directory) throw DataError(path + ": a directory where a data file should be");
  throw DataError(path + ": not a regular file");
}

[[noreturn]] void throw_cut(const std::string& path, int64_t size) {
  throw DataError(concat(path, ": the gzip stream does not end within the file's ", size, " bytes; fetch it again"));
}

[[noreturn]] void throw_corrupt(const std::string& path, const z_stream& stream) {
  const char* const reason = stream.msg == nullptr ? "no valid code" : stream.msg;
  throw DataError(
      concat(path, ": corrupt gzip stream at byte ", stream.total_in, " (", reason, "); fetch the file again"));
}

[[noreturn]] void throw_trailing(const std::string& path, int64_t stream_end, int64_t size) {
  throw DataError(concat(path, ": ", size - stream_end, " bytes after the end of the gzip stream at byte ", stream_end,
                         "; fetch the file again"));
}

// The raw bytes of a regular file, a piece at a time.
class RawFile {
 public:
  RawFile(const FileSystem& files, std::string path) : files_(files), path_(std::move(path)) {
    const FileSystem::Kind kind = files_.kind(path_);
    if (kind != FileSystem::Kind::regular) throw_no_file(path_, kind);
    size_ = files_.size(path_);
  }

  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }

  bool is_gzip() const { return at(0, 2) == "\x1f\x8b"; }

  // Empty at the end.
  std::string next(int64_t most_bytes) {
    std::string piece = at(offset_, std::min(most_bytes, kPieceBytes));
    offset_ += static_cast<int64_t>(piece.size());
    return piece;
  }

 private:
  std::string at(int64_t offset, int64_t length) const {
    try {
      return files_.read(path_, offset, length);
    } catch (const std::system_error& error) {
      throw DataError(concat("cannot read data: ", error.what()));
    }
  }

  const FileSystem& files_;
  std::string path_;
  int64_t size_ = 0;
  int64_t offset_ = 0;
};

class PlainSource final : public ByteSource {
 public:
  explicit PlainSource(RawFile file) : file_(std::move(file)) {}

  int64_t read(std::span<uint8_t> out) override {
    std::size_t filled = 0;
    while (filled < out.size()) {
      const std::string piece = file_.next(static_cast<int64_t>(out.size() - filled));
      if (piece.empty()) break;
      std::memcpy(out.data() + filled, piece.data(), piece.size());
      filled += piece.size();
    }
    return static_cast<int64_t>(filled);
  }

  int64_t most() const override { return file_.size(); }
  bool most_is_exact() const override { return true; }

 private:
  RawFile file_;
};

class GzipSource final : public ByteSource {
 public:
  explicit GzipSource(RawFile file) : file_(std::move(file)) {
    constexpr int kGzipWithLargestWindow = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, kGzipWithLargestWindow) != Z_OK) throw std::bad_alloc();
  }
  ~GzipSource() override { inflateEnd(&stream_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  int64_t read(std::span<uint8_t> out) override {
    std::size_t filled = 0;
    while (filled < out.size() && !ended_) {
      if (stream_.avail_in == 0) refill();
      filled += inflate_into(out.subspan(filled));
    }
    return static_cast<int64_t>(filled);
  }

  int64_t most() const override { return file_.size() * kDeflateMostGrowth; }
  bool most_is_exact() const override { return false; }

 private:
  void refill() {
    piece_ = file_.next(kPieceBytes);
    if (piece_.empty()) throw_cut(file_.path(), file_.size());
    stream_.next_in = reinterpret_cast<Bytef*>(piece_.data());
    stream_.avail_in = static_cast<uInt>(piece_.size());
  }

  std::size_t inflate_into(std::span<uint8_t> out) {
    const auto room = static_cast<uInt>(std::min<std::size_t>(out.size(), std::numeric_limits<uInt>::max()));
    stream_.next_out = out.data();
    stream_.avail_out = room;
    const int status = inflate(&stream_, Z_NO_FLUSH);
    if (status == Z_MEM_ERROR) throw std::bad_alloc();
    if (status != Z_OK && status != Z_STREAM_END) throw_corrupt(file_.path(), stream_);
    if (status == Z_STREAM_END) end();
    return room - stream_.avail_out;
  }

  void end() {
    ended_ = true;
    const auto stream_end = static_cast<int64_t>(stream_.total_in);
    if (stream_end != file_.size()) throw_trailing(file_.path(), stream_end, file_.size());
  }

  RawFile file_;
  std::string piece_;
  z_stream stream_{};
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> open_bytes(const FileSystem& files, const std::string& path) {
  RawFile file(files, path);
  if (file.is_gzip()) return std::make_unique<GzipSource>(std::move(file));
  return std::make_unique<PlainSource>(std::move(file));
}

}  // namespace mgt::data
