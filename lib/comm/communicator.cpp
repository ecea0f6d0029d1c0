#include "comm/communicator.h"

#include "core/clock.h"
#include "core/error.h"

#include "torch_pch.h"

namespace mgt::comm {
namespace {

int64_t bytes_of(const at::Tensor& tensor) { return tensor.numel() * static_cast<int64_t>(tensor.element_size()); }

}  // namespace

void Work::wait() {
  const double started_s = real_clock().now_s();
  pending_->wait();
  ledger_->waited(collective_, real_clock().now_s() - started_s);
}

Work Communicator::begin(Operation operation, int64_t bytes, int64_t rank_for_traffic) {
  require(operation.input.is_contiguous() && operation.output.is_contiguous(), "collectives take contiguous tensors");
  operation.number = operations_++;
  const auto item_size = static_cast<int64_t>(operation.input.element_size());
  ledger_.sent(operation.kind, traffic(operation.kind, bytes, item_size, rank_for_traffic, size_));
  return {start(operation), operation.kind, ledger_};
}

Work Communicator::all_reduce(at::Tensor& tensor) {
  return begin({Collective::all_reduce, tensor, tensor}, bytes_of(tensor), rank_);
}

Work Communicator::reduce_scatter(const at::Tensor& input, at::Tensor& output) {
  require(input.numel() == size_ * output.numel(), "reduce_scatter: input is one output for each rank");
  return begin({Collective::reduce_scatter, input, output}, bytes_of(input), rank_);
}

Work Communicator::all_gather(const at::Tensor& input, at::Tensor& output) {
  require(output.numel() == size_ * input.numel(), "all_gather: output is one input for each rank");
  return begin({Collective::all_gather, input, output}, bytes_of(output), rank_);
}

Work Communicator::broadcast(at::Tensor& tensor, int64_t root) {
  return begin({Collective::broadcast, tensor, tensor, root}, bytes_of(tensor), (rank_ - root + size_) % size_);
}

Work Communicator::send(const at::Tensor& tensor, int64_t to) {
  return begin({Collective::send, tensor, tensor, to}, bytes_of(tensor), rank_);
}

Work Communicator::recv(at::Tensor& tensor, int64_t from) {
  return begin({Collective::recv, tensor, tensor, from}, bytes_of(tensor), rank_);
}

void Communicator::barrier() {
  at::Tensor nothing = at::zeros({1}, at::kLong);
  begin({Collective::barrier, nothing, nothing}, 0, rank_).wait();
}

}  // namespace mgt::comm
