// Where a run's replicas are placed, which of several failures is told, and ranks that are threads. Ranks that are
// processes are tested through the program (e2e_failure_test.cpp).
#include "torch_pch.h"

#include "comm/local/local.h"
#include "config/reader.h"
#include "config/writer.h"
#include "core/error.h"
#include "core/text.h"
#include "launch/data_fit.h"
#include "launch/failure.h"
#include "launch/placement.h"
#include "launch/signals.h"
#include "launch/threads.h"
#include "model/entry.h"
#include "test.h"

#include <chrono>
#include <new>
#include <thread>

using namespace mgt;
using namespace mgt::launch;

namespace {

config::Config config_of(const std::string& text) { return config::resolve(schema(), {"test.yaml", text}); }

Decision decide_on(const std::string& text, int64_t gpus, int64_t cores = 8) {
  return decide(config_of(text), {.gpus = gpus, .cores = cores});
}

// The message of the Expected that `action` throws; fails where it throws something else or nothing.
template <typename Expected, typename Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const Expected& error) {
    return error.what();
  } catch (const std::exception& other) {
    FAIL("another error: " << other.what());
  }
  FAIL("no error");
  return "";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

struct Row {
  std::string strategy;
  std::string devices;  // as in the file
  int64_t gpus;
  std::string expected;  // devices, joined
  int64_t world;
  std::string stand_in;  // the line about CPUs in place of GPUs
  std::string warning;   // the only one
};

const std::vector<Row> kRows = {
    // S-61, S-64: all, the first n, none.
    {"ddp", "auto", 3, "cuda:0, cuda:1, cuda:2", 3, "", ""},
    {"single", "auto", 3, "cuda:0", 1, "", ""},
    {"ddp", "auto", 0, "cpu", 1, "no GPU found: running on the CPU", ""},
    {"ddp", "2", 3, "cuda:0, cuda:1", 2, "", ""},
    {"ddp", "0", 3, "cpu", 1, "", ""},
    {"scratch", "2", 2, "cuda:0, cuda:1", 1, "", ""},
    // S-63: logical CPU devices in the number asked for.
    {"ddp", "2", 0, "cpu, cpu", 2, "no GPU found: 2 CPU ranks stand in for 2 devices", ""},
    {"scratch", "3", 0, "cpu, cpu, cpu", 1, "no GPU found: 3 CPU replicas stand in for 3 devices", ""},
    {"single", "1", 0, "cpu", 1, "no GPU found: running on the CPU", ""},
    // S-65: what is missing is said.
    {"ddp", "4", 2, "cuda:0, cuda:1", 2, "",
     "devices: 4 asked for, this machine has 2 GPUs: training on cuda:0, cuda:1"},
    {"ddp", "[0, 5]", 2, "cuda:0", 1, "", "devices: cuda:5 not found, this machine has 2 GPUs: training on cuda:0"},
    {"scratch", "[1, 0]", 2, "cuda:1, cuda:0", 1, "", ""},
    // S-60: nothing left is the CPU.
    {"single", "cuda:0", 0, "cpu", 1, "",
     "devices: cuda:0 not found, this machine has no GPU: training on cpu; a count, such as devices: 2, makes CPUs "
     "stand in for all"},
    {"ddp", "[3, 4]", 1, "cpu", 1, "", "devices: cuda:3, cuda:4 not found, this machine has 1 GPU: training on cpu"},
    // S-62: names of CPUs; kinds may be mixed within one process.
    {"ddp", "[cpu:0, cpu:1]", 2, "cpu, cpu", 2, "", ""},
    {"single", "cpu", 2, "cpu", 1, "", ""},
    {"layer_split", "[cuda:1, cpu]", 2, "cuda:1, cpu", 1, "", ""},
};

}  // namespace

TEST_CASE("S-60..S-65: devices are placed on what the machine has") {
  for (const Row& row : kRows) {
    INFO(row.strategy << " on devices " << row.devices << " with " << row.gpus << " GPUs");
    const Decision decision = decide_on(concat("strategy: ", row.strategy, "\ndevices: ", row.devices, "\n"), row.gpus);
    CHECK(join(decision.placement.devices) == row.expected);
    CHECK(decision.placement.world_size == row.world);
    CHECK(decision.stand_in == row.stand_in);
    CHECK(join(decision.warnings, "|") == row.warning);
  }
}

TEST_CASE("S-65: devices_strict makes a missing device an error that names both keys") {
  for (const std::string devices : {"2", "3", "[0, 7]", "cuda:9"}) {
    const int64_t gpus = devices == "2" ? 0 : 2;
    const std::string text = concat("strategy: scratch\ndevices_strict: true\ndevices: ", devices, "\n");
    const std::string message = message_of<ConfigError>([&] { decide_on(text, gpus); });
    INFO(message);
    CHECK(contains(message, "test.yaml:3"));
    CHECK(contains(message, "devices: "));
    CHECK(contains(message, "devices_strict"));
  }
  CHECK_NOTHROW(decide_on("strategy: ddp\ndevices_strict: true\ndevices: 2\n", 2));
  CHECK_NOTHROW(decide_on("strategy: ddp\ndevices_strict: true\ndevices: auto\n", 0));
  CHECK_NOTHROW(decide_on("strategy: ddp\ndevices_strict: true\ndevices: [cpu:0, cpu:1]\n", 0));
}

TEST_CASE("ranks of one communicator are all CPUs or all GPUs") {
  const std::string message = message_of<ConfigError>([] { decide_on("strategy: ddp\ndevices: [0, cpu]\n", 1); });
  CHECK(contains(message, "ddp cannot join CPUs and GPUs (cuda:0, cpu)"));
}

TEST_CASE("the backend follows from devices and launch, and what cannot be is refused with the way out") {
  const auto backend = [](const std::string& extra, int64_t gpus) {
    return decide_on("strategy: ddp\ndevices: 2\n" + extra, gpus).placement.backend;
  };
  CHECK(backend("", 0) == "gloo");
  CHECK(backend("launch: threads\n", 0) == "local");
  CHECK(backend("launch: threads\ncomm: gloo\n", 0) == "gloo");
  CHECK(backend("", 2) == "nccl");
  CHECK(decide_on("strategy: single\n", 1).placement.backend == "local");
  CHECK(contains(message_of<ConfigError>([&] { backend("comm: local\n", 0); }), "launch: threads"));
  CHECK(contains(message_of<ConfigError>([&] { backend("comm: nccl\n", 0); }), "comm.backend"));
  CHECK(contains(message_of<ConfigError>([&] { backend("comm: gloo\n", 2); }), "nccl"));
  CHECK(backend("comm: {algorithm: ring}\n", 0) == "gloo");
  CHECK(backend("comm: {algorithm: library}\n", 2) == "nccl");
  CHECK(contains(message_of<ConfigError>([&] { backend("comm: {algorithm: ring}\n", 2); }), "comm.algorithm: ring"));
}

TEST_CASE("cores are shared out over the ranks unless `threads` is given") {
  CHECK(decide_on("strategy: ddp\ndevices: 3\n", 0, 8).placement.threads_per_rank == 2);
  CHECK(decide_on("strategy: ddp\ndevices: 3\n", 0, 2).placement.threads_per_rank == 1);
  CHECK(decide_on("strategy: scratch\ndevices: 3\n", 0, 8).placement.threads_per_rank == 8);
  CHECK(decide_on("strategy: ddp\ndevices: 3\nthreads: 5\n", 0, 8).placement.threads_per_rank == 5);
}

TEST_CASE("determinism: invariant refuses by name what cannot keep it") {
  const auto refusal = [](const std::string& text) {
    try {
      decide(config_of("determinism: invariant\n" + text), {.gpus = 0, .cores = 2});
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  REQUIRE(refusal("strategy: ddp\ndevices: 4\n").empty());
  REQUIRE(refusal("strategy: ddp\ndevices: 3\n").find("virtual_shards: 4 shards") != std::string::npos);
  REQUIRE(refusal("strategy: ddp\ndevices: 2\nvirtual_shards: 6\n").find("power of two") != std::string::npos);
  REQUIRE(refusal("strategy: ddp\ndevices: 8\n").find("virtual_shards") != std::string::npos);
  REQUIRE(refusal("strategy: data_parallel\ndevices: 2\n").find("ddp, hybrid, pipeline, zero, scratch, single") !=
          std::string::npos);
  REQUIRE(refusal("strategy: layer_split\ndevices: 2\n").find("determinism") != std::string::npos);
  REQUIRE(refusal("strategy: ddp\ndevices: 2\nthreads: 2\n").find("threads") != std::string::npos);
  REQUIRE(refusal("strategy: ddp\ndevices: 2\nmodel: {name: resnet18, bn: sync}\n").find("model.bn") !=
          std::string::npos);
}

TEST_CASE("S-53: a batch too small for its ranks is said, not refused") {
  const auto warning = [](const std::string& text) { return join(decide_on(text, 0).warnings, "|"); };
  CHECK(warning("strategy: ddp\ndevices: 4\nbatch_size: 2\n") ==
        "batch_size 2 over 4 ranks: ranks 2..3 get no samples");
  CHECK(warning("strategy: scratch\ndevices: 3\nbatch_size: 2\n") ==
        "batch_size 2 over 3 devices: device 2 gets no samples");
  CHECK(warning("strategy: layer_split\ndevices: 3\nbatch_size: 2\n").empty());
  CHECK(warning("strategy: ddp\ndevices: 4\nbatch_size: 6\n").empty());
}

TEST_CASE("pieces that a batch is too small for are said, and a drawn schedule has as many as there are (S-11)") {
  const Decision small = decide_on("strategy: {name: pipeline, microbatches: 8}\ndevices: 2\nbatch_size: 5\n", 0);
  CHECK(join(small.warnings) == "8 pieces of a batch cannot be had from 5 rows over 1 data rank: 5 pieces of 1 row");
  CHECK(small.placement.batch.pieces == 5);
  const Decision uneven = decide_on("strategy: {name: pipeline, microbatches: 8}\ndevices: 2\nbatch_size: 9\n", 0);
  CHECK(uneven.warnings.empty());
  CHECK(uneven.placement.batch.pieces == 8);
  CHECK(uneven.placement.batch.micro_batch == 2);
  const Decision enough = decide_on("strategy: {name: pipeline, microbatches: 8}\ndevices: 2\nbatch_size: 64\n", 0);
  CHECK(enough.warnings.empty());
  CHECK(enough.placement.batch.pieces == 8);
  const Decision shards = decide_on("strategy: {name: hybrid, pipeline: 2}\ndevices: 4\ndeterminism: invariant\n", 0);
  CHECK(shards.placement.batch.pieces == 2);  // of 4 virtual shards
}

TEST_CASE("a batch is cut into 4 pieces where there is a pipeline, else taken whole, unless it is said") {
  const auto pieces = [](const std::string& strategy, int64_t devices, const std::string& more = "") {
    return decide_on(concat("strategy: ", strategy, "\ndevices: ", devices, "\n", more), 0).placement.batch.pieces;
  };
  CHECK(pieces("pipeline", 2) == 4);
  CHECK(pieces("pipeline", 1) == 1);
  CHECK(pieces("hybrid", 2) == 1);
  CHECK(pieces("{name: hybrid, pipeline: 2}", 2) == 4);
  CHECK(pieces("{name: hybrid, microbatches: 3}", 2) == 3);
  CHECK(pieces("pipeline", 2, "accumulate: 3\n") == 3);
  CHECK(pieces("pipeline", 2, "batch_size: 64\nmicro_batch: 8\n") == 8);
}

TEST_CASE("a batch that micro_batch makes with accumulate or microbatches is in the config, with the keys it is from") {
  for (const std::string pieces :
       {"strategy: pipeline\naccumulate: 4\n", "strategy: {name: pipeline, microbatches: 4}\n"}) {
    const config::Config config = with_batch_size(config_of(pieces + "devices: [cpu:0, cpu:1]\nmicro_batch: 5\n"));
    CHECK(config.top().integer("batch_size") == 20);
    CHECK(config.top().origin("batch_size").text() == "from micro_batch, accumulate and devices");
  }
  const config::Config alone = with_batch_size(config_of("strategy: pipeline\ndevices: [cpu:0]\nmicro_batch: 5\n"));
  CHECK(alone.top().origin("batch_size").text() == "default");
}

TEST_CASE("chunks without interleaving are refused at their place") {
  for (const std::string schedule : {"", ", schedule: 1f1b", ", schedule: gpipe"}) {
    for (const std::string name : {"pipeline", "hybrid"}) {
      const std::string text = concat("strategy: {name: ", name, schedule, ",\n  chunks: 2}\n");
      const std::string message = message_of<ConfigError>([&] { config_of(text); });
      INFO(message);
      CHECK(contains(message, "test.yaml:2:"));
      CHECK(contains(message, "strategy.chunks: goes with schedule: interleaved"));
    }
  }
  CHECK_NOTHROW(config_of("strategy: {name: pipeline, schedule: interleaved, chunks: 2}\n"));
  const config::Config written = config_of(config::to_yaml(schema(), config_of("strategy: pipeline\n"), false));
  CHECK_FALSE(written.section("strategy").has("chunks"));
}

TEST_CASE("what the model or the devices do not allow is said at a key of the user's, with all cures and in grammar") {
  const auto refusal = [](const std::string& text) { return message_of<ConfigError>([&] { check(config_of(text)); }); };
  const std::string mlp = "model: {name: mlp, hidden: [8, 8]}\n";  // 3 blocks
  const std::string two = "devices: [cpu:0, cpu:1]\n", four = "devices: [cpu:0, cpu:1, cpu:2, cpu:3]\n";
  CHECK(refusal("model: lenet\n" + four + "strategy:\n  name: hybrid\n  tensor: 2\n  pipeline: 3\n") ==
        "test.yaml:6:13: strategy.pipeline: strategy.data 1 x strategy.pipeline 3 x strategy.tensor 2 is 6, not the 4 "
        "devices; data x pipeline x tensor that fit: 1x1x4, 1x2x2, 1x4x1, 2x1x2, 2x2x1, 4x1x1");
  CHECK(contains(refusal(mlp + four + "strategy: {name: hybrid, tensor: 3}\n"), "test.yaml:3:34: strategy.tensor: "));
  CHECK(contains(refusal(mlp + four + "strategy: {name: hybrid, tensor: 3}\n"),
                 "fit: 1x1x4, 1x2x2, 2x1x2, 2x2x1, 4x1x1"));
  CHECK(contains(refusal(mlp + two + "strategy: {name: pipeline, schedule: interleaved}\n"),
                 "devices: 2 stages of 2 chunks are 4 parts for the 3 blocks of mlp; lower strategy.chunks from 2, its "
                 "default, to 1, or use at most 1 stage"));
  CHECK(contains(refusal(mlp + four + "strategy: {name: pipeline, schedule: interleaved, chunks: 2}\n"),
                 "4 stages of 2 chunks are 8 parts for the 3 blocks of mlp; use at most 1 stage"));
  CHECK(
      contains(refusal(mlp + two + "strategy: {name: pipeline, stages: 4}\n"), "stages: 4 stages on 2 devices; leave"));
  CHECK(contains(refusal(mlp + two + "strategy: {name: tensor, degree: 1}\n"), "degree: 1 slice on 2 devices; leave"));
  CHECK(contains(refusal("model: {name: mlp, hidden: []}\n" + two + "strategy: pipeline\n"),
                 "2 stages for the 1 block of mlp; use at most 1 stage"));
  CHECK(contains(refusal(mlp + "devices: cpu\nstrategy: {name: pipeline, split: [1, 2]}\n"),
                 "[1, 2] must be 1 number of blocks, 3 in all"));
  CHECK(contains(refusal("model: {name: mlp, hidden: []}\n" + two + "strategy: layer_split\n"),
                 "2 devices for the 1 block of mlp"));
}

TEST_CASE("of several failures the cause is told: not the collectives that failed because of it") {
  const Failure lost = {.rank = 0, .code = ExitCode::comm, .message = "lost", .collective = true};
  const Failure late = {.rank = 2, .code = ExitCode::comm, .message = "late", .collective = true};
  const Failure died = {.rank = 1, .code = ExitCode::comm, .message = "died"};
  const Failure data = {.rank = 1, .code = ExitCode::data, .message = "data"};
  CHECK(cause_of({lost, died}).message == "died");
  CHECK(cause_of({lost, late, data}).message == "data");
  CHECK(cause_of({data, died}).message == "data");
  CHECK(cause_of({late, lost}).message == "late");
}

TEST_CASE("an error of a rank names the rank once, and keeps its type") {
  const auto failure = [](auto error) { return failure_of(1, std::make_exception_ptr(error)); };
  CHECK(failure(InternalError("broken")).message == "rank 1: broken");
  CHECK(failure(CommError("rank 0 waited 2 s")).message == "rank 0 waited 2 s");
  CHECK(failure(CommError("refused")).collective);
  CHECK(failure(DataError("t.idx: cut")).message == "t.idx: cut");
  CHECK(failure(DataError("t.idx: cut")).code == ExitCode::data);
  CHECK(failure(Interrupted(SIGTERM)).code == ExitCode::terminated);
  CHECK(failure(std::runtime_error("no such operator\nframe 1\nframe 2")).message == "rank 1 failed: no such operator");
  CHECK(failure(std::runtime_error("x")).code == ExitCode::comm);
  CHECK_FALSE(failure(std::runtime_error("x")).collective);
  CHECK(contains(failure(std::bad_alloc()).message, "rank 1 failed: out of memory"));
  CHECK(contains(failure(7).message, "rank 1 failed"));
}

TEST_CASE("a failure survives its way to the launcher") {
  const Failure failure = {.rank = 3, .code = ExitCode::numerics, .message = "the loss is nan", .collective = true};
  const auto read = from_line(3, to_line(failure));
  REQUIRE(read);
  CHECK(read->rank == 3);
  CHECK(read->code == ExitCode::numerics);
  CHECK(read->message == "the loss is nan");
  CHECK(read->collective);
  CHECK_FALSE(from_line(3, ""));
  CHECK_FALSE(from_line(3, "5 0 cut sho"));
  CHECK_FALSE(from_line(3, "nonsense\n"));
  CHECK(to_line({.message = std::string(100000, 'x')}).size() < 4096);  // PIPE_BUF
}

TEST_CASE("thread ranks end together when one fails, and its error is thrown") {
  const RankContext common{.data = nullptr, .hub = comm::make_hub(3, /*timeout_s=*/30)};
  const auto start = std::chrono::steady_clock::now();
  const std::string message = message_of<DataError>([&] {
    run_threads(common, 3, [](const RankContext& context) {
      const auto communicator = comm::make_local(context.hub, context.rank);
      communicator->barrier();
      if (context.rank == 1) throw DataError("t.idx: cut");
      communicator->barrier();  // without rank 1
    });
  });
  CHECK(message == "t.idx: cut");
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
}

TEST_CASE("an error without a type in a thread rank is a lost rank") {
  const RankContext common{.data = nullptr, .hub = comm::make_hub(2, /*timeout_s=*/30)};
  const std::string message = message_of<CommError>([&] {
    run_threads(common, 2, [](const RankContext& context) {
      if (context.rank == 1) throw std::runtime_error("no such operator");
      comm::make_local(context.hub, context.rank)->barrier();
    });
  });
  CHECK(message == "rank 1 failed: no such operator");
}

TEST_CASE("a thread rank that does not come is named when the timeout is over") {
  const RankContext common{.data = nullptr, .hub = comm::make_hub(2, /*timeout_s=*/0.2)};
  const std::string message = message_of<CommError>([&] {
    run_threads(common, 2, [](const RankContext& context) {
      if (context.rank == 0) comm::make_local(context.hub, context.rank)->barrier();
    });
  });
  CHECK(contains(message, "rank 0 waited"));
  CHECK(contains(message, "for rank 1"));
}

TEST_CASE("a signal is kept for the loop to see, and the handlers from before come back") {
  struct sigaction before {
  }, now{};
  sigaction(SIGTERM, nullptr, &before);  // the test framework has one of its own
  for (const int signal : {SIGINT, SIGTERM}) {
    const StopSignals signals(StopSignals::Role::supervisor);
    CHECK(signals.count() == 0);
    std::raise(signal);
    CHECK(signals.signal() == signal);
    std::raise(SIGTERM);
    CHECK(signals.signal() == signal);  // the first
    CHECK(signals.count() == 2);
  }
  sigaction(SIGTERM, nullptr, &now);
  CHECK(now.sa_handler == before.sa_handler);
}

TEST_CASE("data and model that do not go together are refused before anything is trained") {
  const auto refusal = [](auto type, const std::string& text, const data::Dataset& dataset) {
    const config::Config config = config_of(text);
    return message_of<decltype(type)>([&] { check_fit(config, model::build(config), {.train = dataset, .test = {}}); });
  };
  const data::Dataset images = {.name = "small.idx",
                                .inputs = at::zeros({3, 1, 27, 27}, at::kByte),
                                .targets = at::zeros({3}, at::kLong),
                                .classes = 20};
  const data::Dataset rows = {.name = "rows",
                              .inputs = at::zeros({3, 10}, at::kDouble),
                              .targets = at::zeros({3, 4}, at::kDouble),
                              .classes = 0};

  const std::string shape = refusal(DataError(""), "model: lenet\n", images);
  CHECK(contains(shape, "small.idx"));
  CHECK(contains(shape, "(1, 27, 27)"));
  CHECK(contains(shape, "(1, 28, 28)"));
  CHECK(contains(refusal(ConfigError(""), "model: {name: mlp, input: [1, 27, 27]}\n", images), "model.outputs"));
  CHECK(contains(refusal(ConfigError(""), "model: {name: mlp, input: [10]}\n", rows), "model.loss"));
  CHECK(contains(refusal(ConfigError(""), "model: {name: mlp, input: [10], loss: mse}\n", rows), "model.outputs"));
}
