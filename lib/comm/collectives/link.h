// The seam under the collectives' own algorithms: messages between two ranks, apart from those of the communicator's
// send and recv, so that the two never mix. Messages from one rank to another arrive in the order in which they were
// sent. A backend derives one; it belongs to the one thread that runs the algorithms.
#pragma once

#include "comm/communicator.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

namespace mgt::comm {

// Whose messages: the communicator's own operations, or the algorithms'.
enum class Lane { operations, algorithm };

class Link {
 public:
  Link(int64_t rank, int64_t size) : rank_(rank), size_(size) {}
  virtual ~Link() = default;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  int64_t rank() const { return rank_; }
  int64_t size() const { return size_; }
  int64_t bytes_sent() const { return bytes_sent_; }  // since construction

  // Both return at once; the tensor must be left alone until the message is waited for.
  std::unique_ptr<Pending> send(const at::Tensor& tensor, int64_t to) {
    bytes_sent_ += tensor.numel() * static_cast<int64_t>(tensor.element_size());
    return start_send(tensor, to);
  }
  virtual std::unique_ptr<Pending> recv(const at::Tensor& tensor, int64_t from) = 0;

 private:
  virtual std::unique_ptr<Pending> start_send(const at::Tensor& tensor, int64_t to) = 0;

  int64_t rank_;
  int64_t size_;
  int64_t bytes_sent_ = 0;
};

}  // namespace mgt::comm
