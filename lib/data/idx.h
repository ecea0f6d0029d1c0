// The IDX format of the MNIST family (big-endian header: magic number and sizes, then raw bytes), plain or gzip, read
// with suspicion. Everything that the header promises is compared with the file before memory is given to it.
// Free functions; any thread or rank may call them.
#pragma once

#include "core/file_system.h"
#include "data/dataset.h"

#include <cstdint>
#include <optional>
#include <string>

namespace mgt::data {

// The paths of one set of labelled images.
struct IdxPaths {
  std::string images;  // (N, H, W) or (N, C, H, W), unsigned bytes
  std::string labels;  // (N), unsigned bytes in [0, classes)
};

// DataError names the file and what is wrong with it: missing, not IDX, another size than promised, damaged gzip, no
// sample, a label out of range (with its sample), another number of labels than of images.
Dataset read_idx(const FileSystem& files, const IdxPaths& paths, int64_t classes);

// Both sets at the same time.
Splits read_idx(const FileSystem& files, const IdxPaths& train, const std::optional<IdxPaths>& test, int64_t classes);

}  // namespace mgt::data
