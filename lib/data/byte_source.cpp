#include "data/byte_source.h"

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

}  // namespace

ByteSource::ByteSource(const FileSystem& files, std::string path) : files_(files), path_(std::move(path)) {
  const FileSystem::Kind kind = files_.kind(path_);
  if (kind == FileSystem::Kind::missing) fail("no such file");
  if (kind == FileSystem::Kind::directory) fail("a directory where a data file should be");
  if (kind != FileSystem::Kind::regular) fail("not a regular file");
  size_ = files_.size(path_);
  gzip_ = bytes_at(0, 2) == "\x1f\x8b";
  constexpr int kGzipWithLargestWindow = 16 + MAX_WBITS;
  if (gzip_ && inflateInit2(&stream_, kGzipWithLargestWindow) != Z_OK) throw std::bad_alloc();
}

ByteSource::~ByteSource() {
  if (gzip_) inflateEnd(&stream_);
}

int64_t ByteSource::most() const { return gzip_ ? size_ * kDeflateMostGrowth : size_; }

std::string ByteSource::bytes_at(int64_t offset, int64_t length) const {
  try {
    return files_.read(path_, offset, length);
  } catch (const std::system_error& error) {
    throw DataError(concat("cannot read data: ", error.what()));
  }
}

int64_t ByteSource::read(std::span<uint8_t> out) {
  std::size_t filled = 0;
  while (filled < out.size() && !ended_) {
    if (stream_.avail_in == 0) refill();
    if (stream_.avail_in == 0) break;
    filled += gzip_ ? inflate_into(out.subspan(filled)) : copy_into(out.subspan(filled));
  }
  return static_cast<int64_t>(filled);
}

void ByteSource::refill() {
  piece_ = bytes_at(offset_, kPieceBytes);
  offset_ += static_cast<int64_t>(piece_.size());
  if (piece_.empty() && gzip_) fail("the gzip stream does not end within the file's ", size_, " bytes; fetch it again");
  stream_.next_in = reinterpret_cast<Bytef*>(piece_.data());
  stream_.avail_in = static_cast<uInt>(piece_.size());
}

std::size_t ByteSource::copy_into(std::span<uint8_t> out) {
  const std::size_t count = std::min<std::size_t>(out.size(), stream_.avail_in);
  std::memcpy(out.data(), stream_.next_in, count);
  stream_.next_in += count;
  stream_.avail_in -= static_cast<uInt>(count);
  return count;
}

std::size_t ByteSource::inflate_into(std::span<uint8_t> out) {
  const auto room = static_cast<uInt>(std::min<std::size_t>(out.size(), std::numeric_limits<uInt>::max()));
  stream_.next_out = out.data();
  stream_.avail_out = room;
  const int status = inflate(&stream_, Z_NO_FLUSH);
  if (status == Z_MEM_ERROR) throw std::bad_alloc();
  if (status != Z_OK && status != Z_STREAM_END) {
    fail("corrupt gzip stream at byte ", stream_.total_in, " (", stream_.msg == nullptr ? "no valid code" : stream_.msg,
         "); fetch the file again");
  }
  ended_ = status == Z_STREAM_END;
  const auto stream_end = static_cast<int64_t>(stream_.total_in);
  if (ended_ && stream_end != size_) {
    fail(size_ - stream_end, " bytes after the end of the gzip stream at byte ", stream_end, "; fetch the file again");
  }
  return room - stream_.avail_out;
}

}  // namespace mgt::data
