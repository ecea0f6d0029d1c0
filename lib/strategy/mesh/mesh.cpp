#include "strategy/mesh/mesh.h"

#include "strategy/mesh/shared_model.h"
#include "strategy/parts/microbatches.h"
#include "strategy/parts/worker.h"

#include "torch_pch.h"

#include <cmath>

namespace mgt::strategy {
namespace {

class Mesh final : public Strategy {
 public:
  Mesh(const Context& context, const Sharing& sharing)
      : communicator_(context.communicator),
        sharing_(sharing),
        micro_batch_(context.micro_batch),
        model_(context, sharing, {0, static_cast<int64_t>(context.model.blocks.size())}),
        virtual_shards_(virtual_shards_of(context.config, communicator_.size(), communicator_.rank())) {
    share_statistics();
  }

  Range shard(int64_t rows) const override {
    return virtual_shards_ ? virtual_shards_->rows(rows) : split(rows, communicator_.size(), communicator_.rank());
  }

  StepResult step(const data::Batch& batch, const StepInput& input) override {
    model_.begin_step();
    const StepResult result = virtual_shards_ ? compute_along_tree(on_device(batch), input.samples)
                                              : compute_in_pieces(on_device(batch), input.samples);
    if (input.probe) input.probe->gradients_ready(0, model_.parameters());
    model_.update(input.lr, result.gradient_norm);
    if (input.probe) input.probe->updated(0, model_.parameters());
    statistics_differ_ = true;
    return result;
  }

  EvalCounts evaluate(const data::Batch& batch) override {
    share_statistics();
    const EvalCounts mine = model_.count(on_device(batch));
    at::Tensor counts = at::tensor({mine.correct, mine.total}, at::kLong).to(device());
    communicator_.all_reduce(counts).wait();
    counts = counts.cpu();
    return {.correct = counts[0].item<int64_t>(), .total = counts[1].item<int64_t>()};
  }

  std::vector<model::StateSlice> state() override { return model_.state(); }

  void state_loaded() override {
    model_.state_loaded();
    statistics_differ_ = true;
    share_statistics();
  }

  std::vector<Note> notes() const override {
    const Resident bytes = model_.resident();
    std::vector<Note> notes = {{"units", static_cast<double>(model_.units()), ""},
                               {"reduced in backward", static_cast<double>(model_.reductions_in_backward()), "units"}};
    const auto add = [&notes](const char* name, int64_t value) {
      notes.push_back({name, static_cast<double>(value), "bytes"});
    };
    add("parameters of a rank", bytes.parameters);
    add("gradients of a rank", bytes.gradients);
    add("optimizer state of a rank", bytes.optimizer);
    add("padding", bytes.padding);
    if (sharing_.shares_parameters()) add("gathered at most", bytes.gathered_peak);
    if (sharing_.shares_gradients()) add("gradients on their way at most", bytes.buckets_peak);
    return notes;
  }

 private:
  // Both leave the mean gradient of the global batch where this rank updates it.
  StepResult compute_in_pieces(const data::Batch& own, int64_t samples) {
    const int64_t pieces = pieces_of(samples, communicator_.size(), micro_batch_);
    double loss = 0;
    for (int64_t piece = 0; piece < pieces; ++piece) {
      loss += model_.add_gradients(piece_of(own, pieces, piece), samples, /*last=*/piece == pieces - 1);
    }
    model_.finish_gradients();
    const double squares = model_.sum_of_squares();
    at::Tensor sums = at::tensor({loss, squares}, at::kDouble).to(device());
    communicator_.all_reduce(sums).wait();
    sums = sums.cpu();
    return {.loss = sums[0].item<double>(),
            .gradient_norm = std::sqrt(model_.has_whole_gradients() ? squares : sums[1].item<double>())};
  }

  StepResult compute_along_tree(const data::Batch& own, int64_t samples) {
    const double loss = model_.sum_along_tree(own, samples, *virtual_shards_);
    return {.loss = loss, .gradient_norm = std::sqrt(model_.sum_of_squares())};
  }

  at::Device device() { return model_.replica().device(); }
  data::Batch on_device(const data::Batch& batch) { return data::slice(batch, 0, batch.size(), device()); }

  // BatchNorm with local statistics: rank 0's running statistics are what is evaluated and saved.
  void share_statistics() {
    if (!statistics_differ_) return;
    for (at::Tensor buffer : model_.replica().buffers()) communicator_.broadcast(buffer, 0).wait();
    statistics_differ_ = false;
  }

  comm::Communicator& communicator_;
  Sharing sharing_;
  int64_t micro_batch_;
  SharedModel model_;
  std::optional<VirtualShards> virtual_shards_;
  bool statistics_differ_ = true;
};

}  // namespace

std::unique_ptr<Strategy> make_mesh(const Context& context, const Sharing& sharing) {
  return std::make_unique<Mesh>(context, sharing);
}

config::Option bucket_option() {
  return {.key = "bucket_mb",
          .kind = config::Kind::number,
          .fallback = 4.0,
          .help = "size of a gradient bucket in MiB",
          .bounds = {.above = 0},
          .examples = {0.001, 0.1}};
}

int64_t bucket_bytes(const config::Config& config) {
  return static_cast<int64_t>(std::llround(config.section("strategy").number("bucket_mb") * 1024 * 1024));
}

}  // namespace mgt::strategy
