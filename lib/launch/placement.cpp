#include "launch/placement.h"

#include "comm/device.h"
#include "core/log.h"
#include "core/text.h"
#include "launch/launcher.h"
#include "model/entry.h"
#include "strategy/entry.h"
#include "strategy/parts/microbatches.h"

#include <sched.h>

#include <algorithm>

namespace mgt::launch {
namespace {

using Devices = std::vector<std::string>;

constexpr const char* kOneCpu = "no GPU found: running on the CPU";

bool is_gpu(const std::string& device) { return device.starts_with("cuda"); }

Devices first_gpus(int64_t count) {
  Devices devices;
  for (int64_t gpu = 0; gpu < count; ++gpu) devices.push_back(concat("cuda:", gpu));
  return devices;
}

// Chooses devices for one config on one machine, and keeps what must be said about the choice.
class Chooser {
 public:
  Chooser(const config::Config& config, const Machine& machine)
      : config_(config), run_(config::run_of(config)), entry_(strategy::entry_of(config)), machine_(machine) {}

  Decision decide() {
    Placement& placement = decision_.placement;
    placement.devices = devices();
    const bool own_rank = entry_.ranks == strategy::Ranks::one_per_device;
    placement.world_size = own_rank ? static_cast<int64_t>(placement.devices.size()) : 1;
    check_one_kind();
    placement.batch = batch_plan(config_, static_cast<int64_t>(placement.devices.size()));
    if (run_.invariant) {
      check_invariant();
      placement.batch.pieces = run_.virtual_shards / data_ranks();
    }
    placement.threads_per_rank =
        run_.invariant ? 1 : run_.threads.value_or(std::max<int64_t>(1, machine_.cores / placement.world_size));
    placement.backend = backend();
    check_algorithm(placement.backend);
    warn_of_idle_devices();
    warn_of_pieces();
    warn_of_too_many_threads();
    return std::move(decision_);
  }

 private:
  Devices devices() {
    if (run_.devices.automatic) return automatic();
    return run_.devices.names.empty() ? counted_devices(run_.devices.count) : named(run_.devices.names);
  }

  Devices automatic() {
    if (machine_.gpus == 0) {
      decision_.stand_in = kOneCpu;
      return {"cpu"};
    }
    return first_gpus(entry_.variant.name == "single" ? 1 : machine_.gpus);
  }

  Devices counted_devices(int64_t count) {
    if (count == 0) return {"cpu"};
    if (machine_.gpus == 0) return stand_ins(count);
    const Devices found = first_gpus(std::min(count, machine_.gpus));
    if (count > machine_.gpus) tell_missing(concat(count, " asked for"), found);
    return found;
  }

  Devices stand_ins(int64_t count) {
    if (run_.devices_strict) {
      config_.error_at("devices",
                       concat(counted(count, "GPU"), " asked for, but none found, and devices_strict is true; ",
                              "set devices_strict to false to train on the CPU"));
    }
    const std::string thing = entry_.ranks == strategy::Ranks::one_per_device ? "CPU ranks" : "CPU replicas";
    decision_.stand_in =
        count == 1 ? kOneCpu : concat("no GPU found: ", count, " ", thing, " stand in for ", count, " devices");
    return Devices(static_cast<std::size_t>(count), "cpu");
  }

  Devices named(const Devices& names) {
    Devices found, missing;
    const Devices gpus = first_gpus(machine_.gpus);
    for (const std::string& name : names) {
      if (is_gpu(name) && std::ranges::count(gpus, name) == 0)
        missing.push_back(name);
      else
        found.push_back(is_gpu(name) ? name : "cpu");
    }
    if (found.empty()) found.push_back("cpu");
    if (!missing.empty()) tell_missing(concat(join(missing), " not found"), found);
    return found;
  }

  void tell_missing(const std::string& what, const Devices& found) {
    const std::string here =
        concat(what, ", this machine has ", machine_.gpus == 0 ? "no GPU" : counted(machine_.gpus, "GPU"));
    if (run_.devices_strict) {
      config_.error_at("devices", here + ", and devices_strict is true; name devices that are here");
    }
    const std::string more = machine_.gpus == 0 ? "; a count, such as devices: 2, makes CPUs stand in for all" : "";
    decision_.warnings.push_back(concat("devices: ", here, ": training on ", join(found), more));
  }

  // Ranks share one communicator, and none joins CPUs with GPUs.
  void check_one_kind() const {
    const Devices& devices = decision_.placement.devices;
    const auto gpus = static_cast<std::size_t>(std::ranges::count_if(devices, is_gpu));
    if (several_ranks() && gpus > 0 && gpus < devices.size()) {
      config_.error_at("devices", concat(entry_.variant.name, " cannot join CPUs and GPUs (", join(devices),
                                         "); name one kind of device, or choose a strategy that runs in one process"));
    }
  }

  void check_invariant() const {
    const int64_t devices = data_ranks();
    const int64_t shards = run_.virtual_shards;
    if (!entry_.can_be_invariant) {
      std::vector<std::string> able;
      for (const strategy::Entry* entry : strategy::entries()) {
        if (entry->can_be_invariant) able.push_back(entry->variant.name);
      }
      config_.error_at("determinism",
                       concat("invariant is not possible under ", entry_.variant.name, "; choose one of ", join(able)));
    }
    if ((shards & (shards - 1)) != 0) {
      config_.error_at("virtual_shards", concat("must be a power of two, not ", shards));
    }
    if (shards % devices != 0) {
      config_.error_at("virtual_shards",
                       concat(counted(shards, "shard"), " cannot be shared out evenly over ",
                              counted(devices, "device"), "; use 1, 2, 4, ... devices, at most ", shards));
    }
    if (run_.threads.value_or(1) != 1) {
      config_.error_at("threads", "determinism: invariant computes with one thread a rank; leave it out");
    }
    const BatchPlan& batch = decision_.placement.batch;
    const int64_t rows = strategy::divided_up(batch.batch_size, shards);
    if (batch.is_asked && batch.micro_batch < rows) {
      config_.error_at(
          "virtual_shards",
          concat("each of ", counted(shards, "shard"), " of a batch of ", batch.batch_size, " has ",
                 counted(rows, "row"), ", and by accumulate, micro_batch or microbatches a rank holds at most ",
                 batch.micro_batch, "; raise virtual_shards"));
    }
    const config::Section& model = config_.section("model");
    if (model.has("bn") && model.text("bn") == "sync") {
      config_.error_at(
          "model.bn",
          "sync sums over the ranks in no fixed order, which determinism: invariant rules out; write local");
    }
  }

  int64_t data_ranks() const {
    return strategy::data_ranks(config_, static_cast<int64_t>(decision_.placement.devices.size()));
  }
  bool on_gpus() const { return is_gpu(decision_.placement.devices.front()); }
  bool several_ranks() const { return decision_.placement.world_size > 1; }
  bool as_threads() const { return run_.launch == config::Launch::threads; }

  std::string backend() const {
    if (run_.comm_backend != "auto") {
      check_backend(run_.comm_backend);
      return run_.comm_backend;
    }
    if (!several_ranks()) return "local";
    if (on_gpus()) return "nccl";
    return as_threads() ? "local" : "gloo";
  }

  void check_backend(const std::string& asked) const {
    const auto refuse = [this](const std::string& why) { config_.error_at("comm.backend", why); };
    if (asked == "nccl" && !on_gpus()) refuse("nccl joins GPUs, but the devices are CPUs; write auto");
    if (asked != "nccl" && on_gpus() && several_ranks()) refuse(asked + " joins CPUs, not GPUs; write nccl");
    if (asked == "local" && several_ranks() && !as_threads()) {
      refuse("local joins threads of one process; write launch: threads, or gloo here");
    }
  }

  void check_algorithm(const std::string& used) const {
    const std::string& asked = run_.comm_algorithm;
    if (used != "nccl" || asked == "auto" || asked == "library") return;
    config_.error_at("comm.algorithm", asked + " is for gloo and local, but these ranks use nccl; write auto");
  }

  void warn_of_idle_devices() {
    const int64_t count = data_ranks();
    const int64_t batch_size = decision_.placement.batch.batch_size;
    if (batch_size >= count) return;
    const bool all = count == static_cast<int64_t>(decision_.placement.devices.size());
    const std::string thing = !all ? "data rank" : several_ranks() ? "rank" : "device";
    const bool one = batch_size == count - 1;
    decision_.warnings.push_back(concat("batch_size ", batch_size, " over ", counted(count, thing), ": ", thing,
                                        one ? " " : "s ", batch_size, one ? " gets" : concat("..", count - 1, " get"),
                                        " no samples"));
  }

  void warn_of_pieces() {
    const config::Section& model = config_.section("model");
    const BatchPlan& batch = decision_.placement.batch;
    const int64_t pieces = batch.pieces;
    if (pieces < batch.accumulate && !run_.invariant) {
      decision_.warnings.push_back(
          concat(batch.accumulate, " pieces of a batch cannot be had from ", counted(batch.batch_size, "row"), " over ",
                 counted(data_ranks(), "data rank"), ": ", counted(pieces, "piece"), " of 1 row"));
    }
    if (pieces == 1 || !model.has("bn") || model.text("bn") != "sync") return;
    decision_.warnings.push_back(concat("model.bn: sync takes the statistics of each of the ", pieces,
                                        " pieces of a batch, so the run is not that of one device on whole batches"));
  }

  void warn_of_too_many_threads() {
    const Placement& placement = decision_.placement;
    const int64_t all = placement.threads_per_rank * placement.world_size;
    if (!run_.threads || all <= 2 * machine_.cores) return;
    decision_.warnings.push_back(concat("threads: ", counted(all, "thread"), " on ", counted(machine_.cores, "core"),
                                        " wait for each other; lower threads, or leave it out"));
  }

  const config::Config& config_;
  const config::Run run_;
  const strategy::Entry& entry_;
  const Machine machine_;
  Decision decision_;
};

void check_devices(const config::Config& config, const model::Model& model, const Decision& decision) {
  const auto& check = strategy::entry_of(config).check_devices;
  if (check) check(config, model, decision.placement.devices);
}

bool may_need_gpu(const config::DeviceRequest& request) {
  return request.automatic || request.count > 0 || std::ranges::any_of(request.names, is_gpu);
}

}  // namespace

int64_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

Decision decide(const config::Config& config, const Machine& machine) { return Chooser(config, machine).decide(); }

Machine this_machine(const config::Config& config) {
  const bool ask_driver = may_need_gpu(config.top().devices("devices"));
  return {.gpus = ask_driver ? comm::gpu_count() : 0, .cores = usable_cores()};
}

config::Config with_batch_size(const config::Config& config) {
  using Source = config::Origin::Source;
  const config::Section& top = config.top();
  if (top.origin("batch_size").source != Source::fallback || !top.has("micro_batch")) return config;
  const BatchPlan plan = decide(config, this_machine(config)).placement.batch;
  if (plan.batch_size == top.integer("batch_size")) return config;
  return config.with("batch_size", plan.batch_size, {Source::derived, "micro_batch, accumulate and devices"});
}

std::vector<std::string> check(const config::Config& config) {
  const model::Model model = model::build(config);
  if (config::run_of(config).devices_strict) return {};  // another machine may have what this one has not
  const Decision decision = decide(config, this_machine(config));
  check_devices(config, model, decision);
  return decision.warnings;
}

Placement place(const config::Config& config) {
  const Decision decision = decide(config, this_machine(config));
  check_devices(config, model::build(config), decision);
  const bool told = is_rank_process();  // by its launcher, but log.txt is this process's
  if (!decision.stand_in.empty()) (told ? log::to_file : log::info)(decision.stand_in);
  for (const std::string& warning : decision.warnings) (told ? log::to_file : log::warning)(warning);
  return decision.placement;
}

}  // namespace mgt::launch
