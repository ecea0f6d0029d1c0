#include "config/run.h"

namespace mgt::config {
namespace {

constexpr double kMany = 1e9;  // a count beyond this is a slip, and sums of such counts stay within 64 bits

std::optional<int64_t> optional_integer(const Section& section, const std::string& key) {
  return section.has(key) ? std::optional<int64_t>(section.integer(key)) : std::nullopt;
}

}  // namespace

std::vector<Option> run_options() {
  const Run run;
  return {
      {.key = "devices",
       .kind = Kind::devices,
       .fallback = DeviceRequest{.automatic = true},
       .help = "Devices to train on: auto (every GPU, else the CPU), a count (0 is the CPU), or names; a number in a "
               "list is a GPU.",
       .bounds = {.at_least = 0, .at_most = 1024}},
      {.key = "devices_strict",
       .kind = Kind::boolean,
       .fallback = run.devices_strict,
       .help = "A device that is not there is an error, not a CPU rank in its place."},
      {.key = "batch_size",
       .kind = Kind::integer,
       .fallback = run.batch_size,
       .help = "Samples of one optimizer step, over all ranks.",
       .bounds = {.at_least = 1, .at_most = kMany}},
      {.key = "accumulate",
       .kind = Kind::integer,
       .fallback = {},
       .help = "Pieces that each rank takes its part of a batch in, one after another; absent: as micro_batch or "
               "strategy.microbatches says, else 1.",
       .bounds = {.at_least = 1, .at_most = kMany},
       .examples = {int64_t{3}}},
      {.key = "micro_batch",
       .kind = Kind::integer,
       .fallback = {},
       .help = "The largest number of samples that a rank holds at once; absent: batch_size / ranks / accumulate.",
       .bounds = {.at_least = 1, .at_most = kMany}},
      {.key = "epochs",
       .kind = Kind::integer,
       .fallback = run.epochs,
       .help = "Passes over the training set.",
       .bounds = {.at_least = 1, .at_most = kMany}},
      {.key = "max_steps",
       .kind = Kind::integer,
       .fallback = {},
       .help = "Stop after so many optimizer steps.",
       .bounds = {.at_least = 1}},
      {.key = "seed",
       .kind = Kind::integer,
       .fallback = int64_t{0},
       .help = "Seed of everything random.",
       .bounds = {.at_least = 0}},
      {.key = "shuffle",
       .kind = Kind::boolean,
       .fallback = run.shuffle,
       .help = "A new order of the samples in each epoch; false: the order of the file."},
      {.key = "precision",
       .kind = Kind::text,
       .fallback = "fp32",
       .help = "Type of weights and arithmetic.",
       .choices = {"fp32", "fp64"}},
      {.key = "determinism",
       .kind = Kind::text,
       .fallback = "repeatable",
       .help = "repeatable: the same config gives the same bits again; invariant: also on other numbers of devices.",
       .choices = {"repeatable", "invariant"}},
      {.key = "virtual_shards",
       .kind = Kind::integer,
       .fallback = run.virtual_shards,
       .help = "Parts that determinism: invariant cuts each batch into, a power of two that the devices divide; a rank "
               "takes "
               "its own one after another, in place of accumulate's pieces.",
       .bounds = {.at_least = 1, .at_most = 1024}},
      {.key = "threads",
       .kind = Kind::integer,
       .fallback = {},
       .help = "CPU threads of each rank; absent: the cores shared out over the ranks.",
       .bounds = {.at_least = 1, .at_most = 4096}},
      {.key = "launch",
       .kind = Kind::text,
       .fallback = "processes",
       .help = "What a rank is.",
       .choices = {"processes", "threads"}},
      {.key = "init",
       .kind = Kind::text,
       .fallback = {},
       .help = "A safetensors file with the first weights, names and shapes as the model's (floating types are "
               "converted); absent: random ones."},
  };
}

SectionSpec comm_section() {
  const Run run;
  return {.key = "comm",
          .summary = "How ranks talk to each other.",
          .main_key = "backend",
          .options = {
              {.key = "backend",
               .kind = Kind::text,
               .fallback = "auto",
               .help = "Library of the collectives; auto: local between threads, nccl on GPUs, gloo otherwise.",
               .choices = {"auto", "local", "gloo", "nccl"}},
              {.key = "timeout",
               .kind = Kind::number,
               .fallback = run.comm_timeout_s,
               .help = "Seconds after which a silent rank ends the run with an error.",
               .bounds = {.at_most = 86400, .above = 0}},
              {.key = "algorithm",
               .kind = Kind::text,
               .fallback = "auto",
               .help = "How reductions and gathers move over gloo and local: by the library, by own messages around a "
                       "ring, or by recursive halving and doubling (a ring where the ranks are no power of two); auto: "
                       "what measured fastest.",
               .choices = {"auto", "library", "ring", "halving_doubling"}},
          }};
}

SectionSpec log_section() {
  const Run run;
  return {.key = "log",
          .summary = "What is said while training.",
          .main_key = "level",
          .options = {
              {.key = "language",
               .kind = Kind::text,
               .fallback = run.language,
               .help = "Language of the last line.",
               .choices = {"en", "zh"}},
              {.key = "level",
               .kind = Kind::text,
               .fallback = run.log_level,
               .help = "The least important messages that are shown.",
               .choices = {"debug", "info", "warning"}},
              {.key = "every_steps",
               .kind = Kind::integer,
               .fallback = run.log_every_steps,
               .help = "A metrics record every so many steps; 0: one per epoch.",
               .bounds = {.at_least = 0}},
          }};
}

Run run_of(const Config& config) {
  const Section& top = config.top();
  const Section& comm = config.section("comm");
  const Section& log = config.section("log");
  Run run;
  run.devices = top.devices("devices");
  run.devices_strict = top.boolean("devices_strict");
  run.batch_size = top.integer("batch_size");
  run.epochs = top.integer("epochs");
  run.max_steps = optional_integer(top, "max_steps");
  run.seed = static_cast<uint64_t>(top.integer("seed"));
  run.shuffle = top.boolean("shuffle");
  run.precision = top.text("precision") == "fp64" ? Precision::fp64 : Precision::fp32;
  run.invariant = top.text("determinism") == "invariant";
  run.virtual_shards = top.integer("virtual_shards");
  run.threads = optional_integer(top, "threads");
  run.launch = top.text("launch") == "threads" ? Launch::threads : Launch::processes;
  if (top.has("init")) run.init = top.text("init");
  run.comm_backend = comm.text("backend");
  run.comm_timeout_s = comm.number("timeout");
  run.comm_algorithm = comm.text("algorithm");
  run.language = log.text("language");
  run.log_level = log.text("level");
  run.log_every_steps = log.integer("every_steps");
  return run;
}

}  // namespace mgt::config
