#include "launch/rank.h"

#include "checkpoint/gather.h"
#include "checkpoint/weights.h"
#include "comm/device.h"
#include "comm/gloo/gloo.h"
#include "comm/local/local.h"
#include "core/error.h"
#include "core/log.h"
#include "core/text.h"
#include "data/entry.h"
#include "launch/data_fit.h"
#include "model/entry.h"
#include "optim/clip.h"
#include "optim/entry.h"
#include "optim/schedule.h"
#include "strategy/entry.h"
#include "train/loop.h"

#include "torch_pch.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mgt::launch {
namespace {

using strategy::Ranks;

// "1032544", "35.2"
std::string number_text(double value) { return fixed(value, std::floor(value) == value ? 0 : 1); }

// "1032544 bytes", or where ranks differ "1032544 bytes (by rank: 516480, 1032544)".
std::string note_text(const strategy::Note& note, const std::vector<double>& by_rank) {
  const double sum = std::accumulate(by_rank.begin(), by_rank.end(), 0.0);
  const double of_all = note.over_ranks == strategy::Note::OverRanks::mean ? sum / static_cast<double>(by_rank.size())
                                                                           : std::ranges::max(by_rank);
  std::vector<std::string> numbers;
  for (const double value : by_rank) numbers.push_back(number_text(value));
  const bool same = std::ranges::all_of(numbers, [&](const std::string& number) { return number == numbers.front(); });
  return concat(number_text(of_all), note.unit.empty() ? "" : " ", note.unit,
                same ? "" : concat(" (by rank: ", join(numbers), ")"));
}

// One rank and all it owns, built in the order of the members.
class Rank {
 public:
  Rank(const config::Config& config, const Placement& placement, const RankContext& context, FileSystem& files)
      : config_(config),
        placement_(placement),
        context_(context),
        files_(files),
        run_(config::run_of(config)),
        entry_(strategy::entry_of(config)),
        dtype_(run_.precision == config::Precision::fp64 ? at::kDouble : at::kFloat) {}

  // Everything but the training itself. Others wait here for ranks that are late.
  void prepare() {
    at::set_num_threads(static_cast<int>(placement_.threads_per_rank));
    devices_ = own_devices();
    comm::services(devices_.front()).set_current(devices_.front());
    model_ = model::build(config_);
    check_fit(config_, model_, *context_.data);
    sampler_ = make_sampler();
    data_ = resident_data();
    communicator_ = connect();
    const strategy::Context made_of{.config = config_,
                                    .model = model_,
                                    .devices = devices_,
                                    .communicator = *communicator_,
                                    .dtype = dtype_,
                                    .seed = run_.seed,
                                    .threads = placement_.threads_per_rank,
                                    .micro_batch = {placement_.batch.batch_size, placement_.batch.accumulate}};
    strategy_ = context_.interposer ? context_.interposer->make(entry_, made_of) : entry_.make(made_of);
    if (run_.init) load_init();
  }

  train::Summary train(const std::string& weights_path, train::Observer& observer) {
    const optim::Schedule schedule = optim::make_schedule(config_, length());  // may throw: before anything is written
    const train::RunInfo info = describe();
    if (context_.rank == 0) observer.run_started(info);
    train::Summary summary = train::run({.data = data_,
                                         .sampler = *sampler_,
                                         .strategy = *strategy_,
                                         .communicator = *communicator_,
                                         .devices = devices_,
                                         .dtype = dtype_,
                                         .lr = schedule,
                                         .epochs = run_.epochs,
                                         .max_steps = run_.max_steps,
                                         .stop_signal = context_.stop_signal,
                                         .probe = context_.interposer ? context_.interposer->probe() : nullptr},
                                        observer);
    summary.info = info;
    const auto weights = complete(summary);
    if (context_.rank == 0 && context_.interposer) context_.interposer->saved(weights);
    if (context_.rank == 0 && !weights_path.empty()) checkpoint::save_weights(files_, weights_path, weights);
    return summary;
  }

  train::Summary evaluate() {
    if (!data_.test) throw DataError(concat(data_.train.name, ": no test set to evaluate on; name one in `data`"));
    const strategy::EvalCounts counts = train::evaluate(*strategy_, *data_.test, dtype_);
    train::Summary summary;
    summary.info = describe();
    summary.evaluated = true;
    summary.test_correct = counts.correct;
    summary.test_total = counts.total;
    summary.best_test_acc = train::accuracy(counts.correct, counts.total);
    complete(summary);
    return summary;
  }

 private:
  std::vector<at::Device> own_devices() const {
    std::vector<at::Device> devices(placement_.devices.begin(), placement_.devices.end());
    if (entry_.ranks == Ranks::one_process) return devices;
    return {devices.at(static_cast<std::size_t>(context_.rank))};
  }

  data::Sampler make_sampler() const {
    const int64_t size = context_.data->train.size();
    data::Order order = run_.shuffle ? data::shuffled_order(size, run_.seed) : data::file_order(size);
    if (context_.interposer) order = context_.interposer->order(std::move(order));
    data::Sampler sampler(size, placement_.batch.batch_size, order, config_.section("data").boolean("drop_last"));
    if (placement_.batch.batch_size > size && context_.rank == 0) {
      log::warning(concat("batch_size ", placement_.batch.batch_size, " is more than the ",
                          counted(size, "training sample"), ": each epoch is one step"));
    }
    if (sampler.steps_per_epoch() == 0) {
      config_.error_at("batch_size", concat(placement_.batch.batch_size, " is more than the ", size,
                                            " training samples, and drop_last leaves no batch"));
    }
    return sampler;
  }

  // A rank with one GPU keeps the data there, and batches never cross the bus.
  data::Splits resident_data() const {
    data::Splits data = *context_.data;
    if (devices_.size() > 1 || devices_.front().is_cpu()) return data;
    data.train = data::to_device(data.train, devices_.front());
    if (data.test) data.test = data::to_device(*data.test, devices_.front());
    return data;
  }

  std::unique_ptr<comm::Communicator> connect() const {
    const comm::Algorithm algorithm = comm::algorithm_of(run_.comm_algorithm);
    if (context_.hub) return comm::make_local(context_.hub, context_.rank, algorithm);
    require(context_.rendezvous != nullptr, "a rank has a hub or a rendezvous");
    const int64_t size = placement_.world_size;
    if (placement_.backend == "gloo") {
      return comm::make_gloo(*context_.rendezvous, context_.rank, size, run_.comm_timeout_s, algorithm);
    }
    return comm::services(devices_.front())
        .make_communicator(*context_.rendezvous, context_.rank, size, devices_.front(), run_.comm_timeout_s);
  }

  void load_init() {
    checkpoint::load_weights(files_, *run_.init, model_, strategy_->state());
    strategy_->state_loaded();
  }

  optim::RunLength length() const {
    const int64_t steps = run_.epochs * sampler_->steps_per_epoch();
    return {.steps = std::min(steps, run_.max_steps.value_or(steps)),
            .steps_per_epoch = sampler_->steps_per_epoch(),
            .batch_size = placement_.batch.batch_size};
  }

  train::RunInfo describe() const {
    return {.strategy = entry_.variant.name,
            .model = model_.name,
            .data = config_.section("data").text("name"),
            .devices = placement_.devices,
            .world_size = placement_.world_size,
            .threads_per_rank = placement_.threads_per_rank,
            .parameters = model_.parameter_count(),
            .train_samples = data_.train.size(),
            .test_samples = data_.test ? data_.test->size() : 0,
            .batch_size = placement_.batch.batch_size,
            .accumulate = placement_.batch.accumulate,
            .steps_per_epoch = sampler_->steps_per_epoch(),
            .epochs = run_.epochs,
            .bayes_accuracy = data_.bayes_accuracy};
  }

  // Returns the trained weights, on rank 0.
  std::vector<model::StateSlice> complete(train::Summary& summary) {
    gather_costs(summary);
    gather_notes(summary);
    auto weights = checkpoint::gather_weights(*communicator_, strategy_->state(), devices_.front());
    if (context_.rank != 0) return weights;
    summary.weights_sha256 = checkpoint::hash_weights(weights).sha256;
    summary.data_sha256 = data::content_sha256(*context_.data);
    return weights;
  }

  // The same numbers of every rank, (world, numbers): each fills its own row, and the sum over the ranks is the table.
  // Doubles hold bytes exactly up to 2^53.
  at::Tensor by_rank(const std::vector<double>& own) {
    at::Tensor table = at::zeros({placement_.world_size, static_cast<int64_t>(own.size())}, at::kDouble);
    table[context_.rank].copy_(at::tensor(own));
    table = table.to(devices_.front());
    communicator_->all_reduce(table).wait();
    return table.cpu();
  }

  void gather_notes(train::Summary& summary) {
    const std::vector<strategy::Note> notes = strategy_->notes();
    if (notes.empty()) return;
    std::vector<double> own;
    for (const strategy::Note& note : notes) own.push_back(note.value);
    const at::Tensor all = by_rank(own).t().contiguous();  // (notes, world)
    for (std::size_t index = 0; index < notes.size(); ++index) {
      const auto* first = all.const_data_ptr<double>() + static_cast<int64_t>(index) * placement_.world_size;
      summary.notes.emplace_back(notes[index].name, note_text(notes[index], {first, first + placement_.world_size}));
    }
  }

  void gather_costs(train::Summary& summary) {
    const comm::Account spent = communicator_->ledger().total();
    const at::Tensor costs =
        by_rank({static_cast<double>(peak_bytes()), static_cast<double>(spent.bytes_sent + strategy_->bytes_sent()),
                 spent.wait_s, static_cast<double>(summary.train_bytes_sent)});
    summary.peak_bytes = static_cast<int64_t>(costs.select(1, 0).max().item<double>());
    summary.bytes_sent = static_cast<int64_t>(costs.select(1, 1).sum().item<double>());
    summary.comm_wait_s = costs.select(1, 2).max().item<double>();
    summary.train_bytes_sent = static_cast<int64_t>(costs.select(1, 3).sum().item<double>());
  }

  int64_t peak_bytes() const {
    int64_t peak = 0;
    for (const at::Device device : devices_) peak = std::max(peak, comm::services(device).memory(device).peak_bytes);
    return peak;
  }

  const config::Config& config_;
  const Placement& placement_;
  const RankContext& context_;
  FileSystem& files_;
  const config::Run run_;
  const strategy::Entry& entry_;
  const at::ScalarType dtype_;
  std::vector<at::Device> devices_;
  model::Model model_;
  std::optional<data::Sampler> sampler_;
  data::Splits data_;
  std::unique_ptr<comm::Communicator> communicator_;
  std::unique_ptr<strategy::Strategy> strategy_;
};

// LibTorch's allocators say so in words alone.
bool is_out_of_memory(const c10::Error& error) {
  const std::string text = error.what();
  return text.find("DefaultCPUAllocator") != std::string::npos || text.find("alloc_cpu") != std::string::npos ||
         text.find("out of memory") != std::string::npos;
}

template <typename Work>
train::Summary as_rank(Rank& rank, const RankContext& context, const Work& work) {
  try {
    try {
      rank.prepare();
      return work();
    } catch (const c10::Error& error) {
      if (is_out_of_memory(error)) throw std::bad_alloc();
      throw;
    }
  } catch (...) {
    if (context.on_failure) context.on_failure();
    throw;
  }
}

}  // namespace

std::shared_ptr<const data::Splits> load_data(const config::Config& config, const FileSystem& files) {
  return std::make_shared<const data::Splits>(
      data::load(config, {.files = files, .seed = config::run_of(config).seed}));
}

train::Summary train_rank(const config::Config& config, const Placement& placement, const RankContext& context,
                          FileSystem& files, const std::string& weights_path, train::Observer& observer) {
  Rank rank(config, placement, context, files);
  return as_rank(rank, context, [&] { return rank.train(weights_path, observer); });
}

train::Summary evaluate_rank(const config::Config& config, const Placement& placement, const RankContext& context,
                             FileSystem& files) {
  Rank rank(config, placement, context, files);
  return as_rank(rank, context, [&] { return rank.evaluate(); });
}

config::Schema schema() {
  return {
      .top = config::run_options(),
      .sections = {model::section(), data::section(), strategy::section(), optim::section(), optim::schedule_section(),
                   optim::clip_section(), config::comm_section(), config::log_section()}};
}

}  // namespace mgt::launch
