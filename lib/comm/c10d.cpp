#include "comm/c10d.h"

#include "comm/collectives/own_collectives.h"
#include "comm/store.h"
#include "core/error.h"
#include "core/text.h"

#include "torch_pch.h"
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <chrono>
#include <optional>
#include <thread>

namespace mgt::comm {
namespace {

using Handle = c10::intrusive_ptr<c10d::Work>;

class C10dPending final : public Pending {
 public:
  C10dPending(Handle handle, Operation operation, int64_t rank, std::chrono::milliseconds timeout)
      : handle_(std::move(handle)), operation_(std::move(operation)), rank_(rank), timeout_(timeout) {}

  void wait() override {
    try {
      if (operation_.input.is_cuda()) look_often();
      handle_->wait(timeout_);
    } catch (const std::exception& error) {
      throw failed(rank_, operation_, first_line(error));
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

// Starts operations on a backend, in one lane.
class Starter {
 public:
  Starter(c10::intrusive_ptr<c10d::Backend> backend, double timeout_s, Lane lane)
      : backend_(std::move(backend)), timeout_(static_cast<int64_t>(timeout_s * 1000)), tag_(static_cast<int>(lane)) {}

  std::unique_ptr<Pending> start(const Operation& operation) {
    try {
      return std::make_unique<C10dPending>(dispatch(operation), operation, backend_->getRank(), timeout_);
    } catch (const std::exception& error) {
      throw failed(backend_->getRank(), operation, first_line(error));
    }
  }

 private:
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
        return backend_->send(tensors, peer, tag_);
      case Collective::recv:
        return backend_->recv(tensors, peer, tag_);
      case Collective::barrier:
        return backend_->barrier();
    }
    throw InternalError("unknown collective");
  }

  c10::intrusive_ptr<c10d::Backend> backend_;
  std::chrono::milliseconds timeout_;
  int tag_;
};

class C10dLink final : public Link {
 public:
  C10dLink(const c10::intrusive_ptr<c10d::Backend>& backend, double timeout_s)
      : Link(backend->getRank(), backend->getSize()), starter_(backend, timeout_s, Lane::algorithm) {}
  std::unique_ptr<Pending> recv(const at::Tensor& tensor, int64_t from) override {
    return starter_.start({Collective::recv, tensor, tensor, from, messages_++});
  }

 private:
  std::unique_ptr<Pending> start_send(const at::Tensor& tensor, int64_t to) override {
    return starter_.start({Collective::send, tensor, tensor, to, messages_++});
  }

  Starter starter_;
  int64_t messages_ = 0;
};

// Gloo carries a reduce-scatter out as an all-reduce of a copy.
int64_t library_traffic(const c10d::Backend& backend, Operation operation) {
  const bool all_reduces = operation.kind == Collective::reduce_scatter && backend.getBackendName() == "gloo";
  if (all_reduces) operation.kind = Collective::all_reduce;
  return traffic(operation, backend.getRank(), backend.getSize());
}

class C10dCommunicator final : public Communicator {
 public:
  explicit C10dCommunicator(C10dGroup group)
      : Communicator(group.backend->getRank(), group.backend->getSize()),
        group_(std::move(group)),
        starter_(group_.backend, group_.timeout_s, Lane::operations) {
    if (group_.algorithm == Algorithm::library) return;
    own_.emplace(group_.algorithm, std::make_unique<C10dLink>(group_.backend, group_.timeout_s));
  }
  ~C10dCommunicator() override {
    own_.reset();
    try {
      group_.backend->shutdown();
    } catch (const std::exception&) {  // a group that failed may fail again; the run's own error is on its way
    }
  }

  std::unique_ptr<Communicator> split(int64_t color) override {
    const auto store = c10::make_intrusive<c10d::PrefixStore>(concat("split ", splits_++), group_.store);
    const Seat seat = seat_of(rank(), exchange(*store, color));
    Rendezvous rendezvous(c10::make_intrusive<c10d::PrefixStore>(concat("color ", color), store));
    return group_.connect(rendezvous, seat.rank, seat.size);
  }

 private:
  std::unique_ptr<Pending> start(const Operation& operation, Ledger& ledger) override {
    if (own_ && own_->take(operation)) return own_->start(operation, ledger);
    ledger.sent(operation.kind, library_traffic(*group_.backend, operation));
    return starter_.start(operation);
  }

  // The colors of all ranks. In the store, since only that is alike for tensors of every device.
  std::vector<int64_t> exchange(c10d::Store& store, int64_t color) const {
    std::vector<int64_t> colors;
    try {
      store.set(concat("color of rank ", rank()), std::to_string(color));
      for (int64_t peer = 0; peer < size(); ++peer) {
        colors.push_back(std::stoll(store.get_to_str(concat("color of rank ", peer))));
      }
    } catch (const std::exception& error) {
      throw CommError(concat("rank ", rank(), ": split #", splits_ - 1, " failed, waiting for rank ", colors.size(),
                             ": ", shortened(first_line(error), 300)));
    }
    return colors;
  }

  C10dGroup group_;
  Starter starter_;
  int64_t splits_ = 0;
  std::optional<OwnCollectives> own_;
};

}  // namespace

std::unique_ptr<Communicator> make_c10d(C10dGroup group) {
  return std::make_unique<C10dCommunicator>(std::move(group));
}

std::string first_line(const std::exception& error) {
  const auto* c10_error = dynamic_cast<const c10::Error*>(&error);
  const std::string text = c10_error ? c10_error->what_without_backtrace() : error.what();
  return text.substr(0, text.find('\n'));
}

}  // namespace mgt::comm
