// Three ways to give every device the sum of all devices' vectors, as the book's exercise asks for. Each works in place
// on a list of tensors, one a device, and counts what it moved. One thread calls it; k is the number of devices, S the
// size of a vector.
//
//   naive  all data passes device 0:                    2(k-1) S through device 0, 2(k-1) rounds
//   tree   pairs, then pairs of pairs, and back:        2 ceil(log2 k) rounds
//   ring   each device talks to its right neighbour:    2(k-1)/k S sent by each, 2(k-1) rounds
//
// Results are the same on every device to the bit. Storage is never replaced: data[i] keeps its memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace mgt::strategy::scratch {

struct Traffic {
  std::vector<int64_t> bytes_sent;      // by device
  std::vector<int64_t> bytes_received;  // by device
  int64_t rounds = 0;                   // transfers that cannot happen at the same time

  Traffic& operator+=(const Traffic& other);
  int64_t total_bytes() const;
};

using AllReduce = Traffic (*)(std::vector<at::Tensor>& data);

Traffic allreduce_naive(std::vector<at::Tensor>& data);
Traffic allreduce_tree(std::vector<at::Tensor>& data);
Traffic allreduce_ring(std::vector<at::Tensor>& data);

// "naive", "tree" or "ring".
AllReduce allreduce_named(const std::string& name);

}  // namespace mgt::strategy::scratch
