// How the ranks of a run talk. Every rank calls the same collectives in the same order with tensors of the same shape
// and dtype; each call starts the operation and returns at once, `Work::wait` blocks until its result may be used.
// Calls may come from the rank's thread and from its autograd hooks, one at a time. A collective waits at most the
// timeout given when the communicator was made, then throws CommError with rank, collective and its number.
// A communicator belongs to one rank; world 1 is the same code.
#pragma once

#include "comm/ledger.h"
#include "core/error.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mgt::comm {

// What a backend is asked to do. Tensors are contiguous. `peer`: the root of a broadcast, the other end of send or
// recv.
struct Operation {
  Collective kind;
  at::Tensor input;
  at::Tensor output;  // the same tensor as `input` where the operation is in place
  int64_t peer = 0;
  int64_t number = 0;  // of this communicator's operations, from 0
};

// Bytes that `rank` of `size` sends for it, by `traffic` of comm/ledger.h.
int64_t traffic(const Operation& operation, int64_t rank, int64_t size);

// "rank 1: all_reduce #3 failed: ...", and for send and recv the other end.
CommError failed(int64_t rank, const Operation& operation, const std::string& reason);

// An operation on its way. A backend derives one.
class Pending {
 public:
  virtual ~Pending() = default;
  virtual void wait() = 0;  // CommError
};

// Handle of a started operation; `wait` may be called once. Keeps the tensors alive.
class Work {
 public:
  Work(std::unique_ptr<Pending> pending, Collective collective, Ledger& ledger)
      : pending_(std::move(pending)), collective_(collective), ledger_(&ledger) {}
  void wait();

 private:
  std::unique_ptr<Pending> pending_;
  Collective collective_;
  Ledger* ledger_;
};

class Communicator {
 public:
  Communicator(int64_t rank, int64_t size) : rank_(rank), size_(size) {}
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int64_t rank() const { return rank_; }
  int64_t size() const { return size_; }
  const Ledger& ledger() const { return ledger_; }

  [[nodiscard]] Work all_reduce(at::Tensor& tensor);                               // sum, in place
  [[nodiscard]] Work reduce_scatter(const at::Tensor& input, at::Tensor& output);  // (size * n) -> (n), sum
  [[nodiscard]] Work all_gather(const at::Tensor& input, at::Tensor& output);      // (n) -> (size * n), by rank
  [[nodiscard]] Work broadcast(at::Tensor& tensor, int64_t root);
  [[nodiscard]] Work send(const at::Tensor& tensor, int64_t to);
  [[nodiscard]] Work recv(at::Tensor& tensor, int64_t from);
  void barrier();  // returns when every rank has called it

  // Ranks of one color become a communicator of their own, in the order of their ranks here. Every rank calls it.
  virtual std::unique_ptr<Communicator> split(int64_t color) = 0;

 private:
  // Tells the ledger what is really sent.
  virtual std::unique_ptr<Pending> start(const Operation& operation, Ledger& ledger) = 0;
  Work begin(Operation operation);

  int64_t rank_;
  int64_t size_;
  int64_t operations_ = 0;
  Ledger ledger_;
};

// A rank's place in what a split makes, from the colors of all ranks.
struct Seat {
  int64_t rank;
  int64_t size;
};
Seat seat_of(int64_t rank, const std::vector<int64_t>& colors);

}  // namespace mgt::comm
