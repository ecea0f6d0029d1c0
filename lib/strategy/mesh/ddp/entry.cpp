// Distributed data parallel: one rank per device, all equal. Each computes the gradient of its shard; buckets are
// all-reduced while backward still runs; every rank makes the same update. The simplest case of the mesh.
#include "strategy/entry.h"
#include "strategy/mesh/buckets.h"
#include "strategy/parts/microbatches.h"
#include "strategy/parts/worker.h"

#include "torch_pch.h"

#include <cmath>

namespace mgt::strategy::ddp {
namespace {

class Ddp final : public Strategy {
 public:
  explicit Ddp(const Context& context)
      : communicator_(context.communicator),
        worker_(context, context.devices.front()),
        micro_batch_(context.micro_batch),
        ranges_(cut_buckets(worker_.replica(), bucket_bytes(context.config))),
        virtual_shards_(virtual_shards_of(context.config, communicator_.size(), communicator_.rank())) {
    if (!virtual_shards_) buckets_.emplace(worker_.replica(), communicator_, ranges_, overlap(context.config));
    state_loaded();
  }

  Range shard(int64_t rows) const override {
    return virtual_shards_ ? virtual_shards_->rows(rows) : split(rows, communicator_.size(), communicator_.rank());
  }

  StepResult step(const data::Batch& batch, const StepInput& input) override {
    const double loss = virtual_shards_ ? sum_along_tree(on_device(batch), input.samples)
                                        : sum_in_buckets(on_device(batch), input.samples);
    if (input.probe) input.probe->gradients_ready(0, worker_.parameters());
    const double norm = std::sqrt(worker_.sum_of_squares());
    worker_.update(input.lr, norm);
    if (input.probe) input.probe->updated(0, worker_.parameters());
    statistics_differ_ = true;
    return {.loss = loss, .gradient_norm = norm};
  }

  EvalCounts evaluate(const data::Batch& batch) override {
    share_statistics();
    const EvalCounts mine = count(worker_.replica(), on_device(batch));
    at::Tensor counts = at::tensor({mine.correct, mine.total}, at::kLong).to(device());
    communicator_.all_reduce(counts).wait();
    counts = counts.cpu();
    return {.correct = counts[0].item<int64_t>(), .total = counts[1].item<int64_t>()};
  }

  std::vector<model::StateSlice> state() override { return worker_.state(/*primary=*/communicator_.rank() == 0); }

  // Rank 0's values become everyone's.
  void state_loaded() override {
    communicator_.broadcast(worker_.replica().parameters(), 0).wait();
    for (const optim::StateTensor& state : worker_.optimizer().state()) {
      at::Tensor flat = state.flat;
      communicator_.broadcast(flat, 0).wait();
    }
    statistics_differ_ = true;
    share_statistics();
  }

  std::vector<Note> notes() const override {
    std::vector<Note> notes = {{"buckets", static_cast<double>(ranges_.size()), ""}};
    if (buckets_) {
      notes.push_back({"buckets started in backward", static_cast<double>(buckets_->started_in_backward()), ""});
    }
    return notes;
  }

 private:
  static int64_t bucket_bytes(const config::Config& config) {
    return static_cast<int64_t>(std::llround(config.section("strategy").number("bucket_mb") * 1024 * 1024));
  }
  static bool overlap(const config::Config& config) { return config.section("strategy").boolean("overlap"); }

  // Both leave the mean gradient of the global batch in the replica, and return the mean loss.
  double sum_in_buckets(const data::Batch& own, int64_t samples) {
    const int64_t pieces = pieces_of(samples, communicator_.size(), micro_batch_);
    worker_.replica().zero_gradients();
    double own_loss = 0;
    for (int64_t piece = 0; piece < pieces; ++piece) {
      if (piece == pieces - 1) buckets_->begin();
      own_loss += worker_.add_gradients(piece_of(own, pieces, piece), samples, sum_over_ranks_);
    }
    buckets_->finish();
    at::Tensor loss = at::full({1}, own_loss, at::TensorOptions().dtype(at::kDouble).device(device()));
    communicator_.all_reduce(loss).wait();
    return loss.item<double>();
  }
  double sum_along_tree(const data::Batch& own, int64_t samples) {
    const double loss = worker_.compute_gradients(own, samples, *virtual_shards_);
    return sum_over_ranks(communicator_, worker_.replica().gradients(), ranges_, loss);
  }

  at::Device device() { return worker_.replica().device(); }
  data::Batch on_device(const data::Batch& batch) { return data::slice(batch, 0, batch.size(), device()); }

  // BatchNorm with local statistics: rank 0's running statistics are what is evaluated and saved.
  void share_statistics() {
    if (!statistics_differ_) return;
    for (at::Tensor buffer : worker_.replica().buffers()) communicator_.broadcast(buffer, 0).wait();
    statistics_differ_ = false;
  }

  comm::Communicator& communicator_;
  const model::SumOverReplicas sum_over_ranks_ = [this](at::Tensor& tensor) {
    communicator_.all_reduce(tensor).wait();
  };
  Worker worker_;
  int64_t micro_batch_;
  std::vector<Range> ranges_;
  std::optional<VirtualShards> virtual_shards_;
  std::optional<Buckets> buckets_;  // its hooks start all-reduces, which virtual shards do without
  bool statistics_differ_ = true;
};

std::unique_ptr<Strategy> make(const Context& context) { return std::make_unique<Ddp>(context); }

}  // namespace

extern const Entry entry;
const Entry entry = {
    .variant = {.name = "ddp",
                .summary = "one rank per device; gradients all-reduced in buckets while backward runs",
                .options = {{.key = "bucket_mb",
                             .kind = config::Kind::number,
                             .fallback = 4.0,
                             .help = "size of a gradient bucket in MiB",
                             .bounds = {.above = 0},
                             .examples = {0.001, 0.1}},
                            {.key = "overlap",
                             .kind = config::Kind::boolean,
                             .fallback = true,
                             .help = "start a bucket's all-reduce during backward, not after it"}},
                .check = {}},
    .ranks = Ranks::one_per_device,
    .can_be_invariant = true,
    .make = make,
};

}  // namespace mgt::strategy::ddp
