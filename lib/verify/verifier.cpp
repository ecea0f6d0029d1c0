#include "verify/verifier.h"

#include "config/run.h"
#include "config/value_text.h"
#include "core/error.h"
#include "core/text.h"
#include "launch/placement.h"
#include "model/entry.h"
#include "strategy/entry.h"
#include "strategy/parts/microbatches.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace mgt::verify {
namespace {

// Sizes of a shortened run; of a narrow model and of any.
constexpr int64_t kNarrowBatch = 16, kLargestBatch = 64;
constexpr int64_t kNarrowTestRows = 31, kTestRows = 101;  // primes: no number of devices divides them
constexpr int64_t kStepsPerEpoch = 3;                     // two full batches and a short one

constexpr double kBound = 1e-12, kBatchNormBound = 1e-11;  // fp64
constexpr double kBoundFp32 = 1e-6;
constexpr int64_t kRoundings = 3;                                 // of one device, that a bound is learned from
constexpr double kNoiseFactor = 64;                               // over the largest difference that they make
constexpr double kUndetermined = 1e-6, kUndeterminedFp32 = 1e-3;  // noise that leaves nothing to compare

// The size of the short last batch: as large as a third of a batch, and not a multiple of any number of devices.
int64_t short_batch(int64_t batch_size, const std::vector<int64_t>& worlds) {
  const auto divides_none = [&](int64_t rows) {
    return std::ranges::none_of(worlds, [rows](int64_t world) { return world > 1 && rows % world == 0; });
  };
  for (int64_t rows = batch_size / 3; rows > 1; --rows) {
    if (divides_none(rows)) return rows;
  }
  return 1;
}

std::string key_of(const std::vector<std::string>& overrides, const Reference& kind) {
  return concat(join(overrides, "\n"), "\n", kind.sets.shards, " ", kind.sets.together, " ",
                kind.sets.micro_batch.accumulate, " ", kind.rounding);
}

// The same run on one device.
std::vector<std::string> on_one_device(std::vector<std::string> overrides) {
  overrides.insert(overrides.end(),
                   {"strategy=single", "devices=[cpu]", "comm.backend=auto", "accumulate=null", "micro_batch=null"});
  return overrides;
}

std::vector<std::string> cpus(int64_t count) {
  std::vector<std::string> names;
  for (int64_t index = 0; index < count; ++index) names.push_back(concat("cpu:", index));
  return names;
}

}  // namespace

double Verdict::largest_size() const {
  double size = 0;
  for (const auto& [quantity, difference] : worst) {
    if (quantity != Quantity::evaluation) size = std::max(size, difference.size);  // which counts rows
  }
  return size;
}

std::vector<std::string> Verifier::shortening() {
  if (!shortening_.empty()) return shortening_;
  const config::Config config = request_.read({});
  const launch::Placement placement = launch::decide(config, launch::this_machine(config)).placement;
  const int64_t batch_size = std::min(request_.narrow ? kNarrowBatch : kLargestBatch, placement.batch.batch_size);
  std::vector<int64_t> worlds = request_.worlds;
  if (worlds.empty()) worlds = {static_cast<int64_t>(placement.devices.size())};
  const int64_t rows = (kStepsPerEpoch - 1) * batch_size + short_batch(batch_size, worlds);
  shortening_ = {"threads=1",
                 concat("batch_size=", batch_size),
                 concat("data.limit=", rows),
                 concat("data.test_limit=", request_.narrow ? kNarrowTestRows : kTestRows),
                 concat("epochs=", strategy::divided_up(request_.steps, kStepsPerEpoch)),
                 concat("max_steps=", request_.steps),
                 "comm.timeout=20"};
  if (config.top().has("micro_batch")) {  // a batch of another size has as many pieces
    shortening_.insert(shortening_.end(), {"micro_batch=null", concat("accumulate=", placement.batch.accumulate)});
  }
  if (config.section("schedule").integer("warmup") > request_.steps) {
    shortening_.push_back(concat("schedule.warmup=", request_.steps / 2));
  }
  if (!request_.precision.empty()) shortening_.push_back("precision=" + request_.precision);
  if (request_.narrow) {
    for (const std::string& setting : model::entry_of(config).narrow) {
      const std::string key = "model." + setting.substr(0, setting.find('='));
      if (config.at(key).origin.source != config::Origin::Source::set) shortening_.push_back("model." + setting);
    }
  }
  return shortening_;
}

std::vector<std::string> Verifier::overrides_of(const Case& one) {
  std::vector<std::string> overrides = shortening();
  if (one.world) overrides.push_back(concat("devices=[", join(cpus(*one.world)), "]"));
  overrides.insert(overrides.end(), one.overrides.begin(), one.overrides.end());
  return overrides;
}

const Data& Verifier::data_of(const config::Config& config) {
  std::string key;
  for (const auto& [name, setting] : config.section("data").settings()) {
    key += concat(name, ": ", config::yaml_text(setting.value), "\n");
  }
  const auto [kept, is_new] = data_.try_emplace(key);
  if (is_new) kept->second = launch::load_data(config, real_file_system());
  return kept->second;
}

const Trace& Verifier::reference(const std::vector<std::string>& overrides, const Reference& kind) {
  const auto [kept, is_new] = references_.try_emplace(key_of(overrides, kind));
  if (is_new) {
    const config::Config config = request_.read(overrides);
    try {
      kept->second = record(config, data_of(config), kind);
    } catch (const NumericsError& error) {
      references_.erase(kept);
      throw NumericsError(concat("verify: the reference itself, one device, broke off: ", error.what()));
    }
  }
  return kept->second;
}

// Where rounding has its say, the bound is a multiple of what other rounding does. Where it decides alone, nothing can
// be compared: so a bias before BatchNorm under Adam, since its gradient is zero, and Adam divides by its size.
void Verifier::learn(Bounds& bounds, const std::vector<std::string>& overrides, const RowSets& sets) {
  const double most = request_.precision == "fp32" ? kUndeterminedFp32 : kUndetermined;
  const Trace& expected = reference(overrides, {.sets = sets});
  const std::set<std::string> without_gradient = zero_but_for_rounding(expected);
  const auto is_decided = [&](Quantity quantity, const std::string& tensor) {
    return (quantity == Quantity::parameters || quantity == Quantity::optimizer_state) &&
           std::ranges::any_of(without_gradient, [&](const std::string& name) {
             return tensor == name || tensor.starts_with(name + ".");
           });
  };
  Differences noise;
  const config::Config config = request_.read(overrides);
  for (int64_t rounding = 1; rounding <= kRoundings; ++rounding) {
    verify::compare(record(config, data_of(config), {.sets = sets, .rounding = rounding}), expected, noise);
  }
  for (const auto& [what, size] : noise) {
    const bool undetermined = is_decided(what.first, what.second) || size > most;
    bounds.learned[what] = undetermined ? std::numeric_limits<double>::infinity() : kNoiseFactor * size;
  }
}

train::Summary Verifier::train(const Case& one) {
  const config::Config config = request_.read(overrides_of(one));
  return verify::train(config, data_of(config));
}

std::string Verifier::refusal(const Case& one) {
  try {
    launch::check(request_.read(overrides_of(one)));
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

Verdict Verifier::check(const Case& one, const MakeFault& make_fault) {
  Verdict verdict;
  try {
    const std::vector<std::string> overrides = overrides_of(one);
    check(request_.read(overrides), on_one_device(overrides), make_fault, verdict);
  } catch (const ConfigError& error) {
    verdict.refused = error.what();
  } catch (const DataError& error) {
    verdict.unfit = error.what();
  }
  return verdict;
}

void Verifier::check(const config::Config& config, const std::vector<std::string>& alone, const MakeFault& make_fault,
                     Verdict& verdict) {
  launch::check(config);
  const launch::Placement placement = launch::decide(config, launch::this_machine(config)).placement;
  const model::Model model = model::build(config);
  verdict.strategy = config.section("strategy").text("name");
  verdict.devices = static_cast<int64_t>(placement.devices.size());
  verdict.backend = placement.backend;
  const Setting setting{.devices = verdict.devices, .batch_size = placement.batch.batch_size};

  RowSets sets = row_sets_of(config, verdict.devices);
  if (sets.is_whole(setting.batch_size)) sets = {};
  const Trace& expected = reference(alone, {.sets = sets});
  const bool fp32 = request_.precision == "fp32";
  verdict.base_bound = fp32 ? kBoundFp32 : model.buffer_count() > 0 ? kBatchNormBound : kBound;
  Bounds& bounds = bounds_.try_emplace(key_of(alone, {.sets = sets}), Bounds{.base = verdict.base_bound}).first->second;
  if (fp32 && bounds.learned.empty()) learn(bounds, alone, sets);
  while (true) {
    Findings findings(bounds);
    verdict.failed = run(config, expected, findings, make_fault);
    verdict.worst = findings.worst();
    if (const auto& first = findings.first_out_of_bounds()) {
      verdict.failed = text_of(first->first, first->second, setting);
    }
    if (!verdict.failed || !bounds.learned.empty() || make_fault) break;
    learn(bounds, alone, sets);
  }
  for (const auto& [what, bound] : bounds.learned) verdict.undetermined += std::isinf(bound) ? 1 : 0;
  if (!verdict.failed &&
      (!verdict.worst.contains(Quantity::gradients) || !verdict.worst.contains(Quantity::parameters))) {
    verdict.failed = "rounding alone decides every value, so nothing can be compared; lower optimizer.lr or --steps";
  }
  if (!sets.is_whole(setting.batch_size)) {
    Differences distance;
    verify::compare(expected, reference(alone, {}), distance);
    verdict.not_one_device.emplace();
    for (const auto& [what, size] : distance) {
      if (size > verdict.not_one_device->size) verdict.not_one_device = {.size = size, .tensor = what.second};
    }
  }
}

// How the run broke off, where it did because something was seen to be wrong.
std::optional<std::string> Verifier::run(const config::Config& config, const Trace& expected, Findings& findings,
                                         const MakeFault& make_fault) {
  try {
    verify::compare(config, data_of(config), expected, findings, make_fault);
    return std::nullopt;
  } catch (const NumericsError& error) {
    return concat("the run broke off, its reference did not: ", error.what());
  } catch (const InternalError& error) {
    return concat("the run broke off at a guard: ", error.what());
  }
}

}  // namespace mgt::verify
