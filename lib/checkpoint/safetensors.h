// The safetensors format (8-byte little-endian header length, JSON header, raw data), read with suspicion and written
// whole. Nothing is ever unpickled. Everything is validated before anything is allocated. Free functions and values;
// a Reader belongs to one thread.
#pragma once

#include "core/file_system.h"
#include "model/state.h"

#include <map>
#include <string>
#include <vector>

namespace mgt::checkpoint {

struct TensorEntry {
  std::string name;
  at::ScalarType dtype;
  model::Shape shape;
  int64_t begin = 0;  // bytes, from the start of the data
  int64_t end = 0;
};

// The format's name of the type: "F32", "BF16", "I64". InternalError where it has none.
std::string dtype_name(at::ScalarType dtype);

class Reader {
 public:
  // CheckpointError with file and tensor: not there, not safetensors (a pickle is named as such), header longer than
  // the file, not JSON, unknown dtype, shape and bytes that do not fit, overlap, gap, bytes after the end, a name
  // twice.
  Reader(const FileSystem& files, std::string path);

  const std::string& path() const { return path_; }
  const std::map<std::string, TensorEntry>& tensors() const { return tensors_; }
  at::Tensor read(const std::string& name) const;  // on the CPU, in the file's dtype

 private:
  const FileSystem& files_;
  std::string path_;
  int64_t data_start_ = 0;
  std::map<std::string, TensorEntry> tensors_;
};

// Writes the tensors (any device; made contiguous) under `path`, atomically.
void write_safetensors(FileSystem& files, const std::string& path, const std::map<std::string, at::Tensor>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace mgt::checkpoint
