// The oracle: that it finds every strategy equal to its reference, and that it can find otherwise.
#include "test.h"
#include "verified.h"

#include "config/run.h"
#include "core/error.h"
#include "verify/mutants.h"

#include "torch_pch.h"

#include <set>

using namespace mgt;
using test::request;
using verify::Quantity;

namespace {

const std::string kLenet =
    "model: lenet\ndata: {name: synthetic, train: 200, test: 101}\noptimizer: {name: sgd, lr: 0.1}\n";
const std::string kResnet =
    "model: {name: resnet18, bn: sync}\n"
    "data: {name: synthetic, train: 200, test: 101}\noptimizer: {name: sgd, lr: 0.05}\n";

// Every case of `--all` that a config allows is equal; returns how many there were.
int64_t check_all(const verify::Request& asked, const std::function<bool(const verify::Case&)>& wanted) {
  verify::Verifier verifier(asked);
  int64_t equal = 0;
  for (const verify::Case& one : verify::all_cases(asked.worlds)) {
    if (wanted(one) && test::is_equal(verifier, one)) ++equal;
  }
  return equal;
}

bool any(const verify::Case&) { return true; }

// A plain run of ddp on 3 devices with that fault; what it was seen by.
std::optional<std::string> seen(const std::string& yaml, const verify::MakeFault& make_fault,
                                const std::string& strategy = "ddp") {
  verify::Verifier verifier(request(yaml, {3}, 4));
  const verify::Case one{.overrides = {"strategy=" + strategy, "launch=threads"}, .world = 3};
  REQUIRE(!verifier.check(one).failed);
  return verifier.check(one, make_fault).failed;
}

}  // namespace

TEST_CASE(
    "every strategy, world, communicator, option, optimizer and schedule equals one device: LeNet (S-04, S-13, S-15)") {
  REQUIRE(check_all(request(kLenet, {1, 2, 3, 4}, 4), any) > 100);
}

TEST_CASE("every strategy, world and communicator equals one device: ResNet-18 with synchronised BatchNorm (S-55)") {
  const auto plain = [](const verify::Case& one) { return join(one.overrides).find("optimizer") == std::string::npos; };
  REQUIRE(check_all(request(kResnet, {1, 2, 3, 4}, 4), plain) > 15);
}

TEST_CASE("every optimizer under ddp equals one device: ResNet-18 with synchronised BatchNorm") {
  const auto optimizers = [](const verify::Case& one) {
    const std::string overrides = join(one.overrides);
    return overrides.find("optimizer") != std::string::npos && overrides.find("ddp") != std::string::npos;
  };
  REQUIRE(check_all(request(kResnet, {1, 2, 3}, 4), optimizers) > 10);
}

TEST_CASE("20 steps of LeNet stay within 1e-12 of one device") {
  verify::Verifier verifier(request(kLenet, {3}, 20));
  for (const std::string strategy : {"scratch", "data_parallel", "ddp", "layer_split"}) {
    INFO(strategy);
    const verify::Verdict verdict =
        verifier.check({.overrides = {"strategy=" + strategy, "launch=threads"}, .world = 3});
    REQUIRE(!verdict.failed);
    REQUIRE(verdict.largest_size() < 1e-12);
    REQUIRE(verdict.worst.at(Quantity::evaluation).size == 0);
  }
}

TEST_CASE("a ramp that is longer than the shortened run is shortened with it") {
  verify::Verifier verifier(request(kLenet + "schedule: {name: cosine, warmup: 500}\n", {2}, 4));
  const verify::Verdict verdict = verifier.check({.overrides = {"strategy=ddp", "launch=threads"}, .world = 2});
  REQUIRE(!verdict.refused);
  REQUIRE(!verdict.failed);
}

TEST_CASE("BatchNorm with local statistics equals its reference, and is said not to be one device") {
  verify::Verifier verifier(request(kResnet, {2}, 4));
  for (const std::string strategy : {"scratch", "data_parallel", "ddp"}) {
    INFO(strategy);
    const verify::Verdict verdict =
        verifier.check({.overrides = {"strategy=" + strategy, "launch=threads", "model.bn=local"}, .world = 2});
    REQUIRE(!verdict.failed);
    REQUIRE(verdict.not_one_device.value().size > 1e-3);
  }
}

TEST_CASE("scratch, whose replicas take turns, refuses synchronised BatchNorm by name") {
  verify::Verifier verifier(request(kResnet, {2}, 2));
  const verify::Verdict verdict = verifier.check({.overrides = {"strategy=scratch"}, .world = 2});
  REQUIRE(verdict.refused.value().find("model.bn") != std::string::npos);
}

TEST_CASE("in fp32 the bound is learned from one device") {
  verify::Request asked = request(kLenet, {3}, 6);
  asked.precision = "fp32";
  verify::Verifier verifier(asked);
  const verify::Case one{.overrides = {"strategy=ddp", "launch=threads"}, .world = 3};
  const verify::Verdict verdict = verifier.check(one);
  REQUIRE(!verdict.failed);
  REQUIRE(verdict.largest_size() > 1e-12);
  REQUIRE(verdict.largest_size() < 1e-3);
  const auto twice = [](int64_t) {
    return verify::Fault{.gradients_ready = [](int64_t, const strategy::Probe::Parameters& parameters) {
      for (const auto& parameter : parameters) parameter.tensor.grad().mul_(1.01);
    }};
  };
  REQUIRE(verifier.check(one, twice).failed);
}

TEST_CASE("other rounding within layers, and of one row alone, is no difference (S-13)") {
  const std::string narrow =
      "model: {name: lenet, channels: [5, 7], hidden: 11}\n" + kLenet.substr(kLenet.find("data"));
  verify::Request asked = request(narrow + "batch_size: 7\n", {3}, 6);
  asked.precision = "fp32";
  verify::Verifier in_fp32(asked);
  for (const std::string strategy : {"tensor", "{name: hybrid, tensor: 3, zero: 2}"}) {
    REQUIRE(test::is_equal(
        in_fp32,
        {.overrides = {"strategy=" + strategy, "launch=threads", "optimizer={name: adamw, lr: 0.01}"}, .world = 3}));
  }
  verify::Verifier of_rows(request(kResnet + "batch_size: 1\n", {2}, 6));
  for (const std::string strategy : {"tensor", "{name: pipeline, microbatches: 1}"}) {
    REQUIRE(test::is_equal(
        of_rows,
        {.overrides = {"strategy=" + strategy, "launch=threads", "optimizer={name: adamw, lr: 0.01}"}, .world = 2}));
  }
}

TEST_CASE("a test set of one batch cannot show the mean of batches' means, and that is said (E-09)") {
  const config::Config config = request(kLenet, {3}, 6).read({});
  for (const verify::Mutant& mutant : verify::mutants()) {
    if (mutant.name != "mean_of_batch_means") continue;
    REQUIRE(mutant.harmless(config, true) == "data.test: the test set is evaluated as one batch");
  }
}

TEST_CASE("every mutant is killed, and there are at least 16 (E-01 to E-16)") {
  REQUIRE(verify::mutants().size() >= 16);
  verify::Verifier verifier(request(kLenet, {3}, 6));
  std::set<std::string> strategies;
  for (const verify::Mutant& mutant : verify::mutants()) {
    for (const std::string& strategy : mutant.strategies) {
      INFO(mutant.name << " in " << strategy);
      const verify::Case one = verify::case_of(mutant, strategy);
      const verify::Verdict right = verifier.check(one);
      INFO(right.failed.value_or("") << right.refused.value_or(""));
      REQUIRE(!right.failed);
      REQUIRE(!right.refused);
      REQUIRE(verifier.check(one, [&](int64_t rank) { return mutant.fault(rank, right.devices); }).failed);
      strategies.insert(strategy);
    }
  }
  REQUIRE(strategies.size() >= 3);
}

TEST_CASE("a gradient that is off by a billionth is seen, with step, tensor and rank") {
  const auto fault = [](int64_t rank) {
    return verify::Fault{.gradients_ready = [rank](int64_t, const strategy::Probe::Parameters& parameters) {
      if (rank == 1) parameters.at(2).tensor.grad().mul_(1 + 1e-9);
    }};
  };
  const std::string text = seen(kLenet, fault).value();
  REQUIRE(text.find("gradients: conv2.weight") != std::string::npos);
  REQUIRE(text.find("at step 1 on rank 1") != std::string::npos);
}

TEST_CASE("a parameter that is off is seen") {
  const auto fault = [](int64_t rank) {
    return verify::Fault{.updated = [rank](int64_t, const strategy::Probe::Parameters& parameters) {
      const at::NoGradGuard no_grad;
      if (rank == 2) parameters.back().tensor.detach().add_(1e-9);
    }};
  };
  REQUIRE(seen(kLenet, fault).value().find("parameters: fc2.bias") != std::string::npos);
}

TEST_CASE("a loss that is off is seen") {
  const auto fault = [](int64_t) {
    return verify::Fault{.before_reduce = [](at::Tensor& part) {
      if (part.numel() == 2 && part.is_floating_point()) part[0].mul_(1 + 1e-9);
    }};
  };
  REQUIRE(seen(kLenet, fault).value().find("loss is off") != std::string::npos);
}

TEST_CASE("an optimizer's state that is off is seen before it shows in the parameters") {
  const std::string yaml = kLenet + "seed: 1\n";
  verify::Verifier verifier(request(yaml, {2}, 3));
  const verify::Case one{.overrides = {"strategy=ddp", "launch=threads", "optimizer={name: sgd, lr: 0, momentum: 0.9}"},
                         .world = 2};
  REQUIRE(!verifier.check(one).failed);
  // With lr 0 no parameter moves: what differs can only be the momentum, since the gradient is put right again.
  const auto fault = [](int64_t) {
    return verify::Fault{.gradients_ready = [](int64_t, const strategy::Probe::Parameters& parameters) {
      for (const auto& parameter : parameters) parameter.tensor.grad().mul_(1 + 1e-9);
    }};
  };
  const verify::Verdict verdict = verifier.check(one, fault);
  REQUIRE(verdict.failed);
  REQUIRE(verdict.worst.at(Quantity::parameters).size == 0);
  REQUIRE(verdict.worst.at(Quantity::optimizer_state).size > 1e-10);
}

TEST_CASE("BatchNorm statistics that are off are seen") {
  const auto fault = [](int64_t) {
    return verify::Fault{.before_reduce = [](at::Tensor& part) {
      if (part.is_floating_point() && part.numel() > 1 && part.numel() < 14)
        part[0].mul_(1 + 1e-7);  // the first channel of a statistic
    }};
  };
  REQUIRE(seen(kResnet, fault));
}

TEST_CASE("counts of an evaluation that are off by one are seen") {
  const auto fault = [](int64_t) {
    return verify::Fault{.counts = [](strategy::EvalCounts right) {
      return strategy::EvalCounts{right.correct + 1, right.total};
    }};
  };
  REQUIRE(seen(kLenet, fault).value().find("evaluation counts differ after epoch 1") != std::string::npos);
}

TEST_CASE("a difference between two runs is found in every quantity, and NaN is one") {
  verify::Findings findings({.base = 1e-12});
  findings.add(Quantity::parameters, {.size = 1e-13, .tensor = "a", .step = 1});
  REQUIRE(!findings.first_out_of_bounds());
  findings.add(Quantity::parameters, {.size = 0.5, .tensor = "a", .step = 3});
  findings.add(Quantity::buffers, {.size = std::nan(""), .tensor = "b", .step = 2});
  findings.add(Quantity::evaluation, {.size = 1, .step = 1});
  REQUIRE(findings.first_out_of_bounds()->second.tensor == "b");
  REQUIRE(verify::likely_cause(3, {.devices = 3, .batch_size = 64}).find("number of devices") != std::string::npos);
  REQUIRE(verify::likely_cause(1.0 / 64, {.devices = 3, .batch_size = 64}).find("batch size twice") !=
          std::string::npos);
  REQUIRE(verify::likely_cause(0, {.devices = 3, .batch_size = 64}).find("zero") != std::string::npos);
}

TEST_CASE("determinism: invariant gives the same bits for every strategy, number of devices, communicator and bucket") {
  for (const std::string& yaml :
       {kLenet + "virtual_shards: 4\n", kLenet + "virtual_shards: 8\nprecision: fp64\nclip: 0.1\n",
        "model: {name: resnet18, bn: local}\n" + kResnet.substr(kResnet.find("data"))}) {
    verify::Request asked = request(yaml, {1}, yaml.find("lenet") == std::string::npos ? 4 : 60);
    asked.precision = "";
    verify::Verifier verifier(asked);
    const int64_t shards = config::run_of(asked.read({})).virtual_shards;
    std::set<std::string> hashes;
    const std::vector<verify::Case> cases = verify::invariant_cases(shards);
    REQUIRE(cases.size() > 10);
    for (const verify::Case& one : cases) {
      if (!verifier.refusal(one).empty()) continue;
      hashes.insert(verifier.train(one).weights_sha256);
      INFO(join(one.overrides) << " on " << one.world.value_or(0));
      REQUIRE(hashes.size() == 1);
    }
  }
}

TEST_CASE("without determinism: invariant the bits do depend on the number of devices") {
  verify::Request asked = request(kLenet, {1}, 60);
  asked.precision = "";
  verify::Verifier verifier(asked);
  const auto hash = [&](int64_t world) {
    return verifier.train({.overrides = {"strategy=ddp", "launch=threads"}, .world = world}).weights_sha256;
  };
  REQUIRE(hash(1) != hash(2));
}

TEST_CASE("evaluation counts every sample once on 1 to 8 devices, whatever their number (S-74, D-1, E-12)") {
  // The real loop and its batches; with lr 0 the weights are the same everywhere, so the counts must be.
  const std::string yaml =
      "model: lenet\ndata: {name: synthetic, train: 64, test: 10000}\noptimizer: {name: sgd, lr: 0}\n";
  verify::Request asked = request(yaml, {1}, 1);
  asked.precision = "";
  verify::Verifier verifier(asked);
  for (const int64_t rows : {1, 7, 16, 96, 9973, 10000}) {
    std::set<int64_t> counts;
    for (int64_t devices = 1; devices <= 8; ++devices) {
      for (const std::string strategy : {"ddp", "scratch", "data_parallel"}) {
        if (strategy != "ddp" && devices % 3 != 0) continue;
        INFO(rows << " rows under " << strategy << " on " << devices);
        const train::Summary summary =
            verifier.train({.overrides = {"strategy=" + strategy, "launch=threads", concat("data.test_limit=", rows)},
                            .world = devices});
        REQUIRE(summary.test_total == rows);
        counts.insert(summary.test_correct);
        REQUIRE(counts.size() == 1);
      }
    }
  }
}

TEST_CASE("rows that are the same on every rank prove nothing, and are refused") {
  const auto same = std::make_shared<data::Splits>();
  same->train = {.name = "same",
                 .inputs = at::zeros({64, 1, 28, 28}, at::kByte),
                 .targets = at::zeros({64}, at::kLong),
                 .classes = 10};
  const verify::Request asked = request(kLenet, {2}, 2);
  const config::Config config = asked.read({"strategy=ddp", "launch=threads", "devices=2"});
  verify::Findings findings({.base = 1e-12});
  REQUIRE_THROWS_AS(verify::compare(config, same, {}, findings), DataError);
}
