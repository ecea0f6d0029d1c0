// Every strategy against training runs that PyTorch computed (tests/cases/1_trajectories, 8_vit), in fp64.
#include "test.h"
#include "training.h"

#include "checkpoint/safetensors.h"
#include "strategy/entry.h"

#include "torch_pch.h"
#include <nlohmann/json.hpp>

#include <fstream>

using namespace mgt;
using nlohmann::json;

namespace {

constexpr double kBound = 1e-12;

struct Way {
  std::string strategy;  // YAML
  int64_t devices;
  test::Backend backend = test::Backend::local;
};

std::vector<Way> all_ways() {
  return {{"single", 1},
          {"{name: scratch, allreduce: naive}", 2},
          {"{name: scratch, allreduce: tree}", 3},
          {"{name: scratch, allreduce: ring}", 4},
          {"data_parallel", 2},
          {"data_parallel", 3},
          {"ddp", 1},
          {"{name: ddp, bucket_mb: 0.001}", 2},
          {"{name: ddp, bucket_mb: 0.001, overlap: false}", 3},
          {"ddp", 4},
          {"{name: ddp, bucket_mb: 0.001}", 2, test::Backend::gloo},
          {"{name: zero, stage: 1}", 2},
          {"{name: zero, stage: 2, bucket_mb: 0.001}", 3},
          {"{name: zero, stage: 3}", 4},
          {"{name: zero, stage: 3}", 2, test::Backend::gloo},
          {"{name: pipeline, schedule: gpipe}", 2},
          {"pipeline", 4},
          {"pipeline", 3, test::Backend::gloo},
          {"{name: pipeline, schedule: interleaved}", 2},
          {"{name: hybrid, pipeline: 2}", 4},
          {"{name: hybrid, data: 3, pipeline: 2, zero: 3}", 6},
          {"tensor", 2},
          {"tensor", 3, test::Backend::gloo},
          {"{name: hybrid, tensor: 2, pipeline: 2}", 8},
          {"layer_split", 2},
          {"{name: layer_split, split: [1, 1, 2]}", 3}};
}

json golden(const std::string& name) {
  std::ifstream file(test::cases() + "/1_trajectories/" + name);
  return json::parse(file);
}

std::string golden_file(const std::string& name) { return test::cases() + "/1_trajectories/" + name; }

bool close(double value, double wanted) { return std::abs(value - wanted) <= kBound * std::abs(wanted); }

// A tensor against its summary in a golden file: the norm, or the whole value of a counter.
void compare_summary(const at::Tensor& tensor, const json& summary) {
  if (summary.contains("value"))
    REQUIRE(tensor.item<int64_t>() == summary["value"][0].get<int64_t>());
  else
    REQUIRE(close(tensor.norm().item<double>(), summary["l2"]));
}

void compare_steps(const test::Outcome& outcome, const json& records) {
  REQUIRE(outcome.losses.size() == records.size());
  for (std::size_t step = 0; step < records.size(); ++step) {
    INFO("step " << step << ": loss " << outcome.losses[step] << " for " << records[step]["loss"] << ", norm "
                 << outcome.grad_norms[step] << " for " << records[step]["grad_norm"]);
    REQUIRE(outcome.samples[step] == records[step]["n"].get<int64_t>());
    REQUIRE(close(outcome.losses[step], records[step]["loss"]));
    REQUIRE(close(outcome.grad_norms[step], records[step]["grad_norm"]));
  }
}

void compare_weights(const test::Outcome& outcome, const std::string& file) {
  const checkpoint::Reader reader(real_file_system(), file);
  for (const auto& replica : outcome.replicas) {
    for (const auto& [name, tensor] : replica) {
      INFO(name);
      REQUIRE(test::relative_difference(tensor, reader.read(name)) < kBound);
    }
  }
}

void compare_run(const std::string& name, const std::string& optimizer, const Way& way, const std::string& more = "") {
  INFO(name << " under " << way.strategy << " on " << way.devices);
  const json run = golden(name + ".json");
  test::Training training{.yaml = "model: {name: lenet, channels: [4, 6], hidden: 16}\nprecision: fp64\nstrategy: " +
                                  way.strategy + "\noptimizer: " + optimizer + "\n" + more +
                                  (more.find("batch_size") == std::string::npos ? "batch_size: 64\n" : ""),
                          .devices = way.devices,
                          .data = test::golden_data(),
                          .order = {},
                          .init = golden_file("lenet_init.safetensors"),
                          .fill = {},
                          .backend = way.backend};
  if (run.contains("orders")) {
    training.order = [orders = run["orders"]](int64_t epoch) {
      return orders[static_cast<std::size_t>(epoch)].get<std::vector<int64_t>>();
    };
  }
  const test::Outcome outcome = test::train(training);
  compare_steps(outcome, run["records"]);
  compare_weights(outcome, golden_file(name + "_final.safetensors"));
  if (run.contains("test")) {
    REQUIRE(outcome.test.correct == run["test"]["correct"].get<int64_t>());
    REQUIRE(outcome.test.total == run["test"]["total"].get<int64_t>());
  }
}

// With what PyTorch computed on one device: steps, counts, and the statistics of every replica that has them.
void compare_single(const test::Outcome& outcome, const json& run) {
  compare_steps(outcome, run["records"]);
  REQUIRE(outcome.test.correct == run["test"]["correct"].get<int64_t>());
  for (const auto& replica : outcome.replicas) {
    for (const auto& [name, values] : run["running"].items()) {
      INFO(name);
      compare_summary(replica.at(name), values);
    }
  }
}

}  // namespace

TEST_CASE("plain SGD equals PyTorch under every strategy (S-04, S-28, S-51)") {
  for (const Way& way : all_ways()) compare_run("sgd", "{name: sgd, lr: 0.2}", way);
}

TEST_CASE("every optimizer equals PyTorch under every strategy (S-51)") {
  const Way ways[] = {{"single", 1},
                      {"{name: scratch, allreduce: ring}", 3},
                      {"data_parallel", 2},
                      {"{name: ddp, bucket_mb: 0.001}", 3},
                      {"{name: zero, stage: 1}", 3},
                      {"{name: zero, stage: 2, bucket_mb: 0.001}", 2},
                      {"{name: zero, stage: 3}", 4},
                      {"layer_split", 2}};
  for (const Way& way : ways) {
    compare_run("sgd_momentum", "{name: sgd, lr: 0.05, momentum: 0.9}", way);
    compare_run("sgd_momentum_decay_nesterov",
                "{name: sgd, lr: 0.05, momentum: 0.9, weight_decay: 0.0005, nesterov: true}", way);
    compare_run("adamw", "{name: adamw, lr: 0.001, weight_decay: 0.01}", way);
    compare_run("adam_l2", "{name: adam, lr: 0.001, weight_decay: 0.01}", way);
  }
}

TEST_CASE("clipping by the global norm equals PyTorch under every strategy") {
  for (const Way& way : all_ways()) compare_run("sgd_clip", "{name: sgd, lr: 0.2, momentum: 0.9}", way, "clip: 1.0\n");
}

TEST_CASE("accumulation equals PyTorch under every strategy, with short windows (S-79)") {
  for (const Way& way : all_ways()) {
    compare_run("sgd_accumulate_2", "{name: sgd, lr: 0.2}", way, "batch_size: 128\naccumulate: 2\n");
    compare_run("sgd_micro_16", "{name: sgd, lr: 0.2}", way, "micro_batch: 16\n");
  }
}

TEST_CASE("a ramp, a cosine, clipping and accumulation together equal PyTorch under every strategy") {
  for (const Way& way : all_ways()) {
    compare_run("adamw_cosine_warmup_clip_accumulate", "{name: adamw, lr: 0.004, weight_decay: 0.05}", way,
                "batch_size: 128\naccumulate: 2\nclip: 0.6\n"
                "schedule: {name: cosine, warmup: 3, start_factor: 0.25, eta_min: 0.0001}\n");
  }
}

TEST_CASE("virtual shards compute the same function, with more of them than rows too") {
  for (const Way& way : {Way{"single", 1}, Way{"scratch", 2}, Way{"ddp", 4}, Way{"{name: ddp, bucket_mb: 0.001}", 2},
                         Way{"{name: zero, stage: 1}", 2}, Way{"{name: zero, stage: 3}", 4}}) {
    compare_run("sgd", "{name: sgd, lr: 0.2}", way, "determinism: invariant\n");
  }
  compare_run("sgd", "{name: sgd, lr: 0.2}", {"ddp", 4}, "determinism: invariant\nvirtual_shards: 32\n");
}

TEST_CASE("a given order of samples is followed by every strategy") {
  for (const Way& way : all_ways()) compare_run("sgd_shuffled", "{name: sgd, lr: 0.1, momentum: 0.9}", way);
}

TEST_CASE("the full LeNet equals PyTorch under every strategy (S-40)") {
  const json run = golden("lenet_full_by_formula.json");
  const auto fill = [&run](std::vector<model::StateSlice>& state) {
    const at::NoGradGuard no_grad;
    for (model::StateSlice& slice : state) {
      if (slice.kind != model::StateKind::parameter) continue;
      const json& formula = run["init_formula"]["offset_scale"][slice.name];
      const at::Tensor i = at::arange(model::elements(slice.global), at::kLong);
      const at::Tensor unit =
          i.mul(7919).add(formula[0].get<int64_t>()).remainder(65537).to(at::kDouble).div(65537.0).sub(0.5);
      slice.view.copy_(model::piece_of(unit.mul(formula[1].get<double>()).view(slice.global), slice));
    }
  };
  for (const Way& way : all_ways()) {
    INFO(way.strategy << " on " << way.devices);
    const test::Outcome outcome =
        test::train({.yaml = "model: lenet\nprecision: fp64\nbatch_size: 64\nstrategy: " + way.strategy +
                             "\noptimizer: {name: sgd, lr: 0.2}\n",
                     .devices = way.devices,
                     .data = test::golden_data(),
                     .order = {},
                     .init = "",
                     .fill = fill,
                     .backend = way.backend});
    compare_steps(outcome, run["records"]);
    for (const auto& replica : outcome.replicas) {
      for (const auto& [name, tensor] : replica) {
        INFO(name);
        compare_summary(tensor, run["final"][name]);
      }
    }
  }
}

TEST_CASE("residual networks with BatchNorm equal PyTorch on one device (S-45)") {
  const std::pair<std::string, std::string> runs[] = {
      {"resnet_tiny_d2l", "style: d2l, channels: [4, 8], blocks: [1, 1]"},
      {"resnet_tiny_torchvision", "style: torchvision, channels: [4, 8], blocks: [1, 1]"},
      {"resnet18_narrow_d2l", "style: d2l, channels: [4, 8, 16, 32]"}};
  for (const auto& [name, options] : runs) {
    const json file = golden(name + ".json");
    const json& run = file["runs"][0];
    REQUIRE(run["mode"] == "single");
    for (const std::string strategy : {"single", "layer_split"}) {
      INFO(name << " under " << strategy);
      const test::Outcome outcome = test::train({.yaml = "model: {name: resnet18, " + options +
                                                         "}\nprecision: fp64\nbatch_size: 64\nstrategy: " + strategy +
                                                         "\noptimizer: " + file["optimizer"].dump() + "\n",
                                                 .devices = strategy == "single" ? 1 : 2,
                                                 .steps = static_cast<int64_t>(run["records"].size()),
                                                 .data = test::golden_data(),
                                                 .order = {},
                                                 .init = golden_file(name + "_init.safetensors"),
                                                 .fill = {}});
      compare_single(outcome, run);
    }
  }
}

TEST_CASE("BatchNorm with synchronised statistics equals PyTorch on one device, on any number of ranks (S-55, D-12)") {
  for (const std::string name : {"resnet_tiny_d2l", "resnet_tiny_torchvision"}) {
    const json file = golden(name + ".json");
    const json& run = file["runs"][0];
    REQUIRE(run["mode"] == "single");
    for (const std::string strategy : {"ddp", "data_parallel", "{name: zero, stage: 2}", "{name: zero, stage: 3}"}) {
      for (const int64_t devices : {1, 2, 3, 4}) {
        INFO(name << " under " << strategy << " on " << devices);
        const std::string style = name == "resnet_tiny_d2l" ? "d2l" : "torchvision";
        const test::Outcome outcome =
            test::train({.yaml = "model: {name: resnet18, bn: sync, channels: [4, 8], blocks: [1, 1], style: " + style +
                                 "}\nprecision: fp64\nbatch_size: 64\nstrategy: " + strategy +
                                 "\noptimizer: " + file["optimizer"].dump() + "\n",
                         .devices = devices,
                         .data = test::golden_data(),
                         .order = {},
                         .init = golden_file(name + "_init.safetensors"),
                         .fill = {}});
        compare_single(outcome, run);
      }
    }
  }
}

TEST_CASE("BatchNorm with local statistics equals PyTorch's DDP on 2 and 4 ranks (S-55)") {
  const json file = golden("resnet_tiny_d2l.json");
  for (const json& run : file["runs"]) {
    if (run["mode"] != "local") continue;
    const auto ranks = run["ranks"].get<int64_t>();
    for (const std::string strategy :
         {"ddp", "data_parallel", "scratch", "{name: zero, stage: 1}", "{name: zero, stage: 3}"}) {
      INFO(strategy << " on " << ranks);
      const test::Outcome outcome = test::train({.yaml = "model: {name: resnet18, channels: [4, 8], blocks: [1, "
                                                         "1]}\nprecision: fp64\nbatch_size: 64\nstrategy: " +
                                                         strategy + "\noptimizer: " + file["optimizer"].dump() + "\n",
                                                 .devices = ranks,
                                                 .data = test::golden_data(),
                                                 .order = {},
                                                 .init = golden_file("resnet_tiny_d2l_init.safetensors"),
                                                 .fill = {}});
      compare_steps(outcome, run["records"]);
      for (std::size_t rank = 0; rank < outcome.replicas.size(); ++rank) {
        for (const auto& [name, values] : run["running_by_rank"][rank].items()) {
          INFO("rank " << rank << " " << name);
          compare_summary(outcome.replicas[rank].at(name), values);
        }
      }
      // The first rank's statistics are what is evaluated.
      REQUIRE(outcome.test.correct == run["test_by_rank_statistics"][0]["correct"].get<int64_t>());
    }
  }
}

TEST_CASE("a vision Transformer equals torchvision's under every strategy") {
  const std::string folder = test::cases() + "/8_vit/";
  std::ifstream file(folder + "vit_tiny.json");
  const json run = json::parse(file);
  for (const Way& way : all_ways()) {
    INFO(way.strategy << " on " << way.devices);
    const test::Outcome outcome = test::train({.yaml = "model: " + run["model"].dump() +
                                                       "\nprecision: fp64\nbatch_size: 64\nstrategy: " + way.strategy +
                                                       "\noptimizer: " + run["optimizer"].dump() + "\n",
                                               .devices = way.devices,
                                               .steps = static_cast<int64_t>(run["records"].size()),
                                               .data = test::golden_data(),
                                               .order = {},
                                               .init = folder + run["init"].get<std::string>(),
                                               .fill = {},
                                               .backend = way.backend});
    compare_steps(outcome, run["records"]);
    REQUIRE(outcome.test.correct == run["test"]["correct"].get<int64_t>());
    for (const auto& replica : outcome.replicas) {
      for (const auto& [name, tensor] : replica) {
        INFO(name);
        compare_summary(tensor, run["final"][name]);
        REQUIRE(std::abs(tensor.sum().item<double>() - run["final"][name]["sum"].get<double>()) <
                kBound * run["final"][name]["l2"].get<double>());
      }
    }
  }
}
