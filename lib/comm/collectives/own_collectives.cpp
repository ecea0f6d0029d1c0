#include "comm/collectives/own_collectives.h"

#include "comm/collectives/halving_doubling.h"
#include "comm/collectives/ring.h"
#include "comm/collectives/round.h"
#include "core/error.h"

#include "torch_pch.h"

namespace mgt::comm {
namespace {

struct Functions {
  void (*reduce_scatter)(Link& link, const at::Tensor& vector, const at::Tensor& sums, const at::Tensor& own);
  void (*all_gather)(Link& link, const at::Tensor& vector);
};

Functions functions_of(Algorithm algorithm) {
  if (algorithm == Algorithm::ring) return {ring::reduce_scatter, ring::all_gather};
  return {halving_doubling::reduce_scatter, halving_doubling::all_gather};
}

void compute(const Functions& functions, Link& link, const Operation& operation) {
  const at::Tensor input = operation.input.view({-1}), output = operation.output.view({-1});
  switch (operation.kind) {
    case Collective::all_reduce:
      functions.reduce_scatter(link, output, output, part(output, link.size(), link.rank()));
      return functions.all_gather(link, output);
    case Collective::reduce_scatter:
      return functions.reduce_scatter(link, input, at::empty_like(input), output);
    case Collective::all_gather:
      part(output, link.size(), link.rank()).copy_(input);
      return functions.all_gather(link, output);
    default:
      throw InternalError("no algorithm for this collective");
  }
}

class OwnPending final : public Pending {
 public:
  explicit OwnPending(std::future<void> done) : done_(std::move(done)) {}
  void wait() override { done_.get(); }

 private:
  std::future<void> done_;
};

}  // namespace

OwnCollectives::OwnCollectives(Algorithm algorithm, std::unique_ptr<Link> link)
    : algorithm_(algorithm), link_(std::move(link)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

OwnCollectives::~OwnCollectives() = default;  // the thread, last to be made, is asked to stop and joined first

bool OwnCollectives::take(const Operation& operation) const {
  return chosen(algorithm_, operation.kind, link_->size()) != Algorithm::library;
}

std::unique_ptr<Pending> OwnCollectives::start(const Operation& operation, Ledger& ledger) {
  require(operation.input.is_cpu(), "own collectives are for CPU tensors");
  std::packaged_task<void()> task([this, operation, &ledger] { carry_out(operation, ledger); });
  auto pending = std::make_unique<OwnPending>(task.get_future());
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(task));
  }
  started_.notify_one();
  return pending;
}

void OwnCollectives::run(const std::stop_token& stop) {
  const at::NoGradGuard no_grad;
  while (true) {
    std::packaged_task<void()> task;
    {
      std::unique_lock lock(mutex_);
      started_.wait(lock, stop, [this] { return !queue_.empty(); });
      if (stop.stop_requested()) return;
      task = std::move(queue_.front());
      queue_.pop_front();
    }
    task();
  }
}

void OwnCollectives::carry_out(const Operation& operation, Ledger& ledger) {
  const int64_t before = link_->bytes_sent();
  try {
    if (!failure_.empty()) throw CommError(failure_);
    compute(functions_of(chosen(algorithm_, operation.kind, link_->size())), *link_, operation);
  } catch (const std::exception& error) {
    if (failure_.empty()) failure_ = error.what();
    throw failed(link_->rank(), operation, error.what());
  }
  ledger.sent(operation.kind, link_->bytes_sent() - before);
}

}  // namespace mgt::comm
