#include "comm/c10d.h"

#include "core/error.h"
#include "core/text.h"

#include "torch_pch.h"

#include <chrono>
#include <thread>

namespace mgt::comm {
namespace {

using Handle = c10::intrusive_ptr<c10d::Work>;

CommError failed(int64_t rank, const Operation& operation, const std::exception& cause) {
  return CommError(concat("rank ", rank, ": ", name_of(operation.kind), " #", operation.number,
                          " failed: ", shortened(first_line(cause), 300)));
}

class C10dPending final : public Pending {
 public:
  C10dPending(Handle handle, Operation operation, int64_t rank, std::chrono::milliseconds timeout)
      : handle_(std::move(handle)), operation_(std::move(operation)), rank_(rank), timeout_(timeout) {}

  void wait() override {
    try {
      if (operation_.input.is_cuda()) look_often();
      handle_->wait(timeout_);
    } catch (const std::exception& error) {
      throw failed(rank_, operation_, error);
    }
  }

 private:
  // NCCL's own wait looks once a millisecond, longer than a step of a small model.
  void look_often() const {
    const auto end = std::chrono::steady_clock::now() + timeout_;
    while (!handle_->isCompleted() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  }

  Handle handle_;
  Operation operation_;
  int64_t rank_;
  std::chrono::milliseconds timeout_;
};

class C10dCommunicator final : public Communicator {
 public:
  C10dCommunicator(c10::intrusive_ptr<c10d::Backend> backend, double timeout_s)
      : Communicator(backend->getRank(), backend->getSize()),
        backend_(std::move(backend)),
        timeout_(static_cast<int64_t>(timeout_s * 1000)) {}
  ~C10dCommunicator() override {
    try {
      backend_->shutdown();
    } catch (const std::exception&) {  // a group that failed may fail again; the run's own error is on its way
    }
  }

 private:
  std::unique_ptr<Pending> start(const Operation& operation) override {
    try {
      return std::make_unique<C10dPending>(dispatch(operation), operation, rank(), timeout_);
    } catch (const std::exception& error) {
      throw failed(rank(), operation, error);
    }
  }

  Handle dispatch(const Operation& operation) {
    const auto peer = static_cast<int>(operation.peer);
    std::vector<at::Tensor> tensors = {operation.input};
    at::Tensor input = operation.input, output = operation.output;
    switch (operation.kind) {
      case Collective::all_reduce:
        return backend_->allreduce(tensors);
      case Collective::reduce_scatter:
        return backend_->_reduce_scatter_base(output, input);
      case Collective::all_gather:
        return backend_->_allgather_base(output, input);
      case Collective::broadcast: {
        c10d::BroadcastOptions options;
        options.rootRank = peer;
        return backend_->broadcast(tensors, options);
      }
      case Collective::send:
        return backend_->send(tensors, peer, 0);
      case Collective::recv:
        return backend_->recv(tensors, peer, 0);
      case Collective::barrier:
        return backend_->barrier();
    }
    throw InternalError("unknown collective");
  }

  c10::intrusive_ptr<c10d::Backend> backend_;
  std::chrono::milliseconds timeout_;
};

}  // namespace

std::unique_ptr<Communicator> make_c10d(c10::intrusive_ptr<c10d::Backend> backend, double timeout_s) {
  return std::make_unique<C10dCommunicator>(std::move(backend), timeout_s);
}

std::string first_line(const std::exception& error) {
  const auto* c10_error = dynamic_cast<const c10::Error*>(&error);
  const std::string text = c10_error ? c10_error->what_without_backtrace() : error.what();
  return text.substr(0, text.find('\n'));
}

}  // namespace mgt::comm
