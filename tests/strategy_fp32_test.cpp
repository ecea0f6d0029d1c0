// What the strategies promise in fp32, and how buckets overlap with backward.
#include "test.h"
#include "training.h"

#include "torch_pch.h"

using namespace mgt;

namespace {

constexpr const char* kStrategies[] = {
    "scratch",       "{name: scratch, allreduce: tree}", "{name: scratch, allreduce: ring}",
    "data_parallel", "{name: ddp, bucket_mb: 0.05}",     "layer_split"};

test::Outcome train(const std::string& strategy, int64_t devices, test::Backend backend = test::Backend::local) {
  return test::train(
      {.yaml = "model: lenet\nbatch_size: 24\nseed: 3\nstrategy: " + strategy + "\noptimizer: {name: sgd, lr: 0.2}\n",
       .devices = devices,
       .steps = 20,
       .data = test::golden_data(),
       .order = {},
       .init = "",
       .fill = {},
       .backend = backend});
}

void require_equal_replicas(const test::Outcome& outcome) {
  for (const auto& replica : outcome.replicas) {
    for (const auto& [name, tensor] : replica) REQUIRE(tensor.equal(outcome.replicas.front().at(name)));
  }
}

void require_same_bits(const test::Outcome& a, const test::Outcome& b) {
  REQUIRE(a.losses == b.losses);
  for (const auto& [name, tensor] : a.replicas.front()) REQUIRE(tensor.equal(b.replicas.front().at(name)));
}

}  // namespace

TEST_CASE("20 fp32 steps of LeNet: losses within 1e-4 of single, replicas and repeated runs equal to the bit") {
  const test::Outcome single = train("single", 1);
  require_same_bits(single, train("single", 1));
  for (const char* strategy : kStrategies) {
    for (int64_t devices = 1; devices <= 4; ++devices) {
      INFO(strategy << " on " << devices);
      const test::Outcome outcome = train(strategy, devices);
      for (std::size_t step = 0; step < single.losses.size(); ++step) {
        REQUIRE(outcome.losses[step] == Approx(single.losses[step]).epsilon(1e-4));
      }
      require_equal_replicas(outcome);
      require_same_bits(outcome, train(strategy, devices));
    }
  }
}

TEST_CASE("ddp over Gloo keeps its replicas equal to the bit and repeats itself") {
  for (const int64_t devices : {2, 3}) {
    const test::Outcome outcome = train("{name: ddp, bucket_mb: 0.05}", devices, test::Backend::gloo);
    require_equal_replicas(outcome);
    require_same_bits(outcome, train("{name: ddp, bucket_mb: 0.05}", devices, test::Backend::gloo));
  }
}

TEST_CASE("the first all-reduce starts before backward has ended (S-05)") {
  const auto note = [](const test::Outcome& outcome, const std::string& name) {
    for (const strategy::Note& each : outcome.notes) {
      if (each.name == name) return each.value;
    }
    return -1.0;
  };
  const test::Outcome overlapped = train("{name: ddp, bucket_mb: 0.05}", 2);
  REQUIRE(note(overlapped, "buckets of gradients") > 1);
  REQUIRE(note(overlapped, "reduced during backward") == 20 * note(overlapped, "buckets of gradients"));
  const test::Outcome after = train("{name: ddp, bucket_mb: 0.05, overlap: false}", 2);
  REQUIRE(note(after, "reduced during backward") == 0);
  require_same_bits(overlapped, after);
}

TEST_CASE("batches smaller than the number of ranks are exact: some ranks have no sample (S-27, S-53)") {
  data::Splits data = test::golden_data();
  data.train = data::first_rows(data.train, 5);
  const auto run = [&](const std::string& strategy, int64_t devices) {
    return test::train(
        {.yaml = "model: {name: lenet, channels: [4, 6], hidden: 16}\nprecision: fp64\nbatch_size: 2\nstrategy: " +
                 strategy + "\n",
         .devices = devices,
         .steps = 6,
         .data = data,
         .order = {},
         .init = "",
         .fill = {}});
  };
  const test::Outcome single = run("single", 1);
  for (const std::string strategy : {"scratch", "data_parallel", "ddp"}) {
    INFO(strategy);
    const test::Outcome outcome = run(strategy, 3);
    for (std::size_t step = 0; step < 6; ++step)
      REQUIRE(outcome.losses[step] == Approx(single.losses[step]).epsilon(1e-12));
    REQUIRE(outcome.test.correct == single.test.correct);
  }
}

TEST_CASE("evaluation counts are exact integers for any number of samples and devices (S-74, D-1, E-12)") {
  const data::Splits golden = test::golden_data();
  for (const int64_t rows : {1, 7, 16, 96, 101}) {
    data::Splits data = golden;
    data.test = data::first_rows(*golden.test, rows);
    std::optional<int64_t> correct;
    for (const std::string strategy : {"single", "scratch", "data_parallel", "ddp", "layer_split"}) {
      for (const int64_t devices : {1, 2, 3, 4, 5, 8}) {
        if ((strategy == "single" && devices > 1) || (strategy == "layer_split" && devices > 4)) continue;
        INFO(rows << " rows under " << strategy << " on " << devices);
        const test::Outcome outcome = test::train(
            {.yaml =
                 "model: {name: lenet, channels: [4, 6], hidden: 16}\nprecision: fp64\nstrategy: " + strategy + "\n",
             .devices = devices,
             .steps = 0,
             .data = data,
             .order = {},
             .init = test::cases() + "/1_trajectories/sgd_clip_final.safetensors",
             .fill = {}});
        REQUIRE(outcome.test.total == rows);
        if (!correct) correct = outcome.test.correct;
        REQUIRE(outcome.test.correct == *correct);
      }
    }
    if (rows == 101) REQUIRE(*correct == 88);  // 7_semantics/evaluation_of_a_net.json
  }
}
