// `mgt verify`: is training under this strategy the same function as on one device, and would the oracle see it if not?
#include "config/run.h"
#include "config_arguments.h"
#include "core/log.h"
#include "core/text.h"
#include "launch/placement.h"
#include "program.h"
#include "verify/mutants.h"
#include "verify/verifier.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <memory>

namespace mgt {
namespace {

struct VerifyOptions {
  ConfigArguments config;
  std::vector<int64_t> worlds;
  std::optional<int64_t> steps;
  std::string precision;
  std::string inject;
  std::string replay;
  bool all = false;
  bool invariant = false;
  bool full = false;
};

// "ddp, 3 devices, gloo"
std::string title(const verify::Verdict& verdict) {
  return concat(verdict.strategy, ", ", counted(verdict.devices, "device"),
                verdict.devices > 1 ? ", " + verdict.backend : "");
}

// Of each quantity the difference that is worst relative to its bound, one a line.
void print_details(const verify::Verdict& verdict) {
  for (const auto& [quantity, difference] : verdict.worst) {
    std::cout << "  " << std::left << std::setw(18) << verify::name_of(quantity);
    if (quantity == verify::Quantity::evaluation) {
      std::cout << (difference.size == 0 ? "equal" : concat("differ in ", difference.size, " rows")) << '\n';
      continue;
    }
    std::cout << std::setw(9) << difference.digits_of(difference.size) << " bound " << std::setw(9)
              << difference.digits_of(difference.bound) << ' ';
    if (difference.size > 0)
      std::cout << difference.tensor << " (step " << difference.step << ", rank " << difference.rank << ")";
    std::cout << '\n';
  }
  using verify::Quantity;
  for (const Quantity always : {Quantity::gradients, Quantity::loss, Quantity::gradient_norm, Quantity::parameters}) {
    if (verdict.worst.contains(always)) continue;
    std::cout << "  " << std::left << std::setw(18) << verify::name_of(always)
              << "not compared: rounding alone decides it\n";
  }
  if (verdict.undetermined > 0) {
    std::cout << "  not compared: " << counted(verdict.undetermined, "tensor")
              << " that rounding alone decides, such as a bias before BatchNorm under Adam\n";
  }
  if (verdict.not_one_device) {
    std::cout
        << "  equal to one device that normalises each part of a batch by itself; that is not one device on the batch: "
        << "differences up to " << brief(verdict.not_one_device->size) << " in " << verdict.not_one_device->tensor
        << '\n';
  }
  const auto is_wide = [&](const auto& entry) {
    return entry.first != Quantity::evaluation && entry.second.bound > verdict.base_bound;
  };
  if (std::ranges::any_of(verdict.worst, is_wide)) {
    std::cout << "  bounds above " << brief(verdict.base_bound) << " are learned from a run of one device that rounds "
              << "otherwise\n";
  }
}

NumericsError unequal(const verify::Verdict& verdict) {
  return NumericsError(concat("verify: ", title(verdict), ": ", *verdict.failed));
}

ExitCode check_worlds(verify::Verifier& verifier, const std::vector<int64_t>& worlds) {
  std::vector<verify::Case> cases;
  cases.reserve(worlds.size());
  for (const int64_t world : worlds) cases.push_back({.overrides = {}, .world = world});
  if (cases.empty()) cases.push_back({.overrides = {}, .world = {}});
  for (const verify::Case& one : cases) {
    if (const std::string refusal = verifier.refusal(one); !refusal.empty()) throw ConfigError(refusal);
  }
  for (const verify::Case& one : cases) {
    const verify::Verdict verdict = verifier.check(one);
    if (verdict.refused) throw ConfigError(*verdict.refused);
    if (verdict.unfit) throw DataError(*verdict.unfit);
    std::cout << title(verdict) << (verdict.failed ? ": NOT equal" : ": equal") << '\n';
    print_details(verdict);
    std::cout << std::flush;
    if (verdict.failed) throw unequal(verdict);
  }
  return ExitCode::done;
}

// One line a strategy and number of devices: the cases with other options and optimizers are counted in it.
struct Line {
  int64_t equal = 0;
  double largest = 0;
  double widest_bound = 0;  // where one had to be learned
  std::optional<verify::Difference> not_one_device;
};

ExitCode check_all(verify::Verifier& verifier, const std::vector<verify::Case>& cases) {
  std::map<std::string, Line> lines;
  std::vector<std::string> order;
  std::map<std::string, int64_t> refusals;  // by reason
  std::optional<verify::Verdict> first_failure;
  for (const verify::Case& one : cases) {
    const verify::Verdict verdict = verifier.check(one);
    const std::string name = title(verdict);
    if (verdict.refused) {
      ++refusals[*verdict.refused];
      continue;
    }
    if (verdict.unfit) throw DataError(*verdict.unfit);
    if (!lines.contains(name)) order.push_back(name);
    Line& line = lines[name];
    if (verdict.failed) {
      std::cout << "NOT equal: " << title(verdict) << ", " << join(one.overrides) << ": " << *verdict.failed
                << std::endl;
      if (!first_failure) first_failure = verdict;
      continue;
    }
    ++line.equal;
    line.largest = std::max(line.largest, verdict.largest_size());
    for (const auto& [quantity, difference] : verdict.worst) {
      if (quantity == verify::Quantity::evaluation) continue;  // counts rows
      if (difference.bound > verdict.base_bound) line.widest_bound = std::max(line.widest_bound, difference.bound);
    }
    if (verdict.not_one_device) line.not_one_device = verdict.not_one_device;
  }
  int64_t equal = 0;
  for (const std::string& name : order) {
    const Line& line = lines[name];
    equal += line.equal;
    if (line.equal == 0) continue;
    std::cout << std::left << std::setw(34) << name << std::setw(14) << counted(line.equal, "case")
              << "equal, largest difference " << brief(line.largest);
    if (line.widest_bound > 0) std::cout << " (bounds learned, up to " << brief(line.widest_bound) << ")";
    if (line.not_one_device) std::cout << " (its reference; one device: " << brief(line.not_one_device->size) << ")";
    std::cout << '\n';
  }
  std::cout << counted(equal, "case") << " equal" << std::endl;
  for (const auto& [reason, times] : refusals) {
    std::cout << counted(times, "case") << " refused: " << reason << std::endl;
  }
  if (first_failure) throw unequal(*first_failure);
  return ExitCode::done;
}

// Why this mutant is not seeded into this run, or "".
std::string impossible(const verify::Mutant& mutant, const config::Config& config, const verify::Verdict& right) {
  if (right.refused) return *right.refused;
  if (right.unfit) return *right.unfit;
  return mutant.harmless ? mutant.harmless(config, right.worst.contains(verify::Quantity::evaluation)) : "";
}

ExitCode check_mutants(verify::Verifier& verifier, const config::Config& config, const std::string& name) {
  int64_t survived = 0, ran = 0, impossible_ones = 0;
  bool known = false;  // a mutant of that name, though not in this config
  for (const verify::Mutant& mutant : verify::mutants()) {
    if (name != "all" && name != mutant.name) continue;
    for (const std::string& strategy : mutant.strategies) {
      const verify::Case one = verify::case_of(mutant, strategy);
      const verify::Verdict right = verifier.check(one);
      if (const std::string reason = impossible(mutant, config, right); !reason.empty()) {
        std::cout << "not possible " << mutant.name << " (" << strategy << "): " << reason << std::endl;
        known = true;
        ++impossible_ones;
        continue;
      }
      if (right.failed) throw unequal(right);  // without the error it must pass
      const verify::Verdict wrong =
          verifier.check(one, [&](int64_t rank) { return mutant.fault(rank, right.devices); });
      ++ran;
      if (!wrong.failed) ++survived;
      std::cout << (wrong.failed ? "killed " : "survived ") << mutant.name << " (" << strategy << ")"
                << (wrong.failed ? ": " + *wrong.failed : "") << std::endl;
    }
  }
  if (ran == 0 && !known) {
    std::vector<std::string> names;
    for (const verify::Mutant& mutant : verify::mutants()) names.push_back(mutant.name);
    throw ConfigError(concat("--inject: there is no mutant ", name, "; choose all, or one of ", join(names)));
  }
  std::cout << ran - survived << " of " << counted(ran, "mutant") << " killed"
            << (impossible_ones > 0 ? concat(", ", impossible_ones, " not possible here") : "") << std::endl;
  if (survived > 0) throw NumericsError(concat("verify: ", counted(survived, "mutant"), " survived"));
  return ExitCode::done;
}

// The same bits from every run, and what that costs.
ExitCode check_invariance(verify::Verifier& verifier, int64_t virtual_shards) {
  std::string first;
  for (const verify::Case& one : verify::invariant_cases(virtual_shards)) {
    if (!verifier.refusal(one).empty()) continue;
    const train::Summary summary = verifier.train(one);
    if (first.empty()) first = summary.weights_sha256;
    std::cout << summary.weights_sha256.substr(0, 16) << "  " << counted(*one.world, "device") << "  "
              << join(one.overrides) << std::endl;
    if (summary.weights_sha256 != first) {
      throw NumericsError(concat("verify: the weights of ", join(one.overrides), " on ", counted(*one.world, "device"),
                                 " are others than those of the first run"));
    }
  }
  constexpr int kRepeats = 5;
  const int64_t devices = std::min<int64_t>(2, virtual_shards);
  double repeatable_s = 1e300, invariant_s = 1e300;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {  // in turn, so that what else the machine does meets both
    const auto seconds = [&](const std::string& determinism) {
      return verifier.train({.overrides = {"strategy=ddp", "launch=threads", determinism}, .world = devices})
          .sec_per_epoch;
    };
    repeatable_s = std::min(repeatable_s, seconds("determinism=repeatable"));
    invariant_s = std::min(invariant_s, seconds("determinism=invariant"));
  }
  std::cout << "identical: SHA-256 of the weights " << first << '\n'
            << "price: " << brief(invariant_s / repeatable_s) << " times the time without it (ddp on "
            << counted(devices, "device") << ", best of " << kRepeats << " runs each)" << std::endl;
  return ExitCode::done;
}

void check_options(const VerifyOptions& options) {
  if (options.full && !options.all && options.inject.empty()) {
    throw ConfigError("--full goes with --all or --inject; without them the model has its own size already");
  }
  std::vector<int64_t> worlds = options.worlds;
  std::ranges::sort(worlds);
  const auto twice = std::ranges::adjacent_find(worlds);
  if (twice != worlds.end()) throw ConfigError(concat("--world: ", *twice, " is there twice"));
}

// The devices of the config may be others than those that the user thinks of.
void tell_devices(const config::Config& config) {
  const launch::Decision decision = launch::decide(config, launch::this_machine(config));
  if (!decision.stand_in.empty()) log::warning(decision.stand_in);
  for (const std::string& warning : decision.warnings) log::warning(warning);
}

ExitCode verify_config(const Program& program, const VerifyOptions& options) {
  if (!options.replay.empty()) return replay(program, options.replay);
  check_options(options);
  log::set_level("warning");
  const auto read = [&](const std::vector<std::string>& overrides) {
    ConfigArguments arguments = options.config;
    if (!arguments.devices.empty()) arguments.set.push_back("devices=" + std::exchange(arguments.devices, ""));
    arguments.set.insert(arguments.set.end(), overrides.begin(), overrides.end());
    return read_config(program, arguments);
  };
  verify::Request request{.read = read,
                          .worlds = options.worlds,
                          .steps = options.steps.value_or(options.invariant ? 60
                                                          : options.all     ? 4
                                                                            : 6),
                          .precision = options.precision.empty() && !options.invariant ? "fp64" : options.precision,
                          .narrow = !options.full && (options.all || !options.inject.empty())};
  if (read({}).top().has("init")) request.narrow = false;  // its weights are of the model's own size
  if (options.all && request.worlds.empty()) request.worlds = {1, 2, 3, 4};
  if (!options.inject.empty()) request.worlds = {3};
  verify::Verifier verifier(request);
  const std::vector<std::string> shortening = verifier.shortening();  // may throw: before anything is printed
  std::cout << "each run: " << join(shortening) << std::endl;
  if (!options.inject.empty()) return check_mutants(verifier, read({}), options.inject);
  if (options.invariant) return check_invariance(verifier, config::run_of(read({})).virtual_shards);
  if (options.all) return check_all(verifier, verify::all_cases(request.worlds));
  if (request.worlds.empty()) tell_devices(read({}));
  return check_worlds(verifier, request.worlds);
}

}  // namespace

void add_verify(CLI::App& app, Program& program) {
  CLI::App* command = app.add_subcommand("verify", "Prove that a strategy computes what one device does");
  const auto options = std::make_shared<VerifyOptions>();
  CLI::Option_group* subject = command->add_option_group("what to verify");
  subject->add_option("--config", options->config.name, "A YAML file, or one of the shipped configs")
      ->type_name("NAME");
  CLI::Option* replayed =
      subject->add_option("--replay", options->replay, "Folder of a run: train it again, and compare the weights")
          ->type_name("DIR");
  subject->require_option(1);
  options->config.add_overrides(*command);
  CLI::Option* world = command
                           ->add_option("--world", options->worlds,
                                        "Numbers of CPU devices, such as 1,2,3; absent: the config's devices")
                           ->delimiter(',')
                           ->check(CLI::Range(1, 64))
                           ->type_name("K,...");
  CLI::Option* steps =
      command->add_option("--steps", options->steps, "Optimizer steps of each run; absent: 6, with --all 4")
          ->check(CLI::Range(1, 10000));
  CLI::Option* precision =
      command->add_option("--precision", options->precision, "fp64, or fp32 with a bound learned from one device")
          ->check(CLI::IsMember({"fp64", "fp32"}));
  CLI::Option* all = command->add_flag(
      "--all", options->all, "Every strategy, number of devices, communicator, option, optimizer and schedule");
  CLI::Option* invariant =
      command->add_flag("--invariant", options->invariant,
                        "determinism: invariant gives the same bits on any number of devices; and what it costs");
  CLI::Option* full = command->add_flag("--full", options->full, "With --all and --inject: the model in its own size");
  CLI::Option* inject =
      command->add_option("--inject", options->inject, "Seed an error, or all of them, and see that it is found")
          ->type_name("MUTANT");
  all->excludes(invariant)->excludes(inject);
  invariant->excludes(inject)->excludes(world);
  inject->excludes(world);
  for (CLI::Option* option : {command->get_option("--set"), command->get_option("--devices"), world, steps, precision,
                              all, invariant, full, inject})
    replayed->excludes(option);
  command->callback(
      [options, &program] { program.action = [options, &program] { return verify_config(program, *options); }; });
}

}  // namespace mgt
