#include "verify/oracle.h"

#include "comm/local/local.h"
#include "core/error.h"
#include "core/text.h"
#include "launch/placement.h"
#include "launch/threads.h"
#include "verify/spectator.h"

#include "torch_pch.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <list>

namespace mgt::verify {
namespace {

using model::StateKind;
using model::StateSlice;

at::Tensor kept(const at::Tensor& tensor) { return tensor.detach().cpu().clone(); }

class Recorder final : public Sink {
 public:
  void gradients(int64_t, const strategy::Probe::Parameters& parameters) override {
    for (const auto& parameter : parameters) step_.gradients[parameter.name] = kept(parameter.tensor.grad());
  }
  void step(const train::StepRecord& record, const std::vector<StateSlice>& state) override {
    step_.loss = record.loss;
    for (const StateSlice& slice : state) step_.state[slice.kind][slice.name] = kept(slice.view);
    trace_.steps.push_back(std::exchange(step_, {}));
  }
  void evaluation(const train::EpochRecord& record) override {
    if (record.evaluated) trace_.evaluations.push_back({record.test_correct, record.test_total});
  }
  Trace take() { return std::move(trace_); }

 private:
  StepTrace step_;
  Trace trace_;
};

class Comparer final : public Sink {
 public:
  Comparer(const Trace& expected, Findings& findings, int64_t rank, bool own_statistics)
      : expected_(expected), findings_(findings), rank_(rank), own_statistics_(own_statistics) {}

  void gradients(int64_t replica, const strategy::Probe::Parameters& parameters) override {
    const TensorsByName& expected = now().gradients;
    const double all = norm_of(expected);
    for (const strategy::NamedTensor& parameter : parameters) {
      const at::Tensor& whole = expected.at(parameter.name);
      StateSlice place = model::whole(parameter.name, StateKind::parameter, whole, true);
      if (parameter.box) place.box = *parameter.box;
      place.flat = parameter.flat;
      place.view = parameter.tensor;
      add(Quantity::gradients, parameter.name, replica,
          measure(parameter.tensor.grad(), model::piece_of(whole, place), all));
    }
  }

  void step(const train::StepRecord& record, const std::vector<StateSlice>& state) override {
    add(Quantity::loss, "", 0, measure(record.loss, now().loss));
    add(Quantity::gradient_norm, "", 0, measure(record.gradient_norm, norm_of(now().gradients)));
    std::map<std::string, int64_t> seen;  // replicas of this process so far, by tensor
    for (const StateSlice& slice : state) {
      // With statistics of their own, all but the first replica have others than the reference keeps.
      if (slice.kind == StateKind::buffer && own_statistics_ && !slice.primary) continue;
      const TensorsByName& expected = now().state.at(slice.kind);
      add(quantity_of(slice.kind), slice.name, seen[slice.name]++,
          measure(slice.view, model::piece_of(expected.at(slice.name), slice), norm_of(expected)));
    }
    ++step_;
  }

  void evaluation(const train::EpochRecord& record) override {
    if (!record.evaluated) return;
    const strategy::EvalCounts& right = expected_.evaluations.at(epoch_++);
    const auto rows = static_cast<double>(std::abs(record.test_correct - right.correct));
    const double size = record.test_total == right.total ? rows : std::numeric_limits<double>::infinity();
    findings_.add(Quantity::evaluation, {.size = size, .step = static_cast<int64_t>(epoch_), .rank = rank_});
  }

  // What a file of weights would hold: every tensor, whole, as after the last step.
  void saved(const std::vector<StateSlice>& weights) override {
    std::map<StateKind, TensorsByName> found;
    for (const StateSlice& slice : weights) found[slice.kind][slice.name] = slice.view;
    const StepTrace& last = expected_.steps.at(step_ - 1);
    for (const StateKind kind : {StateKind::parameter, StateKind::buffer}) {
      const auto expected = last.state.find(kind);
      if (expected == last.state.end()) continue;
      for (const auto& [name, value] : expected->second) {
        const auto tensor = found[kind].find(name);
        Difference difference{.size = std::numeric_limits<double>::infinity()};
        if (tensor != found[kind].end()) difference = measure(tensor->second, value, norm_of(expected->second));
        difference.tensor = name;
        difference.step = static_cast<int64_t>(step_);
        findings_.add(Quantity::saved, difference);
      }
    }
  }

 private:
  const StepTrace& now() const { return expected_.steps.at(step_); }

  void add(Quantity quantity, const std::string& tensor, int64_t replica, Difference difference) {
    difference.tensor = tensor;
    difference.replica = replica;
    difference.rank = rank_;
    difference.step = static_cast<int64_t>(step_) + 1;
    findings_.add(quantity, difference);
  }

  const Trace& expected_;
  Findings& findings_;
  int64_t rank_;
  bool own_statistics_;
  std::size_t step_ = 0;
  std::size_t epoch_ = 0;
};

launch::RankContext context_of(const config::Config& config, const launch::Placement& placement, const Data& data) {
  launch::RankContext context{.data = data};
  if (placement.backend == "local")
    context.hub = comm::make_hub(placement.world_size, config::run_of(config).comm_timeout_s);
  else
    context.rendezvous = comm::rendezvous_in_memory();
  return context;
}

// Trains `config` with a spectator in each rank.
void run(const config::Config& config, const launch::Placement& placement, launch::RankContext context,
         std::list<Spectator>& spectators) {
  std::vector<Spectator*> of_rank;
  for (Spectator& spectator : spectators) of_rank.push_back(&spectator);
  launch::run_threads(context, placement.world_size, [&](launch::RankContext rank) {
    Spectator& spectator = *of_rank[static_cast<std::size_t>(rank.rank)];
    rank.interposer = &spectator;
    launch::train_rank(config, placement, rank, real_file_system(), "", spectator);
  });
}

data::Order reversed_in_sets(data::Order order, int64_t batch_size, const RowSets& sets) {
  return [order = std::move(order), batch_size, sets](int64_t epoch) {
    std::vector<int64_t> rows = order(epoch);
    const auto size = static_cast<int64_t>(rows.size());
    for (int64_t begin = 0; begin < size; begin += batch_size) {
      for (const std::vector<Range>& set : sets.of(std::min(batch_size, size - begin))) {
        for (const Range& part : set) {
          std::reverse(rows.begin() + begin + part.begin, rows.begin() + begin + part.end);
        }
      }
    }
    return rows;
  };
}

// A rank that got another's rows would go unnoticed where both have the same.
void check_rows_differ(const data::Splits& data, int64_t ranks) {
  const int64_t rows = data.train.size() / ranks;
  for (int64_t rank = 1; rank < ranks && rows > 0; ++rank) {
    const at::Tensor first = data.train.inputs.narrow(0, 0, rows),
                     other = data.train.inputs.narrow(0, rank * rows, rows);
    if (first.equal(other)) {
      throw DataError(
          concat("data: the rows of ranks 0 and ", rank, " are the same, which proves nothing; use other data"));
    }
  }
}

}  // namespace

Trace record(const config::Config& config, const Data& data, const Reference& reference) {
  const launch::Placement placement = launch::decide(config, launch::this_machine(config)).placement;
  Recorder recorder;
  MakeStrategy make;
  const int64_t batch_size = placement.batch.batch_size;
  if (!reference.sets.is_whole(batch_size) || reference.rounding > 0) {
    make = [reference](const strategy::Entry&, const strategy::Context& context) {
      return make_reference(context, reference.sets, reference.rounding);
    };
  }
  Fault other_order;
  if (reference.rounding > 0) {
    other_order.order = [batch_size, reference](data::Order order) {
      return reversed_in_sets(std::move(order), batch_size, reference.sets);
    };
  }
  std::list<Spectator> spectators;
  spectators.emplace_back(recorder, make, other_order, 0);
  run(config, placement, context_of(config, placement, data), spectators);
  return recorder.take();
}

train::Summary train(const config::Config& config, const Data& data) {
  const launch::Placement placement = launch::decide(config, launch::this_machine(config)).placement;
  train::Summary summary;
  launch::run_threads(context_of(config, placement, data), placement.world_size, [&](const launch::RankContext& rank) {
    train::Observer silent;
    train::Summary told = launch::train_rank(config, placement, rank, real_file_system(), "", silent);
    if (rank.rank == 0) summary = std::move(told);
  });
  return summary;
}

void compare(const config::Config& config, const Data& data, const Trace& expected, Findings& findings,
             const MakeFault& make_fault) {
  const launch::Placement placement = launch::decide(config, launch::this_machine(config)).placement;
  const launch::RankContext context = context_of(config, placement, data);
  check_rows_differ(*data, static_cast<int64_t>(placement.devices.size()));
  const bool own_statistics = has_local_statistics(config, static_cast<int64_t>(placement.devices.size()));
  std::list<Comparer> comparers;
  std::list<Spectator> spectators;
  for (int64_t rank = 0; rank < placement.world_size; ++rank) {
    comparers.emplace_back(expected, findings, rank, own_statistics);
    spectators.emplace_back(comparers.back(), MakeStrategy(), make_fault ? make_fault(rank) : Fault(),
                            static_cast<uint64_t>(rank));
  }
  run(config, placement, context, spectators);
}

}  // namespace mgt::verify
