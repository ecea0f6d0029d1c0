#include "verify/fault.h"

#include "core/error.h"

#include "torch_pch.h"

namespace mgt::verify {
namespace {

// Passes operations on to another communicator, some of them never or twice.
class FaultyCommunicator final : public comm::Communicator {
 public:
  FaultyCommunicator(comm::Communicator& inner, const Fault& fault)
      : Communicator(inner.rank(), inner.size()), inner_(inner), fault_(fault) {}
  FaultyCommunicator(std::unique_ptr<comm::Communicator> inner, const Fault& fault)
      : FaultyCommunicator(*inner, fault) {
    owned_ = std::move(inner);
  }

  std::unique_ptr<comm::Communicator> split(int64_t color) override {
    return std::make_unique<FaultyCommunicator>(inner_.split(color), fault_);
  }

 private:
  class Passed final : public comm::Pending {
   public:
    explicit Passed(std::optional<comm::Work> work, std::function<void()> then = {})
        : work_(std::move(work)), then_(std::move(then)) {}
    void wait() override {
      if (work_) work_->wait();
      if (then_) then_();
    }

   private:
    std::optional<comm::Work> work_;
    std::function<void()> then_;
  };

  std::unique_ptr<comm::Pending> start(const comm::Operation& operation, comm::Ledger&) override {
    const int times = fault_.times ? fault_.times(operation) : 1;
    if (times == 0) return std::make_unique<Passed>(std::nullopt);
    for (int early = 1; early < times; ++early) {
      if (auto work = pass_on(operation)) work->wait();
    }
    std::function<void()> then;
    if (fault_.after_reduce && operation.kind == comm::Collective::all_reduce) {
      then = [this, sum = operation.output, own = operation.input.clone()]() mutable { fault_.after_reduce(sum, own); };
    }
    if (fault_.received && operation.kind == comm::Collective::recv) {
      then = [this, message = operation.output]() mutable { fault_.received(message); };
    }
    return std::make_unique<Passed>(pass_on(operation), std::move(then));
  }

  std::optional<comm::Work> pass_on(const comm::Operation& operation) {
    at::Tensor input = operation.input, output = operation.output;
    switch (operation.kind) {
      case comm::Collective::all_reduce:
        if (fault_.before_reduce) fault_.before_reduce(output);
        return inner_.all_reduce(output);
      case comm::Collective::reduce_scatter:
        if (fault_.before_scatter) fault_.before_scatter(input);
        return inner_.reduce_scatter(input, output);
      case comm::Collective::all_gather:
        return inner_.all_gather(operation.input, output);
      case comm::Collective::broadcast:
        return inner_.broadcast(output, operation.peer);
      case comm::Collective::send:
        return inner_.send(operation.input, operation.peer);
      case comm::Collective::recv:
        return inner_.recv(output, operation.peer);
      case comm::Collective::barrier:
        inner_.barrier();
        return std::nullopt;
    }
    throw InternalError("an unknown collective");
  }

  std::unique_ptr<comm::Communicator> owned_;  // after a split
  comm::Communicator& inner_;                  // whose ledger tells what was sent
  const Fault& fault_;
};

class FaultyStrategy final : public strategy::Strategy {
 public:
  FaultyStrategy(const strategy::Entry& entry, strategy::Context context, const Fault& fault)
      : fault_(fault), communicator_(context.communicator, fault) {
    inner_ = entry.make({context.config, context.model, context.devices, communicator_, context.dtype, context.seed,
                         context.threads, context.micro_batch});
  }

  Range shard(int64_t rows) const override {
    const Range right = inner_->shard(rows);
    return fault_.shard ? fault_.shard(right, rows) : right;
  }
  strategy::StepResult step(const data::Batch& batch, const strategy::StepInput& input) override {
    if (!fault_.lr) return inner_->step(batch, input);
    strategy::StepInput changed = input;
    changed.lr = fault_.lr(input.lr, steps_++);
    return inner_->step(batch, changed);
  }
  strategy::EvalCounts evaluate(const data::Batch& batch) override {
    const strategy::EvalCounts right = inner_->evaluate(batch);
    return fault_.counts ? fault_.counts(right) : right;
  }
  std::vector<model::StateSlice> state() override {
    std::vector<model::StateSlice> state = inner_->state();
    if (fault_.state) fault_.state(state);
    return state;
  }
  void state_loaded() override { inner_->state_loaded(); }

 private:
  const Fault& fault_;
  int64_t steps_ = 0;
  FaultyCommunicator communicator_;
  std::unique_ptr<strategy::Strategy> inner_;
};

}  // namespace

std::unique_ptr<strategy::Strategy> make_faulty(const strategy::Entry& entry, const strategy::Context& context,
                                                const Fault& fault) {
  return std::make_unique<FaultyStrategy>(entry, context, fault);
}

}  // namespace mgt::verify
