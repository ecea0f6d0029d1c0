// What ddp and ZeRO keep and send, against the formulas, to the byte: by what they say of themselves, by what is
// allocated, and by the communicator's ledger.
#include "test.h"
#include "training.h"

#include "core/text.h"
#include "live_bytes.h"
#include "model/entry.h"

#include "torch_pch.h"

#include <chrono>
#include <numeric>
#include <thread>

using namespace mgt;
using comm::Collective;

namespace {

constexpr int64_t kBuckets = 3;  // of gradients at once: two that travel, one that fills

const std::string kLenet = "lenet";  // 129,068 parameters: 3 ranks do not divide them
const std::string kVit = "{name: vit, layers: 2, width: 30, heads: 3}";

struct Setting {
  std::string model = kLenet;
  int64_t stage = 0;  // 0: ddp
  int64_t ranks = 2;
  std::string precision = "fp32";
  std::string switches = {};  // of zero: "overlap_comm: false"
  int64_t batch_size = 8;
  std::string more = {};  // of the top level
  int64_t item() const { return precision == "fp64" ? 8 : 4; }
};

test::Training training(const Setting& setting) {
  const std::string more = setting.switches.empty() ? "" : ", " + setting.switches;
  const std::string strategy =
      setting.stage == 0 ? concat("{name: ddp", more, "}") : concat("{name: zero, stage: ", setting.stage, more, "}");
  return {
      .yaml = concat("model: ", setting.model, "\nprecision: ", setting.precision, "\nbatch_size: ", setting.batch_size,
                     "\nstrategy: ", strategy, "\noptimizer: {name: adam, lr: 0.01}\n", setting.more),
      .devices = setting.ranks,
      .steps = 2,
      .data = test::golden_data(),
      .order = {},
      .init = "",
      .fill = {}};
}

int64_t rounded_up(int64_t count, int64_t to) { return (count + to - 1) / to * to; }

// Elements of each unit, from the description of the layout: tensors start at multiples of 64 bytes, a unit that is
// shared out is a multiple of the ranks, and it is a block in stage 3, else (in these tests) all of the model.
std::vector<int64_t> units_of(const Setting& setting) {
  const config::Config config = test::config_of(training(setting).yaml);
  std::vector<int64_t> units;
  for (const model::Block& block : model::build(config).blocks) {
    int64_t size = 0;
    for (const model::TensorSpec& spec : block.parameters) {
      size += rounded_up(model::elements(spec.shape), 64 / setting.item());
    }
    if (size > 0) units.push_back(size);
  }
  if (setting.stage < 3) units = {std::accumulate(units.begin(), units.end(), int64_t{0})};
  for (int64_t& size : units) size = setting.stage == 0 ? size : rounded_up(size, setting.ranks);
  return units;
}

int64_t total(const std::vector<int64_t>& counts) { return std::accumulate(counts.begin(), counts.end(), int64_t{0}); }

// The largest sum of `count` neighbours.
int64_t largest(const std::vector<int64_t>& sizes, std::size_t count) {
  int64_t most = 0;
  for (std::size_t begin = 0; begin < sizes.size(); ++begin) {
    const std::size_t end = std::min(begin + count, sizes.size());
    most = std::max(most, std::accumulate(sizes.begin() + static_cast<int64_t>(begin),
                                          sizes.begin() + static_cast<int64_t>(end), int64_t{0}));
  }
  return most;
}

using Ledger = std::map<Collective, comm::Account>;

Ledger accounts_of(const comm::Communicator& communicator) {
  Ledger accounts;
  for (std::size_t kind = 0; kind < comm::kCollectives; ++kind) {
    accounts[static_cast<Collective>(kind)] = communicator.ledger().of(static_cast<Collective>(kind));
  }
  return accounts;
}

// What one rank has and does, in bytes.
struct Seen {
  std::map<std::string, double> notes;
  int64_t built = 0;               // alive once the strategy is made
  int64_t built_peak = 0;          // at most while it was made, more than that
  int64_t between_steps = 0;       // and after two steps and an evaluation
  int64_t slices[3] = {};          // by kind, of what it shows in its state
  int64_t at_gradients_ready = 0;  // of the second step, more than before it
  int64_t step_peak = 0;           // at most in it, more than before it
  int64_t evaluation_peak = 0;
  Ledger step;  // of the second step
  int64_t sent(Collective kind) const { return step.at(kind).bytes_sent; }
  int64_t operations(Collective kind) const { return step.at(kind).operations; }
};

class ReadyProbe final : public strategy::Probe {
 public:
  explicit ReadyProbe(std::function<void()> ready) : ready_(std::move(ready)) {}
  void gradients_ready(int64_t, const Parameters&) override { ready_(); }

 private:
  std::function<void()> ready_;
};

void look_at_step(test::TrainingRank& rank, test::LiveBytes& bytes, comm::Communicator& communicator, Seen& seen) {
  const int64_t own = communicator.rank();
  const Ledger before = accounts_of(communicator);
  const int64_t live = bytes.live(own);
  bytes.take_peak(own);
  ReadyProbe probe([&] { seen.at_gradients_ready = bytes.live(own) - live; });
  rank.step(1, &probe);
  seen.step_peak = bytes.take_peak(own) - live;
  seen.step = accounts_of(communicator);
  for (auto& [kind, account] : seen.step) {
    account.bytes_sent -= before.at(kind).bytes_sent;
    account.operations -= before.at(kind).operations;
  }
}

// A rank's peers hold what it gave to a collective for a moment longer than the collective takes.
int64_t settled(const test::LiveBytes& bytes, int64_t rank) {
  int64_t least = bytes.live(rank);
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    least = std::min(least, bytes.live(rank));
  }
  return least;
}

// Two steps and an evaluation of one row, which the first rank has.
std::vector<Seen> look(const Setting& setting, comm::Algorithm algorithm = comm::Algorithm::automatic) {
  const test::Training one = training(setting);
  const config::Config config = test::config_of(one.yaml);
  std::vector<Seen> all(static_cast<std::size_t>(setting.ranks));
  test::LiveBytes bytes(setting.ranks);
  const auto watch = [&](comm::Communicator& communicator) {
    const int64_t own = communicator.rank();
    Seen& seen = all[static_cast<std::size_t>(own)];
    const test::CountedThread counted(bytes, own);
    test::TrainingRank rank(one, config, communicator);
    const int64_t before = bytes.live(own);
    rank.begin();
    seen.built = settled(bytes, own) - before;
    seen.built_peak = bytes.take_peak(own) - before - seen.built;
    rank.step(0);
    look_at_step(rank, bytes, communicator, seen);
    bytes.take_peak(own);
    rank.evaluate(1);
    seen.evaluation_peak = bytes.take_peak(own) - before - seen.built;
    seen.between_steps = settled(bytes, own) - before;
    for (const model::StateSlice& slice : rank.strategy().state()) {
      seen.slices[static_cast<int>(slice.kind)] += static_cast<int64_t>(slice.view.nbytes());
    }
    for (const strategy::Note& note : rank.strategy().notes()) seen.notes[note.name] = note.value;
    communicator.barrier();
  };
  test::on_ranks(setting.ranks, test::Backend::local, 20, watch, algorithm);
  return all;
}

std::string text_of(const Setting& setting) {
  return concat(setting.model, ", stage ", setting.stage, ", ", setting.ranks, " ranks, ", setting.precision, ", ",
                setting.switches);
}

// C.5: each of parameters, gradients and Adam's two values is whole or a shard. Padding is counted apart.
void require_formulas(const Setting& setting) {
  INFO(text_of(setting));
  const int64_t parameters = model::build(test::config_of(training(setting).yaml)).parameter_count();
  const int64_t all = total(units_of(setting)) * setting.item(), shard = all / setting.ranks;
  const int64_t kept[] = {setting.stage >= 3 ? shard : all, setting.stage >= 2 ? shard : all,
                          2 * (setting.stage >= 1 ? shard : all)};
  const int64_t count_of_steps = 8;
  int64_t shown[2] = {};
  for (const Seen& seen : look(setting)) {
    REQUIRE(seen.notes.at("parameters of a rank") == static_cast<double>(kept[0]));
    REQUIRE(seen.notes.at("gradients of a rank") == static_cast<double>(kept[1]));
    REQUIRE(seen.notes.at("optimizer state of a rank") == static_cast<double>(kept[2]));
    REQUIRE(seen.notes.at("padding") == static_cast<double>(all - parameters * setting.item()));
    REQUIRE(seen.built == kept[0] + kept[1] + kept[2] + count_of_steps);
    REQUIRE(seen.between_steps == seen.built);
    shown[0] += seen.slices[static_cast<int>(model::StateKind::parameter)];
    shown[1] += seen.slices[static_cast<int>(model::StateKind::optimizer)] - count_of_steps;
  }
  // Without padding, shards add up to the model.
  REQUIRE(shown[0] == parameters * setting.item() * (setting.stage >= 3 ? 1 : setting.ranks));
  REQUIRE(shown[1] == 2 * parameters * setting.item() * (setting.stage >= 1 ? 1 : setting.ranks));
}

// C.5: what each rank sends in a step. The sums of loss and squares, two doubles, are counted apart.
void require_traffic(const Setting& setting, comm::Algorithm algorithm) {
  INFO(text_of(setting));
  const int64_t k = setting.ranks, all = total(units_of(setting)) * setting.item();
  const bool scatters = setting.stage > 0 && setting.switches != "reduce_scatter: false";
  const bool gathers = setting.switches != "allgather_partitions: false";
  const int64_t updates = setting.stage == 0 ? 0 : setting.stage == 3 ? 2 : 1;  // gathers of all parameters
  const auto units = static_cast<int64_t>(units_of(setting).size());
  int64_t all_reduced = 0;
  for (const Seen& seen : look(setting, algorithm)) {
    REQUIRE(seen.sent(Collective::reduce_scatter) == (scatters ? all / k * (k - 1) : 0));
    REQUIRE(seen.sent(gathers ? Collective::all_gather : Collective::broadcast) == updates * (all / k * (k - 1)));
    REQUIRE(seen.operations(Collective::reduce_scatter) == (scatters ? units : 0));
    REQUIRE(seen.operations(Collective::all_reduce) == 1 + (scatters ? 0 : units));
    REQUIRE(seen.operations(Collective::all_gather) == (gathers ? updates * units : 0));
    REQUIRE(seen.operations(Collective::broadcast) == (gathers ? 0 : updates * units * k));
    all_reduced += seen.sent(Collective::all_reduce);
  }
  // 2 (k - 1) / k of a vector by each rank, in whole elements.
  REQUIRE(all_reduced == 2 * (k - 1) * ((scatters ? 0 : all) + 16));
}

}  // namespace

TEST_CASE("bytes that a rank keeps are those of the formulas, said and allocated (S-10, M-03)") {
  for (const std::string& model : {kLenet, kVit}) {
    for (const int64_t ranks : {2, 3, 4}) {
      for (const int64_t stage : {0, 1, 2, 3}) {
        for (const std::string precision : {"fp32", "fp64"}) {
          require_formulas({.model = model, .stage = stage, .ranks = ranks, .precision = precision});
        }
      }
    }
  }
}

TEST_CASE("bytes that a step sends are those of the formulas (S-10, S-24)") {
  for (const comm::Algorithm algorithm : {comm::Algorithm::library, comm::Algorithm::ring}) {
    for (const int64_t ranks : {2, 3, 4}) {
      for (const int64_t stage : {0, 1, 2, 3}) {
        for (const std::string& model : {kLenet, kVit}) {
          require_traffic({.model = model, .stage = stage, .ranks = ranks}, algorithm);
        }
        if (stage == 0) continue;
        require_traffic({.stage = stage, .ranks = ranks, .switches = "reduce_scatter: false"}, algorithm);
        require_traffic({.stage = stage, .ranks = ranks, .switches = "allgather_partitions: false"}, algorithm);
      }
    }
  }
}

TEST_CASE("pieces of a batch: stage 1 reduces once, stages 2 and 3 for each piece, and stage 3 gathers for each") {
  for (const int64_t stage : {1, 2, 3}) {
    const Setting setting{.stage = stage, .ranks = 2, .batch_size = 12, .more = "accumulate: 3\n"};
    const Seen seen = look(setting).front();
    const auto units = static_cast<int64_t>(units_of(setting).size());
    REQUIRE(seen.operations(Collective::reduce_scatter) == units * (stage == 1 ? 1 : 3));
    REQUIRE(seen.operations(Collective::all_gather) == units * (stage == 3 ? 2 * 3 : 1));
  }
}

TEST_CASE("in stage 3 no more parameters are there than shards and two units, with overlap_comm false one (S-10)") {
  for (const std::string& model : {kLenet, kVit}) {
    for (const bool overlap : {true, false}) {
      const Setting setting{.model = model, .stage = 3, .ranks = 3, .switches = overlap ? "" : "overlap_comm: false"};
      INFO(model << ", overlap " << overlap);
      const int64_t most = largest(units_of(setting), overlap ? 2 : 1) * setting.item();
      const std::vector<Seen> all = look(setting);
      for (const Seen& seen : all) REQUIRE(seen.notes.at("gathered at most") == static_cast<double>(most));
      // In an evaluation of one row the other ranks do nothing but gather.
      REQUIRE(all[0].evaluation_peak > most);
      for (const std::size_t rank : {1, 2}) {
        REQUIRE(all[rank].evaluation_peak >= most);
        REQUIRE(all[rank].evaluation_peak <= most + 32);  // the counts of the evaluation
      }
    }
  }
}

TEST_CASE("a strategy that is made needs one unit more than what it keeps") {
  for (const int64_t stage : {1, 2, 3}) {
    const Setting setting{.stage = stage, .ranks = 4};
    const int64_t drawn = 8 * 102400;  // the largest tensor's first values are drawn in double precision
    for (const Seen& seen : look(setting)) {
      INFO("stage " << stage << ": " << seen.built_peak);
      REQUIRE(seen.built_peak <= largest(units_of(setting), 1) * setting.item() + drawn + 64);
    }
  }
}

TEST_CASE("gradients in stages 2 and 3 are freed as each bucket is reduced (S-10)") {
  const int64_t layer = 200 * 200 * 8;
  const std::string mlp = concat("{name: mlp, hidden: [10, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200]}");
  const auto of_stage = [&](int64_t stage, const std::string& switches) {
    return look({.model = mlp, .stage = stage, .ranks = 2, .precision = "fp64", .switches = switches, .batch_size = 2});
  };
  // Besides the buckets: one gradient on its way into its bucket, what the reductions bring, and activations.
  const int64_t most = kBuckets * layer + layer + kBuckets * layer / 2 + layer / 2;
  for (const int64_t stage : {2, 3}) {
    for (const Seen& seen : of_stage(stage, "bucket_mb: 0.1")) {
      INFO("stage " << stage << ": " << seen.step_peak << " of " << most);
      const int64_t units = stage == 3 ? 2 * layer : 0;
      REQUIRE(seen.notes.at("gradients on their way at most") < static_cast<double>(kBuckets * layer + layer / 2));
      REQUIRE(seen.step_peak < most + units);
      REQUIRE(seen.at_gradients_ready < 20000);  // the pictures
    }
  }
  for (const Seen& seen : of_stage(2, "bucket_mb: 100")) {
    REQUIRE(seen.step_peak > 9 * layer);  // all in one bucket
    REQUIRE(seen.at_gradients_ready < 20000);
  }
  for (const Seen& seen : of_stage(2, "bucket_mb: 0.1, overlap_comm: false")) {
    REQUIRE(seen.notes.at("gradients on their way at most") < static_cast<double>(layer + layer / 2));
  }
}

TEST_CASE("each switch of ZeRO shows its effect (S-10)") {
  for (const int64_t stage : {1, 2, 3}) {
    const auto with = [&](const std::string& switches) {
      return look({.model = "{name: mlp, hidden: [64, 64, 64, 64]}",
                   .stage = stage,
                   .ranks = 3,
                   .precision = "fp64",
                   .switches = concat("bucket_mb: 0.03", switches.empty() ? "" : ", ", switches),
                   .batch_size = 3})
          .front();
    };
    INFO("stage " << stage);
    const Seen plain = with(""), in_turn = with("overlap_comm: false"), reduced = with("reduce_scatter: false"),
               sent = with("allgather_partitions: false");
    const double units = plain.notes.at("buckets of gradients");
    REQUIRE(units > 3);
    // overlap_comm: units are reduced while backward runs, or fewer buckets and units are there at once.
    REQUIRE(plain.notes.at("reduced during backward") == 2 * units);  // of two steps
    if (stage == 1) REQUIRE(in_turn.notes.at("reduced during backward") == 0);
    for (const std::string note : {"gradients on their way at most", "gathered at most"}) {
      if (plain.notes.contains(note)) REQUIRE(in_turn.notes.at(note) < plain.notes.at(note));
    }
    // reduce_scatter: the same bytes twice.
    REQUIRE(reduced.operations(Collective::reduce_scatter) == 0);
    REQUIRE(reduced.sent(Collective::all_reduce) >= 2 * plain.sent(Collective::reduce_scatter));
    // allgather_partitions: as many broadcasts as there are ranks.
    REQUIRE(sent.operations(Collective::all_gather) == 0);
    REQUIRE(sent.operations(Collective::broadcast) == 3 * plain.operations(Collective::all_gather));
  }
}

TEST_CASE("with contiguous_gradients no gradient of a bucket lies beside it (S-10)") {
  for (const int64_t stage : {1, 2}) {
    const auto peak = [&](const std::string& switches) {
      return look({.model = "{name: vit, layers: 1, width: 96, heads: 2, patch: 14}",
                   .stage = stage,
                   .ranks = 2,
                   .precision = "fp64",
                   .switches = concat("reduce_scatter: false", switches),  // in place: needs no memory of its own
                   .batch_size = 2})
          .front()
          .step_peak;
    };
    const int64_t inside = peak(""), beside = peak(", contiguous_gradients: false");
    INFO("stage " << stage << ": " << inside << ", " << beside);
    REQUIRE(beside > inside + 2 * 8 * 96 * 96);  // at least two of the encoder layer's matrices more
  }
}

TEST_CASE("no combination of ZeRO's switches changes the weights (S-10)") {
  for (const int64_t stage : {1, 2, 3}) {
    std::vector<model::StateSlice> wanted;
    for (unsigned bits = 0; bits < 16; ++bits) {
      const auto on = [bits](unsigned bit) { return (bits >> bit & 1) == 0 ? "true" : "false"; };
      const std::string switches = concat("bucket_mb: 0.01, overlap_comm: ", on(0), ", contiguous_gradients: ", on(1),
                                          ", reduce_scatter: ", on(2), ", allgather_partitions: ", on(3));
      INFO("stage " << stage << ", " << switches);
      test::Training one = training({.model = "{name: lenet, channels: [4, 6], hidden: 16}",
                                     .stage = stage,
                                     .ranks = 3,
                                     .precision = "fp64",
                                     .switches = switches,
                                     .batch_size = 10,
                                     .more = "accumulate: 2\nclip: 0.5\n"});
      one.steps = 4;
      const std::vector<model::StateSlice> state = test::train(one).state;
      if (wanted.empty()) wanted = state;
      REQUIRE(state.size() == wanted.size());
      for (std::size_t index = 0; index < state.size(); ++index) {
        INFO(state[index].name);
        // Local ranks reduce in the order of ranks, scattered or not: the same bits, where one step adds up its pieces
        // in the same order too.
        REQUIRE(at::equal(state[index].view, wanted[index].view));
      }
    }
  }
}
