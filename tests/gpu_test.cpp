// Training on real GPUs. Tests tagged [gpu] need one and [gpu:2] two; where there are fewer they say so and pass.
#include "test.h"
#include "training.h"

#include "comm/device.h"
#include "comm/local/local.h"
#include "core/clock.h"
#include "core/error.h"
#include "model/entry.h"
#include "strategy/entry.h"
#include "strategy/scratch/allreduce.h"

#include "torch_pch.h"

#include <atomic>
#include <numeric>
#include <thread>

using namespace mgt;

namespace {

using Devices = std::vector<at::Device>;
using Losses = std::vector<double>;

constexpr const char* kInOneProcess[] = {"{name: scratch, allreduce: naive}", "{name: scratch, allreduce: tree}",
                                         "{name: scratch, allreduce: ring}", "data_parallel", "layer_split"};
constexpr const char* kSmallBuckets = "{name: ddp, bucket_mb: 0.01}";

const Devices kOne = {at::Device(at::kCUDA, 0)};
const Devices kOneTwice = {at::Device(at::kCUDA, 0), at::Device(at::kCUDA, 0)};
const Devices kTwo = {at::Device(at::kCUDA, 0), at::Device(at::kCUDA, 1)};

bool skipped(int64_t needed) {
  const int64_t found = comm::gpu_count();
  if (found >= needed) return false;
  WARN("skipped: needs " << needed << (needed == 1 ? " GPU" : " GPUs") << ", found " << found);
  return true;
}

const comm::DeviceServices& cuda() { return comm::services(kOne.front()); }

// One rank's losses of five fp64 steps of a narrow LeNet, on 29 samples each so that shards are uneven.
Losses losses_of_rank(const std::string& strategy, const Devices& devices, comm::Communicator& communicator) {
  constexpr int64_t kSteps = 5, kBatch = 29;
  const config::Config config = test::config_of(
      "model: {name: lenet, channels: [4, 6], hidden: 16, init_std: 0.1}\noptimizer: {name: sgd, momentum: 0.9}\n"
      "strategy: " +
      strategy + "\n");
  const model::Model model = model::build(config);
  const auto made = strategy::entry_of(config).make({.config = config,
                                                     .model = model,
                                                     .devices = devices,
                                                     .communicator = communicator,
                                                     .dtype = at::kDouble,
                                                     .seed = 5,
                                                     .threads = 1,
                                                     .micro_batch = {}});
  const data::Splits data = test::golden_data();
  Losses losses;
  for (int64_t step = 0; step < kSteps; ++step) {
    const Range mine = made->shard(kBatch);
    std::vector<int64_t> rows(static_cast<std::size_t>(mine.size()));
    std::iota(rows.begin(), rows.end(), step * kBatch + mine.begin);
    losses.push_back(made->step(data::gather(data.train, rows, at::kDouble), {.lr = 0.1, .samples = kBatch}).loss);
  }
  return losses;
}

Losses losses_in_one_process(const std::string& strategy, const Devices& devices) {
  comm::services(devices.front()).set_current(devices.front());
  const auto communicator = comm::make_local(comm::make_hub(1, 30), 0);
  return losses_of_rank(strategy, devices, *communicator);
}

// A thread for each device, joined over NCCL. Rethrows the first error.
void on_gpus(const Devices& devices, double timeout_s,
             const std::function<void(comm::Communicator&, at::Device)>& rank_function) {
  const auto rendezvous = comm::rendezvous_in_memory();
  const auto size = static_cast<int64_t>(devices.size());
  std::vector<std::exception_ptr> errors(devices.size());
  {
    std::vector<std::jthread> threads;
    for (int64_t rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank, device = devices[static_cast<std::size_t>(rank)]] {
        try {
          const auto communicator = cuda().make_communicator(*rendezvous, rank, size, device, timeout_s);
          rank_function(*communicator, device);
        } catch (...) {
          errors[static_cast<std::size_t>(rank)] = std::current_exception();
        }
      });
    }
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

Losses losses_of_ddp(const Devices& devices) {
  Losses losses;
  on_gpus(devices, 30, [&](comm::Communicator& communicator, at::Device device) {
    const Losses mine = losses_of_rank(kSmallBuckets, {device}, communicator);
    if (communicator.rank() == 0) losses = mine;
  });
  return losses;
}

void require_cpu_losses(const Losses& losses) {
  static const Losses expected = losses_in_one_process("single", {at::kCPU});
  REQUIRE(losses.size() == expected.size());
  for (std::size_t step = 0; step < expected.size(); ++step) {
    REQUIRE(losses[step] == Approx(expected[step]).epsilon(0).margin(1e-8));
  }
}

at::Tensor filled(double value, int64_t count, at::Device device) {
  return at::full({count}, value, at::TensorOptions().dtype(at::kDouble).device(device));
}

// Every collective on vectors that hold rank + 1.
void check_collectives(comm::Communicator& communicator, at::Device device) {
  const int64_t size = communicator.size();
  const auto own = static_cast<double>(communicator.rank() + 1);
  const double sum = static_cast<double>(size * (size + 1)) / 2;
  communicator.barrier();
  at::Tensor reduced = filled(own, 3, device);
  communicator.all_reduce(reduced).wait();
  at::Tensor part = filled(0, 2, device);
  communicator.reduce_scatter(filled(own, 2 * size, device), part).wait();
  at::Tensor all = filled(0, size, device);
  communicator.all_gather(filled(own, 1, device), all).wait();
  at::Tensor root = filled(own, 3, device);
  communicator.broadcast(root, size - 1).wait();
  if (!reduced.equal(filled(sum, 3, device))) throw InternalError("all_reduce");
  if (!part.equal(filled(sum, 2, device))) throw InternalError("reduce_scatter");
  if (!all.equal(at::arange(1, size + 1, all.options()))) throw InternalError("all_gather");
  if (!root.equal(filled(static_cast<double>(size), 3, device))) throw InternalError("broadcast");
}

// A value that the GPU is still computing must be on the host when `synchronize` returns, whatever device is current.
void check_synchronize(at::Device device, at::Device current) {
  cuda().set_current(current);
  const auto single = at::TensorOptions().dtype(at::kFloat);
  const at::Tensor ones = at::ones({2048, 2048}, single.device(device));
  at::Tensor product = ones;
  for (int repeat = 0; repeat < 50; ++repeat) product = product.matmul(ones) / 2048;
  at::Tensor host = at::zeros({}, single.pinned_memory(true));
  host.copy_(product.mean(), /*non_blocking=*/true);
  cuda().synchronize(device);
  REQUIRE(host.item<float>() == Approx(1));
}

}  // namespace

TEST_CASE("a GPU has a description, its libraries have versions", "[gpu]") {
  if (skipped(1)) return;
  INFO(cuda().description(kOne.front()));
  CHECK(cuda().description(kOne.front()).find(" GiB") != std::string::npos);
  CHECK(cuda().versions().size() == 2);
  CHECK_THROWS_AS(cuda().set_current(at::Device(at::kCUDA, 100)), ConfigError);
}

TEST_CASE("memory figures follow what is allocated, and keep the peak", "[gpu]") {
  if (skipped(1)) return;
  constexpr int64_t kBytes = 64 << 20;
  const int64_t before = cuda().memory(kOne.front()).allocated_bytes;
  at::Tensor block = at::empty({kBytes}, at::TensorOptions().dtype(at::kByte).device(kOne.front()));
  CHECK(cuda().memory(kOne.front()).allocated_bytes == before + kBytes);
  block.reset();
  CHECK(cuda().memory(kOne.front()).allocated_bytes == before);
  CHECK(cuda().memory(kOne.front()).peak_bytes >= before + kBytes);
}

TEST_CASE("synchronize waits for the work of a GPU", "[gpu]") {
  if (skipped(1)) return;
  check_synchronize(kOne[0], kOne[0]);
}

TEST_CASE("synchronize waits for a GPU that is not the current one", "[gpu:2]") {
  if (skipped(2)) return;
  check_synchronize(kTwo[0], kTwo[1]);
  check_synchronize(kTwo[1], kTwo[0]);
}

TEST_CASE("on one GPU every strategy computes what the CPU does", "[gpu]") {
  if (skipped(1)) return;
  require_cpu_losses(losses_in_one_process("single", kOne));
  require_cpu_losses(losses_of_ddp(kOne));
  for (const char* strategy : kInOneProcess) {
    INFO(strategy);
    require_cpu_losses(losses_in_one_process(strategy, kOne));
    require_cpu_losses(losses_in_one_process(strategy, kOneTwice));
  }
}

TEST_CASE("on two GPUs every strategy computes what the CPU does", "[gpu:2]") {
  if (skipped(2)) return;
  require_cpu_losses(losses_of_ddp(kTwo));
  for (const char* strategy : kInOneProcess) {
    INFO(strategy);
    require_cpu_losses(losses_in_one_process(strategy, kTwo));
  }
}

TEST_CASE("an all-reduce copies to the target device before it adds, in place (S-22, S-23)", "[gpu:2]") {
  if (skipped(2)) return;
  for (const char* name : {"naive", "tree", "ring"}) {
    std::vector<at::Tensor> data = {filled(1, 2, kTwo[0]), filled(2, 2, kTwo[1])};
    const std::vector<at::Tensor> same = data;
    strategy::scratch::allreduce_named(name)(data);
    for (std::size_t i = 0; i < data.size(); ++i) {
      CHECK(data[i].equal(filled(3, 2, kTwo[i])));
      CHECK(data[i].is_same(same[i]));
    }
  }
}

TEST_CASE("NCCL carries every collective for one rank", "[gpu]") {
  if (skipped(1)) return;
  on_gpus(kOne, 30, check_collectives);
}

TEST_CASE("NCCL carries every collective between two ranks", "[gpu:2]") {
  if (skipped(2)) return;
  on_gpus(kTwo, 30, check_collectives);
}

TEST_CASE("a rank that never comes is an error after the timeout", "[gpu]") {
  if (skipped(1)) return;
  const auto rendezvous = comm::rendezvous_in_memory();
  const double began_s = real_clock().now_s();
  CHECK_THROWS_AS(cuda().make_communicator(*rendezvous, 0, 2, kOne.front(), 2), CommError);
  CHECK(real_clock().now_s() - began_s < 10);
}

TEST_CASE("a collective that a rank never joins is an error after the timeout, and the process lives", "[gpu:2]") {
  if (skipped(2)) return;
  std::atomic<bool> first_has_given_up = false;
  const auto join_or_not = [&](comm::Communicator& communicator, at::Device device) {
    if (communicator.rank() == 1) {
      while (!first_has_given_up) std::this_thread::yield();
      throw DataError("rank 1 failed before its all-reduce");
    }
    at::Tensor tensor = filled(1, 1, device);
    const double began_s = real_clock().now_s();
    try {
      communicator.all_reduce(tensor).wait();
    } catch (...) {
      first_has_given_up = true;
      if (real_clock().now_s() - began_s > 10) throw InternalError("too late");
      throw;
    }
    first_has_given_up = true;
  };
  CHECK_THROWS_AS(on_gpus(kTwo, 2, join_or_not), CommError);
}
