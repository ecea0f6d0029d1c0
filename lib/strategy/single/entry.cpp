// One device, one replica: what every other strategy must equal.
#include "core/text.h"
#include "strategy/entry.h"
#include "strategy/parts/worker.h"

#include <cmath>

namespace mgt::strategy::single {
namespace {

class Single final : public Strategy {
 public:
  explicit Single(const Context& context)
      : device_(context.devices.front()),
        worker_(context, device_),
        micro_batch_(context.micro_batch),
        virtual_shards_(virtual_shards_of(context.config, 1, 0)) {}

  Range shard(int64_t rows) const override { return {0, rows}; }

  StepResult step(const data::Batch& batch, const StepInput& input) override {
    const data::Batch rows = data::slice(batch, 0, batch.size(), device_);
    const double loss = virtual_shards_
                            ? worker_.compute_gradients(rows, input.samples, *virtual_shards_)
                            : worker_.compute_gradients(rows, input.samples, pieces_of(rows.size(), 1, micro_batch_));
    if (input.probe) input.probe->gradients_ready(0, worker_.parameters());
    const double norm = std::sqrt(worker_.sum_of_squares());
    worker_.update(input.lr, norm);
    if (input.probe) input.probe->updated(0, worker_.parameters());
    return {.loss = loss, .gradient_norm = norm};
  }

  EvalCounts evaluate(const data::Batch& batch) override {
    return count(worker_.replica(), data::slice(batch, 0, batch.size(), device_));
  }

  std::vector<model::StateSlice> state() override { return worker_.state(/*primary=*/true); }

 private:
  at::Device device_;
  Worker worker_;
  MicroBatch micro_batch_;
  std::optional<VirtualShards> virtual_shards_;
};

std::unique_ptr<Strategy> make(const Context& context) { return std::make_unique<Single>(context); }

void check(const config::Config& config) {
  const config::DeviceRequest& devices = config.top().devices("devices");
  const auto count = devices.names.empty() ? devices.count : static_cast<int64_t>(devices.names.size());
  if (count > 1) {
    config.error_at("strategy.name", concat("single uses one device, but devices is ", count,
                                            "; choose another strategy, such as ddp, or devices: 1"));
  }
}

}  // namespace

extern const Entry entry;
const Entry entry = {
    .variant = {.name = "single", .summary = "one device", .options = {}, .check = check},
    .ranks = Ranks::one_process,
    .splits_batch = false,
    .can_be_invariant = true,
    .make = make,
};

}  // namespace mgt::strategy::single
