// The book's primitives (requirements A.2), each under its number.
#include "test.h"
#include "training.h"

#include "core/split.h"
#include "strategy/parts/balance.h"
#include "strategy/parts/microbatches.h"
#include "strategy/scratch/scratch.h"

#include "torch_pch.h"
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>

using namespace mgt;
using namespace mgt::strategy::scratch;
using nlohmann::json;

namespace {

std::vector<at::Device> cpus(int64_t count) {
  return std::vector<at::Device>(static_cast<std::size_t>(count), at::kCPU);
}

const std::pair<std::string, AllReduce> kAllReduces[] = {
    {"naive", allreduce_naive}, {"tree", allreduce_tree}, {"ring", allreduce_ring}};

std::vector<at::Tensor> random_vectors(int64_t devices, int64_t count) {
  std::vector<at::Tensor> data;
  for (int64_t i = 0; i < devices; ++i) data.push_back(at::randn({count}, at::kDouble));
  return data;
}

// A device with one weight w, for y = w x and squared error.
std::vector<Device> line_devices(int64_t count, double weight) {
  std::vector<Device> devices;
  const at::Tensor w = at::full({1}, weight, at::kDouble);
  for (const at::Device place : cpus(count)) {
    Device device{.device = place, .params = get_params({w}, place), .buffers = {}, .optimizers = {}};
    device.optimizers.push_back(test::sgd_for(device.params[0]));
    devices.push_back(std::move(device));
  }
  return devices;
}

const Net kLine = [](const at::Tensor& X, const Device& device) { return X * device.params[0]; };
const SummedLoss kSquares = [](const at::Tensor& y_hat, const at::Tensor& y) { return (y_hat - y).square().sum(); };

}  // namespace

TEST_CASE("get_params copies deeply, also where the device is the same (S-20, E-01, E-07)") {
  const Params params = {at::randn({3, 2}), at::zeros({20})};
  const Params copy = get_params(params, at::kCPU);
  REQUIRE(copy.size() == 2);
  for (std::size_t i = 0; i < copy.size(); ++i) {
    REQUIRE(copy[i].data_ptr() != params[i].data_ptr());
    REQUIRE(copy[i].equal(params[i]));
    REQUIRE(copy[i].requires_grad());
    REQUIRE(copy[i].is_leaf());
  }
}

TEST_CASE("a fresh copy of b1 is 20 zeros without a gradient (S-21)") {
  const Params copy = get_params({at::zeros({20})}, at::kCPU);
  REQUIRE(copy[0].eq(0).all().item<bool>());
  REQUIRE(copy[0].numel() == 20);
  REQUIRE_FALSE(copy[0].grad().defined());
}

TEST_CASE("every all-reduce makes 1,1 and 2,2 into 3,3 on both devices, in place (S-22, E-03)") {
  for (const auto& [name, allreduce] : kAllReduces) {
    INFO(name);
    std::vector<at::Tensor> data = {at::ones({1, 2}), at::full({1, 2}, 2.0)};
    const void* memory[] = {data[0].data_ptr(), data[1].data_ptr()};
    allreduce(data);
    for (std::size_t i = 0; i < 2; ++i) {
      REQUIRE(data[i].equal(at::full({1, 2}, 3.0)));
      REQUIRE(data[i].data_ptr() == memory[i]);
    }
  }
}

TEST_CASE("tree and ring equal naive in fp64, for any size and 1 to 9 devices (S-24)") {
  for (int64_t devices = 1; devices <= 9; ++devices) {
    for (const int64_t count : {0, 1, 5, 64, 1001}) {
      const std::vector<at::Tensor> start = random_vectors(devices, count);
      at::Tensor sum = at::zeros({count}, at::kDouble);
      for (const at::Tensor& vector : start) sum += vector;
      for (const auto& [name, allreduce] : kAllReduces) {
        INFO(name << " of " << count << " on " << devices);
        std::vector<at::Tensor> data;
        for (const at::Tensor& vector : start) data.push_back(vector.clone());
        allreduce(data);
        REQUIRE(at::allclose(data[0], sum, 1e-13, 1e-13));
        for (const at::Tensor& vector : data) REQUIRE(vector.equal(data[0]));  // to the bit
      }
    }
  }
}

TEST_CASE("the all-reduces move the bytes and take the rounds of the textbook (S-07, S-24, S-107)") {
  constexpr int64_t kCount = 840;         // divides by 2 to 8
  constexpr int64_t kBytes = kCount * 8;  // S
  for (int64_t k = 2; k <= 8; ++k) {
    INFO("k = " << k);
    auto data = random_vectors(k, kCount);
    const Traffic naive = allreduce_naive(data);
    REQUIRE(naive.bytes_sent[0] == (k - 1) * kBytes);
    REQUIRE(naive.bytes_received[0] == (k - 1) * kBytes);
    REQUIRE(naive.bytes_sent[1] == kBytes);
    REQUIRE(naive.rounds == 2 * (k - 1));

    const Traffic tree = allreduce_tree(data);
    REQUIRE(tree.rounds == 2 * static_cast<int64_t>(std::ceil(std::log2(k))));
    REQUIRE(tree.total_bytes() == 2 * (k - 1) * kBytes);

    const Traffic ring = allreduce_ring(data);
    REQUIRE(ring.rounds == 2 * (k - 1));
    for (const int64_t sent : ring.bytes_sent) REQUIRE(sent == 2 * (k - 1) * kBytes / k);
  }
}

TEST_CASE("a 4 x 5 matrix over 2 devices gives rows 0-1 and 2-3, other shapes as PyTorch splits them (S-25)") {
  std::ifstream file(test::cases() + "/4_splits/scatter.json");
  const json cases = json::parse(file);
  for (const auto& [name, wanted] : cases.items()) {
    INFO(name);
    if (wanted["input"].empty()) continue;  // JSON has no empty matrix with columns
    std::vector<double> numbers;
    for (const json& row : wanted["input"])
      for (const json& cell : row) numbers.push_back(cell.get<double>());
    const at::Tensor matrix = at::tensor(numbers).view(
        {static_cast<int64_t>(wanted["input"].size()), static_cast<int64_t>(wanted["input"][0].size())});
    const auto [shards, same] = split_batch(matrix, matrix, cpus(wanted["parts"].get<int64_t>()));
    for (std::size_t part = 0; part < shards.size(); ++part) {
      const json& rows = wanted["rows_by_part"][part];
      REQUIRE(shards[part].size(0) == static_cast<int64_t>(rows.size()));
      for (std::size_t row = 0; row < rows.size(); ++row) {
        REQUIRE(shards[part][static_cast<int64_t>(row)].equal(matrix[rows[row].get<int64_t>()]));
      }
    }
  }
}

TEST_CASE("split_batch keeps pairs together and refuses different lengths (S-26)") {
  const at::Tensor X = at::arange(14).view({7, 2}), y = at::arange(7);
  const auto [X_shards, y_shards] = split_batch(X, y, cpus(3));
  for (std::size_t i = 0; i < 3; ++i) REQUIRE(X_shards[i].select(1, 0).equal(y_shards[i] * 2));
  REQUIRE_THROWS(split_batch(X, at::arange(6), cpus(3)));
}

TEST_CASE("no sample is lost or repeated, empty parts are allowed (S-27, E-11, E-13)") {
  for (int64_t n = 0; n <= 300; n += 7) {
    for (int64_t k = 1; k <= 8; ++k) {
      const auto [shards, same] = split_batch(at::arange(n).view({n, 1}), at::arange(n), cpus(k));
      REQUIRE(at::cat(same).equal(at::arange(n)));
    }
  }
}

TEST_CASE("train_batch divides the summed gradient by the size of the whole batch (S-28, S-29)") {
  // Loss sum (w x - y)^2 with w = 2, y = 0: gradient 2 w sum x^2; n samples 1 .. n.
  for (const int64_t n : {1, 2, 5, 16, 19}) {
    for (int64_t k = 1; k <= 4; ++k) {
      for (const auto& [name, allreduce] : kAllReduces) {
        INFO(name << ", n = " << n << ", k = " << k);
        std::vector<Device> devices = line_devices(k, 2.0);
        const at::Tensor X = at::arange(1, n + 1, at::kDouble), y = at::zeros({n}, at::kDouble);
        const double gradient = 4.0 * X.square().sum().item<double>() / static_cast<double>(n);
        const BatchResult first = train_batch(X, y, devices, kLine, kSquares, {.allreduce = allreduce, .lr = 0.001});
        REQUIRE(first.loss == Approx(4.0 * X.square().mean().item<double>()).epsilon(1e-12));
        const double after_one = 2.0 - 0.001 * gradient;
        for (const Device& device : devices) {
          REQUIRE(device.params[0].item<double>() == Approx(after_one).epsilon(1e-12));
        }
        // A second step sees no stale gradient.
        train_batch(X, y, devices, kLine, kSquares, {.allreduce = allreduce, .lr = 0.001});
        const double after_two = after_one - 0.001 * gradient * after_one / 2.0;
        for (const Device& device : devices) {
          REQUIRE(device.params[0].item<double>() == Approx(after_two).epsilon(1e-12));
        }
      }
    }
  }
}

TEST_CASE("within a batch every device gets its work before anything waits for a result (S-30)") {
  // On GPUs kernels are only queued, so this order is what lets the devices work at the same time without threads.
  static std::string order;
  order.clear();
  const Net net = [](const at::Tensor& X, const Device& device) {
    order += "forward ";
    return kLine(X, device);
  };
  const AllReduce allreduce = [](std::vector<at::Tensor>& data) {
    order += "allreduce ";
    return allreduce_naive(data);
  };
  std::vector<Device> devices = line_devices(3, 2.0);
  train_batch(at::arange(1, 7, at::kDouble), at::zeros({6}, at::kDouble), devices, net, kSquares,
              {.allreduce = allreduce, .lr = 0.1});
  REQUIRE(order == "forward forward forward allreduce ");
}

TEST_CASE("replicas of every strategy have storage of their own (S-20, E-01)") {
  for (const std::string strategy : {"scratch", "data_parallel"}) {
    const auto addresses =
        test::replica_addresses("model: {name: lenet, channels: [4, 6], hidden: 16}\nstrategy: " + strategy, 4);
    REQUIRE(addresses.size() == 4 * 8);
    REQUIRE(std::set<const void*>(addresses.begin(), addresses.end()).size() == addresses.size());
  }
}

TEST_CASE("blocks are cut so that the largest part is as small as can be (S-01)") {
  using strategy::balanced_cut;
  REQUIRE((balanced_cut({1, 1, 1, 1}, 2) == std::vector<Range>{{0, 2}, {2, 4}}));
  REQUIRE((balanced_cut({10, 1, 1, 1}, 2) == std::vector<Range>{{0, 1}, {1, 4}}));
  REQUIRE(balanced_cut({1, 1, 1, 10}, 3).back() == Range{3, 4});
  REQUIRE((balanced_cut({0, 0, 0}, 3) == std::vector<Range>{{0, 1}, {1, 2}, {2, 3}}));
}

TEST_CASE("a full batch has the pieces asked for, in even sizes, a short one fewer and none larger (S-79, S-11)") {
  const auto sizes = [](int64_t rows, const strategy::MicroBatch& micro_batch) {
    std::vector<int64_t> all;
    const int64_t pieces = strategy::pieces_of(rows, 1, micro_batch);
    for (int64_t piece = 0; piece < pieces; ++piece) all.push_back(split(rows, pieces, piece).size());
    return all;
  };
  REQUIRE(sizes(16, {16, 5}) == std::vector<int64_t>{4, 3, 3, 3, 3});
  REQUIRE(sizes(16, {16, 7}) == std::vector<int64_t>{3, 3, 2, 2, 2, 2, 2});
  REQUIRE(sizes(8, {16, 5}) == std::vector<int64_t>{3, 3, 2});
  REQUIRE(sizes(1, {16, 5}) == std::vector<int64_t>{1});
  REQUIRE(sizes(3, {3, 8}) == std::vector<int64_t>{1, 1, 1});
  for (int64_t batch_size = 1; batch_size <= 24; ++batch_size) {
    for (int64_t shards = 1; shards <= 5; ++shards) {
      for (int64_t accumulate = 1; accumulate <= 12; ++accumulate) {
        const int64_t fullest = split(batch_size, shards, 0).size(), pieces = std::min(accumulate, fullest);
        const strategy::MicroBatch micro_batch{batch_size, accumulate};
        REQUIRE(strategy::pieces_of(batch_size, shards, micro_batch) == pieces);
        for (int64_t rows = 1; rows < batch_size; ++rows) {
          const int64_t own = split(rows, shards, 0).size(), fewer = strategy::pieces_of(rows, shards, micro_batch);
          REQUIRE(fewer == std::clamp<int64_t>((accumulate * own + fullest - 1) / fullest, 1, own));
          REQUIRE(split(own, fewer, 0).size() <= split(fullest, pieces, 0).size());
        }
      }
    }
  }
}
