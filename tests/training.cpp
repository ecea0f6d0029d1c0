// The functions of training.h.
#include "training.h"

#include "checkpoint/gather.h"
#include "checkpoint/weights.h"
#include "comm/gloo/gloo.h"
#include "comm/local/local.h"
#include "config/reader.h"
#include "config/run.h"
#include "core/error.h"
#include "core/text.h"
#include "data/entry.h"
#include "launch/rank.h"
#include "model/entry.h"
#include "optim/entry.h"
#include "test.h"

#include "torch_pch.h"

#include <cmath>
#include <thread>

namespace mgt::test {
namespace {

// Whole slices are views: what is kept is a copy.
std::vector<model::StateSlice> copied(std::vector<model::StateSlice> state) {
  for (model::StateSlice& slice : state) slice.view = slice.view.clone();
  return state;
}

// What one rank does: everything but the communicator's making.
void train_rank(const Training& training, const config::Config& config, comm::Communicator& communicator,
                Outcome& outcome) {
  at::set_num_threads(1);
  TrainingRank own(training, config, communicator);
  own.begin();
  strategy::Strategy& made = own.strategy();
  const bool first = communicator.rank() == 0;
  for (int64_t step = training.first_step; step < training.first_step + training.steps; ++step) {
    const strategy::StepResult done = own.step(step);
    if (!first) continue;
    outcome.losses.push_back(done.loss);
    outcome.grad_norms.push_back(done.gradient_norm);
    outcome.samples.push_back(own.samples(step));
  }
  // Before evaluation, which shares BatchNorm statistics.
  std::vector<std::map<std::string, at::Tensor>> replicas(1);
  for (const model::StateSlice& slice : made.state()) {
    if (slice.kind == model::StateKind::optimizer || !model::is_whole(slice)) continue;
    if (replicas.back().contains(slice.name)) replicas.emplace_back();
    replicas.back()[slice.name] = slice.view.clone();
  }
  std::vector<model::StateSlice> state = copied(checkpoint::gather(communicator, made.state(), at::kCPU));
  // What ranks have in pieces, rank 0 shows.
  for (const model::StateSlice& slice : state) {
    if (slice.kind == model::StateKind::optimizer) continue;
    if (!replicas.front().contains(slice.name)) replicas.front()[slice.name] = slice.view;
  }
  if (training.data.test) {
    const strategy::EvalCounts counts = own.evaluate(training.data.test->size());
    if (first) outcome.test = counts;
  }
  const auto rank = static_cast<std::size_t>(communicator.rank());
  outcome.bytes_sent[rank] = communicator.ledger().total().bytes_sent;
  if (first) {
    outcome.notes = made.notes();
    outcome.state = std::move(state);
  }
  const bool in_one_process = strategy::entry_of(config).ranks == strategy::Ranks::one_process;
  if (in_one_process)
    outcome.replicas = std::move(replicas);
  else
    outcome.replicas[rank] = std::move(replicas.front());
}

}  // namespace

TrainingRank::TrainingRank(const Training& training, const config::Config& config, comm::Communicator& communicator)
    : training_(training),
      config_(config),
      communicator_(communicator),
      entry_(strategy::entry_of(config)),
      model_(model::build(config)),
      plan_(launch::batch_plan(config, training.devices)),
      dtype_(config::run_of(config).precision == config::Precision::fp64 ? at::kDouble : at::kFloat),
      sampler_(training.data.train.size(), plan_.batch_size,
               training.order.value_or(data::file_order(training.data.train.size()))),
      schedule_(optim::make_schedule(config, {.steps = training.first_step + training.steps,
                                              .steps_per_epoch = sampler_.steps_per_epoch(),
                                              .batch_size = plan_.batch_size})) {}

void TrainingRank::begin() {
  const int64_t here = entry_.ranks == strategy::Ranks::one_process ? training_.devices : 1;
  strategy_ = entry_.make({config_,
                           model_,
                           std::vector<at::Device>(static_cast<std::size_t>(here), at::kCPU),
                           communicator_,
                           dtype_,
                           config::run_of(config_).seed,
                           here,
                           {plan_.batch_size, plan_.accumulate}});
  std::vector<model::StateSlice> state = strategy_->state();
  if (!training_.init.empty()) checkpoint::load_weights(real_file_system(), training_.init, model_, state);
  if (training_.fill) training_.fill(state);
  strategy_->state_loaded();
}

std::vector<int64_t> TrainingRank::indices(int64_t step) {
  return sampler_.indices(step / sampler_.steps_per_epoch(), step % sampler_.steps_per_epoch());
}

int64_t TrainingRank::samples(int64_t step) { return static_cast<int64_t>(indices(step).size()); }

strategy::StepResult TrainingRank::step(int64_t number, strategy::Probe* probe) {
  const std::vector<int64_t> rows = indices(number);
  const auto samples = static_cast<int64_t>(rows.size());
  const Range mine = strategy_->shard(samples);
  const data::Batch batch = data::gather(
      training_.data.train,
      std::span(rows).subspan(static_cast<std::size_t>(mine.begin), static_cast<std::size_t>(mine.size())), dtype_);
  return strategy_->step(batch, {.lr = schedule_(number), .samples = samples, .probe = probe});
}

strategy::EvalCounts TrainingRank::evaluate(int64_t rows) {
  const Range mine = strategy_->shard(rows);
  std::vector<int64_t> indices;
  for (int64_t row = mine.begin; row < mine.end; ++row) indices.push_back(row);
  return strategy_->evaluate(data::gather(*training_.data.test, indices, dtype_));
}

config::Config config_of(const std::string& yaml) { return config::resolve(launch::schema(), {"test.yaml", yaml}); }

void on_ranks(int64_t size, Backend backend, double timeout_s,
              const std::function<void(comm::Communicator&)>& rank_function, comm::Algorithm algorithm) {
  const auto hub = comm::make_hub(size, timeout_s);
  const auto rendezvous = comm::rendezvous_in_memory();
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        at::set_num_threads(1);
        const auto communicator = backend == Backend::local
                                      ? comm::make_local(hub, rank, algorithm)
                                      : comm::make_gloo(*rendezvous, rank, size, timeout_s, algorithm);
        rank_function(*communicator);
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
        comm::abort(*hub, error.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

Outcome train(const Training& training) {
  const config::Config config = config_of(training.yaml);
  const bool ranks = strategy::entry_of(config).ranks == strategy::Ranks::one_per_device;
  const int64_t size = ranks ? training.devices : 1;
  Outcome outcome;
  outcome.bytes_sent.resize(static_cast<std::size_t>(size));
  outcome.replicas.resize(static_cast<std::size_t>(size));
  on_ranks(size, training.backend, 30,
           [&](comm::Communicator& communicator) { train_rank(training, config, communicator, outcome); });
  return outcome;
}

data::Splits golden_data() {
  const std::string folder = cases() + "/1_trajectories/data/";
  const config::Config config =
      config_of(concat("data: {name: idx, images: ", folder, "train-images-idx3-ubyte, labels: ", folder,
                       "train-labels-idx1-ubyte, test_images: ", folder,
                       "test-images-idx3-ubyte.gz, test_labels: ", folder, "test-labels-idx1-ubyte.gz}"));
  return data::load(config, {.files = real_file_system(), .seed = 0});
}

std::unique_ptr<optim::Optimizer> sgd_for(const at::Tensor& parameter) {
  return optim::make(config_of("optimizer: sgd"), optim::whole(parameter));
}

std::vector<const void*> replica_addresses(const std::string& yaml, int64_t devices) {
  const config::Config config = config_of(yaml);
  const model::Model model = model::build(config);
  const auto communicator = comm::make_local(comm::make_hub(1, 1), 0);
  const auto made = strategy::entry_of(config).make(
      {config, model, std::vector<at::Device>(static_cast<std::size_t>(devices), at::kCPU), *communicator, at::kFloat,
       /*seed=*/0, /*threads=*/1, /*micro_batch=*/{}});
  std::vector<const void*> addresses;
  for (const model::StateSlice& slice : made->state()) {
    if (slice.kind == model::StateKind::parameter) addresses.push_back(slice.view.data_ptr());
  }
  return addresses;
}

double relative_difference(const at::Tensor& a, const at::Tensor& b) {
  const double scale = b.to(at::kDouble).norm().item<double>();
  const double difference = (a.to(at::kDouble) - b.to(at::kDouble)).norm().item<double>();
  return scale > 0 ? difference / scale : difference;
}

}  // namespace mgt::test
