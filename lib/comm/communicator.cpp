#include "comm/communicator.h"

#include "core/clock.h"
#include "core/text.h"

#include "torch_pch.h"

#include <algorithm>

namespace mgt::comm {
namespace {

int64_t bytes_of(const at::Tensor& tensor) { return tensor.numel() * static_cast<int64_t>(tensor.element_size()); }

std::string peer_of(const Operation& operation) {
  if (operation.kind == Collective::send) return concat(" to rank ", operation.peer);
  return operation.kind == Collective::recv ? concat(" from rank ", operation.peer) : "";
}

}  // namespace

int64_t traffic(const Operation& operation, int64_t rank, int64_t size) {
  const int64_t whole = std::max(bytes_of(operation.input), bytes_of(operation.output));
  const int64_t from_root = operation.kind == Collective::broadcast ? (rank - operation.peer + size) % size : rank;
  return traffic(operation.kind, whole, static_cast<int64_t>(operation.input.element_size()), from_root, size);
}

CommError failed(int64_t rank, const Operation& operation, const std::string& reason) {
  return CommError(concat("rank ", rank, ": ", name_of(operation.kind), " #", operation.number, peer_of(operation),
                          " failed: ", shortened(reason, 300)));
}

void Work::wait() {
  const double started_s = real_clock().now_s();
  pending_->wait();
  ledger_->waited(collective_, real_clock().now_s() - started_s);
}

Work Communicator::begin(Operation operation) {
  require(operation.input.is_contiguous() && operation.output.is_contiguous(), "collectives take contiguous tensors");
  operation.number = operations_++;
  ledger_.started(operation.kind);
  return {start(operation, ledger_), operation.kind, ledger_};
}

Work Communicator::all_reduce(at::Tensor& tensor) { return begin({Collective::all_reduce, tensor, tensor}); }

Work Communicator::reduce_scatter(const at::Tensor& input, at::Tensor& output) {
  require(input.numel() == size_ * output.numel(), "reduce_scatter: input is one output for each rank");
  return begin({Collective::reduce_scatter, input, output});
}

Work Communicator::all_gather(const at::Tensor& input, at::Tensor& output) {
  require(output.numel() == size_ * input.numel(), "all_gather: output is one input for each rank");
  return begin({Collective::all_gather, input, output});
}

Work Communicator::broadcast(at::Tensor& tensor, int64_t root) {
  return begin({Collective::broadcast, tensor, tensor, root});
}

Work Communicator::send(const at::Tensor& tensor, int64_t to) { return begin({Collective::send, tensor, tensor, to}); }

Work Communicator::recv(at::Tensor& tensor, int64_t from) { return begin({Collective::recv, tensor, tensor, from}); }

void Communicator::barrier() {
  at::Tensor nothing = at::zeros({1}, at::kLong);
  begin({Collective::barrier, nothing, nothing}).wait();
}

Seat seat_of(int64_t rank, const std::vector<int64_t>& colors) {
  const int64_t color = colors[static_cast<std::size_t>(rank)];
  return {.rank = std::count(colors.begin(), colors.begin() + rank, color),
          .size = std::count(colors.begin(), colors.end(), color)};
}

}  // namespace mgt::comm
