// Which samples make up which step.
#include "test.h"

#include "core/error.h"
#include "core/split.h"
#include "data/sampler.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <map>
#include <numeric>

using namespace mgt;
using namespace mgt::data;

namespace {

using Rows = std::vector<int64_t>;

Rows counted(int64_t size) {
  Rows rows(static_cast<std::size_t>(size));
  std::iota(rows.begin(), rows.end(), int64_t{0});
  return rows;
}

Rows sorted(Rows rows) {
  std::ranges::sort(rows);
  return rows;
}

// What `ranks` ranks see of an epoch, each taking its part of every batch.
Rows epoch_rows(Sampler& sampler, int64_t epoch, int64_t ranks) {
  Rows all;
  for (int64_t step = 0; step < sampler.steps_per_epoch(); ++step) {
    const Rows batch = sampler.indices(epoch, step);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const Range part = split(static_cast<int64_t>(batch.size()), ranks, rank);
      all.insert(all.end(), batch.begin() + part.begin, batch.begin() + part.end);
    }
  }
  return all;
}

}  // namespace

TEST_CASE("samples are neither lost nor repeated (S-27, E-11)") {
  for (const int64_t size : {1, 2, 7, 63, 64, 65, 147, 300}) {
    for (const int64_t batch_size : {1, 3, 64, 300, 1000}) {
      for (int64_t ranks = 1; ranks <= 8; ++ranks) {
        Sampler in_order(size, batch_size, file_order(size));
        Sampler shuffled(size, batch_size, shuffled_order(size, 5));
        INFO(size << " samples, batches of " << batch_size << ", " << ranks << " ranks");
        REQUIRE(epoch_rows(in_order, 0, ranks) == counted(size));
        REQUIRE(sorted(epoch_rows(shuffled, 3, ranks)) == counted(size));
      }
    }
  }
}

TEST_CASE("the ranks' parts are the exact contiguous ones, not the padded ones (E-11)") {
  const auto golden = nlohmann::json::parse(std::ifstream(test::cases() + "/7_semantics/samplers.json"));
  REQUIRE(golden["rows"].size() == 5);
  for (const auto& row : golden["rows"]) {
    const int64_t size = row["n"], ranks = row["k"];
    Sampler sampler(size, size, file_order(size));
    const Rows batch = sampler.indices(0, 0);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const Range part = split(size, ranks, rank);
      const Rows rows(batch.begin() + part.begin, batch.begin() + part.end);
      CHECK(rows == row["exact_contiguous"][static_cast<std::size_t>(rank)].get<Rows>());
    }
  }
}

TEST_CASE("the last batches of 96 and 16 are kept unless drop_last (S-48)") {
  Sampler train(60000, 256, file_order(60000));
  REQUIRE(train.steps_per_epoch() == 235);
  CHECK(train.indices(0, 233).size() == 256);
  CHECK(train.indices(0, 234).size() == 96);
  CHECK(train.indices(0, 234).back() == 59999);

  Sampler test_set(10000, 256, file_order(10000));
  REQUIRE(test_set.steps_per_epoch() == 40);
  CHECK(test_set.indices(0, 39).size() == 16);

  CHECK(Sampler(60000, 256, file_order(60000), true).steps_per_epoch() == 234);
  CHECK(Sampler(512, 256, file_order(512), true).steps_per_epoch() == 2);
  CHECK(Sampler(512, 256, file_order(512), false).steps_per_epoch() == 2);
}

TEST_CASE("the order is a function of seed and epoch alone, so every rank has the same") {
  const Rows order = shuffled_order(1000, 7)(2);
  CHECK(sorted(order) == counted(1000));
  CHECK(order == shuffled_order(1000, 7)(2));
  CHECK(order != shuffled_order(1000, 7)(3));
  CHECK(order != shuffled_order(1000, 8)(2));
  CHECK(order != counted(1000));
}

TEST_CASE("a step can be asked for at any time: resume needs no history") {
  Sampler forwards(147, 64, shuffled_order(147, 1));
  std::map<std::pair<int64_t, int64_t>, Rows> seen;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    for (int64_t step = 0; step < 3; ++step) seen[{epoch, step}] = forwards.indices(epoch, step);
  }
  Sampler resumed(147, 64, shuffled_order(147, 1));
  CHECK(resumed.indices(2, 1) == seen[{2, 1}]);
  CHECK(resumed.indices(0, 2) == seen[{0, 2}]);
  CHECK(resumed.indices(2, 0) == seen[{2, 0}]);
}

TEST_CASE("every permutation is equally likely") {
  constexpr int kEpochs = 6000;
  std::map<Rows, int> times;
  for (int epoch = 0; epoch < kEpochs; ++epoch) ++times[shuffled_order(3, 11)(epoch)];
  REQUIRE(times.size() == 6);
  for (const auto& [order, count] : times) CHECK(std::abs(count - kEpochs / 6) < 145);  // five standard deviations
}

TEST_CASE("a step outside of the epoch is a bug of ours") {
  Sampler sampler(10, 4, file_order(10));
  CHECK_THROWS_AS(sampler.indices(0, 3), InternalError);
  CHECK_THROWS_AS(sampler.indices(0, -1), InternalError);
  CHECK_THROWS_AS(Sampler(0, 4, file_order(0)), InternalError);
  Sampler short_order(10, 4, file_order(9));
  CHECK_THROWS_AS(short_order.indices(0, 0), InternalError);
}
