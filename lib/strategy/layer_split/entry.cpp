// Network partitioning by layers: each device owns consecutive blocks, activations cross to the next device in forward
// and gradients cross back in backward. Devices work one after another, so it saves memory and no time.
#include "core/error.h"
#include "core/text.h"
#include "strategy/entry.h"
#include "strategy/parts/balance.h"
#include "strategy/parts/worker.h"

#include "torch_pch.h"

#include <cmath>
#include <memory>
#include <numeric>

namespace mgt::strategy::layer_split {
namespace {

void check_cut(const config::Config& config, const model::Model& model, int64_t devices) {
  const auto blocks = static_cast<int64_t>(model.blocks.size());
  if (devices > blocks) {
    config.error_at("devices", concat(counted(devices, "device"), " for the ", counted(blocks, "block"), " of ",
                                      model.name, "; use at most ", blocks));
  }
  const config::Section& section = config.section("strategy");
  if (!section.has("split")) return;
  const std::vector<int64_t>& counts = section.integers("split");
  if (static_cast<int64_t>(counts.size()) != devices ||
      std::accumulate(counts.begin(), counts.end(), int64_t{0}) != blocks) {
    config.error_at("strategy.split", concat("[", join(counts), "] must be ", counted(devices, "number"),
                                             " of blocks, ", blocks, " in all"));
  }
}

void check_devices(const config::Config& config, const model::Model& model, const std::vector<std::string>& devices) {
  check_cut(config, model, static_cast<int64_t>(devices.size()));
}

// How many blocks go on each device: as the config says, or balanced by multiply-adds.
std::vector<Range> cut_model(const Context& context) {
  const auto devices = static_cast<int64_t>(context.devices.size());
  check_cut(context.config, context.model, devices);
  const config::Section& section = context.config.section("strategy");
  if (!section.has("split")) return balanced_cut(context.model.multiply_adds(), devices);
  return ranges_of(section.integers("split"));
}

class LayerSplit final : public Strategy {
 public:
  explicit LayerSplit(const Context& context) : loss_(context.model.loss), micro_batch_(context.micro_batch) {
    const std::vector<Range> ranges = cut_model(context);
    for (std::size_t part = 0; part < ranges.size(); ++part) {
      parts_.push_back(std::make_unique<Worker>(context, context.devices[part], ranges[part]));
    }
  }

  Range shard(int64_t rows) const override { return {0, rows}; }

  StepResult step(const data::Batch& batch, const StepInput& input) override {
    for (auto& part : parts_) part->replica().zero_gradients();
    double loss = 0;
    const int64_t pieces = pieces_of(batch.size(), 1, micro_batch_);
    for (int64_t index = 0; index < pieces; ++index) {
      const data::Batch piece = piece_of(batch, pieces, index);
      const at::Tensor outputs = forward(piece.inputs, {.training = true});
      loss += backward(loss_, outputs, piece.targets.to(outputs.device()), input.samples);
    }
    double squares = 0;
    for (auto& part : parts_) {
      if (input.probe) input.probe->gradients_ready(0, part->parameters());
      squares += part->sum_of_squares();
    }
    for (auto& part : parts_) {
      part->update(input.lr, std::sqrt(squares));
      if (input.probe) input.probe->updated(0, part->parameters());
    }
    return {.loss = loss, .gradient_norm = std::sqrt(squares)};
  }

  EvalCounts evaluate(const data::Batch& batch) override {
    const at::NoGradGuard no_grad;
    const at::Tensor outputs = forward(batch.inputs, {.training = false});
    return {.correct = model::count_correct(outputs, batch.targets.to(outputs.device())), .total = batch.size()};
  }

  std::vector<model::StateSlice> state() override {
    std::vector<model::StateSlice> slices;
    for (auto& part : parts_) {
      for (model::StateSlice& slice : part->state(/*primary=*/true)) slices.push_back(slice);
    }
    return slices;
  }

  std::vector<Note> notes() const override {
    std::vector<Note> notes;
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      notes.push_back({"device " + std::to_string(part) + " blocks",
                       static_cast<double>(parts_[part]->replica().blocks().size()), ""});
    }
    return notes;
  }

  int64_t bytes_sent() const override { return bytes_sent_; }

 private:
  at::Tensor forward(at::Tensor value, const model::ForwardContext& context) {
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      model::Replica& replica = parts_[part]->replica();
      value = value.to(replica.device());
      // What crosses a cut: the activation now, and its gradient in backward.
      if (part > 0) bytes_sent_ += static_cast<int64_t>(value.nbytes()) * (context.training ? 2 : 1);
      value = replica.forward(value, context);
    }
    return value;
  }

  model::Loss loss_;
  MicroBatch micro_batch_;
  std::vector<std::unique_ptr<Worker>> parts_;
  int64_t bytes_sent_ = 0;
};

std::unique_ptr<Strategy> make(const Context& context) { return std::make_unique<LayerSplit>(context); }

}  // namespace

extern const Entry entry;
const Entry entry = {
    .variant = {.name = "layer_split",
                .summary = "consecutive layers on each device; saves memory, not time",
                .options = {{.key = "split",
                             .kind = config::Kind::integers,
                             .fallback = {},
                             .help = "blocks on each device; absent: balanced by multiply-adds",
                             .bounds = {.at_least = 1}}},
                .check = {}},
    .ranks = Ranks::one_process,
    .splits_batch = false,
    .check_devices = check_devices,
    .make = make,
};

}  // namespace mgt::strategy::layer_split
