// A schema like that of the program, small enough to read: what the tests of lib/config resolve their files against.
#pragma once

#include "config/option.h"
#include "config/reader.h"
#include "config/run.h"
#include "core/error.h"
#include "core/text.h"

#include <string>
#include <vector>

namespace mgt::test {

using config::Bounds;
using config::Kind;
using config::Option;
using config::SectionSpec;
using config::Variant;

inline Option number(const std::string& key, double fallback, const Bounds& bounds) {
  return {.key = key, .kind = Kind::number, .fallback = fallback, .help = "A number.", .bounds = bounds};
}

inline Option integer(const std::string& key, int64_t fallback, const Bounds& bounds) {
  return {.key = key, .kind = Kind::integer, .fallback = fallback, .help = "A whole number.", .bounds = bounds};
}

inline Option path(const std::string& key) {
  return {.key = key, .kind = Kind::text, .fallback = {}, .help = "A file or folder."};
}

inline SectionSpec model_section() {
  const Option channels = {.key = "channels",
                           .kind = Kind::integers,
                           .fallback = std::vector<int64_t>{20, 50},
                           .help = "Channels of the two convolutions.",
                           .bounds = {.at_least = 1},
                           .length = 2};
  const Option bn = {.key = "bn",
                     .kind = Kind::text,
                     .fallback = "local",
                     .help = "Whose statistics BatchNorm takes.",
                     .choices = {"local", "sync"}};
  return {.key = "model",
          .summary = "What is trained.",
          .main_key = "name",
          .options = {},
          .variants = {{"lenet", "LeNet.", {channels, integer("hidden", 128, {.at_least = 1})}},
                       {"resnet18", "ResNet-18.", {bn, integer("width", 64, {.at_least = 1})}},
                       {"mlp", "One hidden layer.", {integer("hidden", 256, {.at_least = 1})}}},
          .fallback = "lenet"};
}

inline SectionSpec data_section() {
  return {
      .key = "data",
      .summary = "The samples.",
      .main_key = "name",
      .options = {path("dir"), {.key = "limit", .kind = Kind::integer, .fallback = {}, .help = "First rows only."}},
      .variants = {{"fashion_mnist", "Fashion-MNIST.", {}},
                   {"idx", "IDX files.", {path("images"), path("labels"), integer("classes", 10, {.at_least = 1})}}},
      .fallback = "fashion_mnist"};
}

inline void check_single(const config::Config& run) {
  const config::DeviceRequest& devices = run.top().devices("devices");
  if (devices.count > 1) {
    run.error_at("strategy.name", concat("single is one device, devices are ", devices.count, "; write devices: 1"));
  }
}

inline SectionSpec strategy_section() {
  const Option bucket = number("bucket_mb", 25, {.above = 0});
  const Option ring = {.key = "allreduce",
                       .kind = Kind::text,
                       .fallback = "ring",
                       .help = "How gradients are summed.",
                       .choices = {"naive", "tree", "ring"}};
  return {.key = "strategy",
          .summary = "How devices work together.",
          .main_key = "name",
          .options = {},
          .variants = {{"single", "One device.", {}, check_single},
                       {"scratch", "By hand.", {ring}},
                       {"ddp", "Replicas.", {bucket}},
                       {"zero", "Sharded.", {bucket, integer("stage", 2, {.at_least = 1, .at_most = 3})}}},
          .fallback = "single"};
}

inline void check_nesterov(const config::Config& run) {
  const config::Section& optimizer = run.section("optimizer");
  if (optimizer.boolean("nesterov") && optimizer.number("momentum") == 0) {
    run.error_at("optimizer.nesterov", "needs momentum above 0; set optimizer.momentum");
  }
}

inline SectionSpec optimizer_section() {
  const Option lr = number("lr", 0.1, {.above = 0});
  const Option momentum = number("momentum", 0, {.at_least = 0, .below = 1});
  const Option decay = number("weight_decay", 0, {.at_least = 0});
  const Option nesterov = {
      .key = "nesterov", .kind = Kind::boolean, .fallback = false, .help = "Nesterov's momentum | look ahead."};
  const Option betas = {.key = "betas",
                        .kind = Kind::numbers,
                        .fallback = std::vector<double>{0.9, 0.999},
                        .help = "Decay of the averages.",
                        .bounds = {.at_least = 0, .below = 1},
                        .length = 2};
  const Option no_decay = {
      .key = "no_decay", .kind = Kind::text, .fallback = {}, .help = "Exempt.", .choices = {"bias", "norm"}};
  const Option eps = number("eps", 1e-8, {.above = 0});
  return {.key = "optimizer",
          .summary = "How weights are updated.",
          .main_key = "name",
          .options = {lr, decay, no_decay},
          .variants = {{"sgd", "SGD.", {momentum, nesterov}, check_nesterov},
                       {"adam", "Adam.", {betas, eps}},
                       {"adamw", "AdamW.", {betas, eps}}},
          .fallback = "sgd"};
}

inline SectionSpec clip_section() {
  return {.key = "clip",
          .summary = "Clipping of the gradient.",
          .main_key = "norm",
          .options = {{.key = "norm",
                       .kind = Kind::number,
                       .fallback = {},
                       .help = "Largest norm of the whole gradient.",
                       .bounds = {.above = 0}}}};
}

inline const config::Schema& schema() {
  static const config::Schema instance = [] {
    config::Schema built{config::run_options(),
                         {model_section(), data_section(), strategy_section(), optimizer_section(), clip_section(),
                          config::comm_section(), config::log_section()}};
    built.top.push_back(integer("accumulate", 1, {.at_least = 1}));
    return built;
  }();
  return instance;
}

inline config::Config resolved(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return config::resolve(schema(), {"run.yaml", text}, overrides);
}

// The message of the ConfigError that resolving ends in; empty when there is none.
inline std::string error_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    resolved(text, overrides);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace mgt::test
