#include "config/run.h"

namespace mgt::config {
namespace {

constexpr double kMany = 1e9;  // a count beyond this is a slip, and sums of such counts stay within 64 bits

std::optional<int64_t> optional_integer(const Section& section, const std::string& key) {
  return section.has(key) ? std::optional<int64_t>(section.integer(key)) : std::nullopt;
}

}  // namespace

std::vector<Option> run_options() {
  return {
      {.key = "devices",
       .kind = Kind::devices,
       .fallback = DeviceRequest{.automatic = true},
       .help = "Devices to train on: auto (every GPU, else the CPU), a count (0 is the CPU), or names; a number in a "
               "list is a GPU.",
       .bounds = {.at_least = 0, .at_most = 1024}},
      boolean("devices_strict", false, "A device that is not there is an error, not a CPU rank in its place."),
      integer("batch_size", 256, "Samples of one optimizer step, over all ranks.", {.at_least = 1, .at_most = kMany}),
      integer("accumulate", {},
              "Pieces that each rank takes its part of a batch in, one after another; absent: 1, or as micro_batch "
              "says.",
              {.at_least = 1, .at_most = kMany}, {3}),
      integer("micro_batch", {},
              "The largest number of samples that a rank holds at once; absent: batch_size / ranks / accumulate.",
              {.at_least = 1, .at_most = kMany}),
      integer("epochs", 10, "Passes over the training set.", {.at_least = 1, .at_most = kMany}),
      integer("max_steps", {}, "Stop after so many optimizer steps.", {.at_least = 1}),
      integer("seed", 0, "Seed of everything random.", {.at_least = 0}),
      boolean("shuffle", true, "A new order of the samples in each epoch; false: the order of the file."),
      text("precision", "fp32", "Type of weights and arithmetic.", {"fp32", "fp64"}),
      text("determinism", "repeatable",
           "repeatable: the same config gives the same bits again; invariant: also on other numbers of devices.",
           {"repeatable", "invariant"}),
      integer("virtual_shards", 4,
              "Parts that determinism: invariant cuts each batch into, a power of two that the devices divide; a rank "
              "takes its own one after another, in place of accumulate's pieces.",
              {.at_least = 1, .at_most = 1024}),
      integer("threads", {}, "CPU threads of each rank; absent: the cores shared out over the ranks.",
              {.at_least = 1, .at_most = 4096}),
      text("launch", "processes", "What a rank is.", {"processes", "threads"}),
      text("init", {},
           "A safetensors file with the first weights, names and shapes as the model's (floating types are "
           "converted); absent: random ones."),
  };
}

SectionSpec comm_section() {
  return {.key = "comm",
          .summary = "How ranks talk to each other.",
          .main_key = "backend",
          .options = {
              text("backend", "auto",
                   "Library of the collectives; auto: local between threads, nccl on GPUs, gloo otherwise.",
                   {"auto", "local", "gloo", "nccl"}),
              number("timeout", 30, "Seconds after which a silent rank ends the run with an error.",
                     {.at_most = 86400, .above = 0}),
              text("algorithm", "auto",
                   "How reductions and gathers move over gloo and local: by the library, by own messages around a "
                   "ring, or by recursive halving and doubling (a ring where the ranks are no power of two); auto: "
                   "what measured fastest.",
                   {"auto", "library", "ring", "halving_doubling"}),
          }};
}

SectionSpec log_section() {
  return {.key = "log",
          .summary = "What is said while training.",
          .main_key = "level",
          .options = {
              text("language", "en", "Language of the last line.", {"en", "zh"}),
              text("level", "info", "The least important messages that are shown.", {"debug", "info", "warning"}),
              integer("every_steps", 0, "A metrics record every so many steps; 0: one per epoch.", {.at_least = 0}),
          }};
}

Run run_of(const Config& config) {
  const Section& top = config.top();
  const Section& comm = config.section("comm");
  const Section& log = config.section("log");
  return {.devices = top.devices("devices"),
          .devices_strict = top.boolean("devices_strict"),
          .batch_size = top.integer("batch_size"),
          .epochs = top.integer("epochs"),
          .max_steps = optional_integer(top, "max_steps"),
          .seed = static_cast<uint64_t>(top.integer("seed")),
          .shuffle = top.boolean("shuffle"),
          .precision = top.text("precision") == "fp64" ? Precision::fp64 : Precision::fp32,
          .invariant = top.text("determinism") == "invariant",
          .virtual_shards = top.integer("virtual_shards"),
          .threads = optional_integer(top, "threads"),
          .launch = top.text("launch") == "threads" ? Launch::threads : Launch::processes,
          .init = top.has("init") ? std::optional(top.text("init")) : std::nullopt,
          .comm_backend = comm.text("backend"),
          .comm_timeout_s = comm.number("timeout"),
          .comm_algorithm = comm.text("algorithm"),
          .language = log.text("language"),
          .log_level = log.text("level"),
          .log_every_steps = log.integer("every_steps")};
}

}  // namespace mgt::config
