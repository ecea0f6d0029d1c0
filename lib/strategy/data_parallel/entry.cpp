// DataParallel: one process, one thread per device. The first device is the master: it scatters the batch, gathers and
// sums the gradients, makes the update and sends the parameters back. The others wait meanwhile; what that costs is
// measured and reported, beside the bytes that all pass the master: 2(k-1) S a step.
#include "comm/device.h"
#include "comm/local/local.h"
#include "core/clock.h"
#include "strategy/data_parallel/crew.h"
#include "strategy/entry.h"
#include "strategy/parts/worker.h"

#include "torch_pch.h"

#include <algorithm>
#include <cmath>
#include <memory>

namespace mgt::strategy::data_parallel {
namespace {

class DataParallel final : public Strategy {
 public:
  explicit DataParallel(const Context& context)
      : devices_(context.devices),
        micro_batch_(context.micro_batch),
        busy_s_(devices_.size(), 0.0),
        crew_(size(), [devices = context.devices, threads = context.threads](int64_t member) {
          at::set_num_threads(static_cast<int>(std::max<int64_t>(1, threads / static_cast<int64_t>(devices.size()))));
          const at::Device device = devices[static_cast<std::size_t>(member)];
          comm::services(device).set_current(device);
        }) {
    for (const at::Device device : devices_) workers_.push_back(std::make_unique<Worker>(context, device));
    const auto hub = comm::make_hub(size(), context.config.section("comm").number("timeout"));
    for (int64_t member = 0; member < size(); ++member) {
      sum_over_members_.push_back([communicator = std::shared_ptr(comm::make_local(hub, member))](at::Tensor& tensor) {
        communicator->all_reduce(tensor).wait();
      });
    }
  }

  Range shard(int64_t rows) const override { return {0, rows}; }

  StepResult step(const data::Batch& batch, const StepInput& input) override {
    const double started_s = real_clock().now_s();
    std::vector<double> losses(workers_.size(), 0.0);
    const int64_t pieces = pieces_of(batch.size(), size(), micro_batch_);
    crew_.run([&](int64_t member) {
      const double from_s = real_clock().now_s();
      losses[index(member)] = worker(member).compute_gradients(part_of(batch, member), input.samples, pieces,
                                                               sum_over_members_[index(member)]);
      busy_s_[index(member)] += real_clock().now_s() - from_s;
    });
    const double update_from_s = real_clock().now_s();
    show(input.probe, &Probe::gradients_computed);
    gather_gradients();
    if (input.probe) input.probe->gradients_ready(0, worker(0).parameters());
    const double norm = std::sqrt(worker(0).sum_of_squares());
    worker(0).update(input.lr, norm);
    broadcast_parameters();
    show(input.probe, &Probe::updated);
    const double ended_s = real_clock().now_s();
    busy_s_[0] += ended_s - update_from_s;
    steps_s_ += ended_s - started_s;
    double loss = 0;
    for (const double part : losses) loss += part;
    return {.loss = loss, .gradient_norm = norm};
  }

  EvalCounts evaluate(const data::Batch& batch) override {
    copy_primary_to_replicas(state(), model::StateKind::buffer);
    std::vector<EvalCounts> counts(workers_.size());
    crew_.run([&](int64_t member) { counts[index(member)] = count(worker(member).replica(), part_of(batch, member)); });
    EvalCounts sum;
    for (const EvalCounts& part : counts) {
      sum.correct += part.correct;
      sum.total += part.total;
    }
    return sum;
  }

  // All devices' replicas; the master's are primary. The others' optimizers are never used.
  std::vector<model::StateSlice> state() override {
    std::vector<model::StateSlice> slices = worker(0).state(/*primary=*/true);
    for (int64_t member = 1; member < size(); ++member) {
      for (model::StateSlice& slice : worker(member).replica().state(/*primary=*/false)) slices.push_back(slice);
    }
    return slices;
  }

  void state_loaded() override { copy_primary_to_replicas(state()); }

  std::vector<Note> notes() const override {
    std::vector<Note> notes = {{"master sent and received", static_cast<double>(master_bytes_), "bytes"}};
    for (std::size_t member = 1; member < workers_.size(); ++member) {
      const double idle = steps_s_ > 0 ? 100.0 * (1.0 - busy_s_[member] / steps_s_) : 0.0;
      notes.push_back({"device " + std::to_string(member) + " idle", idle, "%"});
    }
    return notes;
  }

  int64_t bytes_sent() const override { return master_bytes_; }

 private:
  static std::size_t index(int64_t member) { return static_cast<std::size_t>(member); }
  int64_t size() const { return static_cast<int64_t>(devices_.size()); }
  Worker& worker(int64_t member) { return *workers_[index(member)]; }

  data::Batch part_of(const data::Batch& batch, int64_t member) const {
    const Range rows = split(batch.size(), size(), member);
    return data::slice(batch, rows.begin, rows.end, devices_[index(member)]);
  }

  void show(Probe* probe, void (Probe::*moment)(int64_t, const Probe::Parameters&)) {
    for (int64_t member = 0; probe && member < size(); ++member) (probe->*moment)(member, worker(member).parameters());
  }

  void gather_gradients() {
    const at::NoGradGuard no_grad;
    at::Tensor& sum = worker(0).replica().gradients();
    for (int64_t member = 1; member < size(); ++member) {
      sum.add_(worker(member).replica().gradients().to(sum.device()));
      master_bytes_ += static_cast<int64_t>(sum.nbytes());
    }
  }

  void broadcast_parameters() {
    const at::NoGradGuard no_grad;
    const at::Tensor& master = worker(0).replica().parameters();
    for (int64_t member = 1; member < size(); ++member) {
      worker(member).replica().parameters().copy_(master);
      master_bytes_ += static_cast<int64_t>(master.nbytes());
    }
  }

  std::vector<at::Device> devices_;
  MicroBatch micro_batch_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<model::SumOverReplicas> sum_over_members_;  // for `bn: sync`; one a device
  std::vector<double> busy_s_;                            // by device
  double steps_s_ = 0;
  int64_t master_bytes_ = 0;
  Crew crew_;  // last: its threads end before what they use
};

std::unique_ptr<Strategy> make(const Context& context) { return std::make_unique<DataParallel>(context); }

}  // namespace

extern const Entry entry;
const Entry entry = {
    .variant = {.name = "data_parallel",
                .summary = "one process, a thread per device; a master gathers gradients and updates",
                .options = {},
                .check = {}},
    .ranks = Ranks::one_process,
    .make = make,
};

}  // namespace mgt::strategy::data_parallel
