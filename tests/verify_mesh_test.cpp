// ZeRO against one device: every stage on 2, 3 and 4 ranks, with each optimizer, pieces of a batch, clipping, decay,
// and ranks that have no rows.
#include "test.h"
#include "verified.h"

#include "torch_pch.h"

using namespace mgt;

namespace {

const std::string kData = "data: {name: synthetic, train: 200, test: 101}\n";
const std::string kLenet = "model: lenet\n" + kData;
const std::string kVit = "model: vit\n" + kData;
// Without biases before BatchNorm, whose gradients are zero but for rounding.
const std::string kResnet = "model: {name: resnet18, style: torchvision, bn: sync}\n" + kData;

const std::vector<std::string> kOptimizers = {"{name: sgd, lr: 0.05, momentum: 0.9, weight_decay: 0.01",
                                              "{name: adam, lr: 0.01, weight_decay: 0.01",
                                              "{name: adamw, lr: 0.01, weight_decay: 0.1"};

verify::Verifier verifier_of(const std::string& yaml, int64_t steps) {
  return verify::Verifier(test::request(yaml, {2, 3, 4}, steps));
}

void require_equal(verify::Verifier& verifier, const std::string& strategy, int64_t world,
                   const std::vector<std::string>& settings) {
  verify::Case one{.overrides = {"strategy=" + strategy, "launch=threads"}, .world = world};
  one.overrides.insert(one.overrides.end(), settings.begin(), settings.end());
  REQUIRE(test::is_equal(verifier, one));
}

std::vector<std::string> stages(const std::string& more = "") {
  std::vector<std::string> strategies;
  for (const int64_t stage : {1, 2, 3}) strategies.push_back(concat("{name: zero, stage: ", stage, more, "}"));
  return strategies;
}

// Four steps, the third of which is short. `plain`: the worlds in which all is also checked without pieces and
// clipping.
void require_stages_equal(const std::string& yaml, const std::vector<int64_t>& plain) {
  verify::Verifier verifier = verifier_of(yaml, 4);
  for (const std::string& optimizer : kOptimizers) {
    for (const std::string& strategy : stages(", bucket_mb: 0.005")) {
      for (const int64_t world : {2, 3, 4}) {
        require_equal(verifier, strategy, world,
                      {concat("optimizer=", optimizer, ", no_decay: true}"), "accumulate=3", "clip.norm=0.1"});
      }
      for (const int64_t world : plain)
        require_equal(verifier, strategy, world, {concat("optimizer=", optimizer, "}")});
    }
  }
}

// Batches of 3 and a last one of 1 row: some ranks have none.
const std::vector<std::string> kFewRows = {"batch_size=3", "data.limit=7", "data.test_limit=5"};

std::vector<std::string> few_rows(const std::vector<std::string>& more) {
  std::vector<std::string> settings = kFewRows;
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

}  // namespace

TEST_CASE("ZeRO on 2, 3 and 4 ranks equals one device with each optimizer, accumulation, clipping: LeNet (S-10)") {
  require_stages_equal(kLenet, {2, 3, 4});
}

TEST_CASE("ZeRO equals one device with each optimizer, accumulation, clipping: synchronised BatchNorm (S-10, S-55)") {
  require_stages_equal(kResnet, {3});
}

TEST_CASE("ZeRO equals one device with each optimizer, accumulation, clipping: a Transformer (S-10)") {
  require_stages_equal(kVit, {3});
}

TEST_CASE("ZeRO over Gloo equals one device, in pieces and clipped (S-10)") {
  for (const std::string& yaml : {kLenet, kResnet}) {
    verify::Verifier verifier = verifier_of(yaml, 3);
    for (const std::string& strategy : stages()) {
      require_equal(verifier, strategy, 2,
                    {concat("optimizer=", kOptimizers[1], "}"), "comm.backend=gloo", "accumulate=3", "clip.norm=0.1"});
    }
  }
}

TEST_CASE("ranks without rows, and a last batch of 1, leave ZeRO equal to one device (S-10, S-27, D-2)") {
  for (const std::string& yaml : {kLenet, kVit}) {
    verify::Verifier verifier = verifier_of(yaml, 4);
    for (const std::string& strategy : stages()) {
      for (const int64_t world : {2, 4}) {
        require_equal(verifier, strategy, world, few_rows({"optimizer={name: adam, lr: 0.01}"}));
        require_equal(verifier, strategy, world, few_rows({"accumulate=2", "clip.norm=0.1"}));
      }
      require_equal(verifier, strategy, 4, few_rows({"comm.backend=gloo"}));
    }
  }
}

TEST_CASE("ranks without rows leave ZeRO equal to its reference: BatchNorm, synchronised and local (S-27, S-55)") {
  verify::Verifier verifier = verifier_of(kResnet, 4);
  for (const std::string& strategy : stages()) {
    for (const std::string statistics : {"sync", "local"}) {
      require_equal(verifier, strategy, 3, few_rows({"model.bn=" + statistics, "optimizer.lr=0.01"}));
      require_equal(verifier, strategy, 4, few_rows({"model.bn=" + statistics, "optimizer.lr=0.01", "accumulate=2"}));
    }
  }
}

TEST_CASE("an evaluation of 1 row on 4 ranks counts that row (S-74, D-1)") {
  for (const std::string& yaml : {kLenet, kResnet, kVit}) {
    verify::Verifier verifier = verifier_of(yaml, 3);
    for (const std::string& strategy : stages()) {
      require_equal(verifier, strategy, 4, {"data.test_limit=1", "optimizer.lr=0.01"});
    }
    const train::Summary summary = verifier.train(
        {.overrides = {"strategy={name: zero, stage: 3}", "launch=threads", "data.test_limit=1", "optimizer.lr=0.01"},
         .world = 4});
    REQUIRE(summary.test_total == 1);
  }
}
