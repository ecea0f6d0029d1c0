#include "test.h"
#include "training.h"

#include "comm/local/local.h"
#include "core/error.h"

#include "torch_pch.h"
#include <nlohmann/json.hpp>

#include <chrono>
#include <fstream>
#include <thread>

using namespace mgt;
using comm::Collective;
using comm::Communicator;
using nlohmann::json;

namespace {

constexpr test::Backend kBackends[] = {test::Backend::local, test::Backend::gloo};

at::Tensor tensor_of(const json& values, at::ScalarType dtype) {
  std::vector<double> flat;
  std::vector<int64_t> shape;
  for (const json* level = &values; level->is_array(); level = &level->front())
    shape.push_back(static_cast<int64_t>(level->size()));
  const std::function<void(const json&)> add = [&](const json& value) {
    if (!value.is_array())
      flat.push_back(value.get<double>());
    else
      for (const json& item : value) add(item);
  };
  add(values);
  return at::tensor(flat, at::kDouble).view(shape).to(dtype);
}

at::ScalarType dtype_of(const std::string& name) {
  if (name == "int64") return at::kLong;
  return name == "float32" ? at::kFloat : at::kDouble;
}

}  // namespace

TEST_CASE("all-reduce of the golden vectors, in place, on every backend (S-22)") {
  std::ifstream file(test::cases() + "/4_splits/allreduce.json");
  const json cases = json::parse(file);
  for (const auto& [name, wanted] : cases.items()) {
    if (!wanted.contains("inputs_by_rank")) continue;
    for (const test::Backend backend : kBackends) {
      test::on_ranks(static_cast<int64_t>(wanted["inputs_by_rank"].size()), backend, 20,
                     [&](Communicator& communicator) {
                       const auto rank = static_cast<std::size_t>(communicator.rank());
                       const auto dtype = dtype_of(wanted["dtype"]);
                       at::Tensor tensor = tensor_of(wanted["inputs_by_rank"][rank], dtype);
                       const void* memory = tensor.data_ptr();
                       communicator.all_reduce(tensor).wait();
                       if (!tensor.equal(tensor_of(wanted["outputs_by_rank"][rank], dtype)))
                         throw std::runtime_error("wrong sum in " + name);
                       if (tensor.data_ptr() != memory) throw std::runtime_error("storage was replaced in " + name);
                     });
    }
  }
}

TEST_CASE("every collective does what it says, for 1 to 4 ranks, on every backend") {
  for (const test::Backend backend : kBackends) {
    for (int64_t size = 1; size <= 4; ++size) {
      test::on_ranks(size, backend, 20, [&](Communicator& communicator) {
        const int64_t rank = communicator.rank();
        const auto expect = [&](bool holds, const char* what) {
          if (!holds) throw std::runtime_error(what);
        };
        at::Tensor own = at::full({3}, rank + 1, at::kDouble);
        at::Tensor gathered = at::zeros({3 * size}, at::kDouble);
        communicator.all_gather(own, gathered).wait();
        for (int64_t other = 0; other < size; ++other) {
          expect(gathered.narrow(0, 3 * other, 3).eq(other + 1).all().item<bool>(), "all_gather");
        }
        at::Tensor part = at::zeros({3}, at::kDouble);
        communicator.reduce_scatter(gathered, part).wait();
        expect(part.eq(size * (rank + 1)).all().item<bool>(), "reduce_scatter");
        at::Tensor shared = at::full({2}, rank, at::kLong);
        communicator.broadcast(shared, size - 1).wait();
        expect(shared.eq(size - 1).all().item<bool>(), "broadcast");
        if (size > 1 && rank < 2) {
          at::Tensor letter = at::full({4}, 42 + rank, at::kFloat);
          if (rank == 0)
            communicator.send(letter, 1).wait();
          else
            communicator.recv(letter, 0).wait();
          expect(letter.eq(42).all().item<bool>(), "send and recv");
        }
        communicator.barrier();
      });
    }
  }
}

TEST_CASE("many collectives may be under way at once") {
  for (const test::Backend backend : kBackends) {
    test::on_ranks(3, backend, 20, [](Communicator& communicator) {
      std::vector<at::Tensor> tensors;
      std::vector<comm::Work> works;
      for (int i = 0; i < 20; ++i) tensors.push_back(at::full({i + 1}, i + communicator.rank(), at::kDouble));
      for (at::Tensor& tensor : tensors) works.push_back(communicator.all_reduce(tensor));
      for (comm::Work& work : works) work.wait();
      for (int i = 0; i < 20; ++i) {
        if (!tensors[static_cast<std::size_t>(i)].eq(3 * i + 3).all().item<bool>())
          throw std::runtime_error("wrong sum");
      }
    });
  }
}

TEST_CASE("the ledger's bytes equal the ring's formula, summed over ranks to the byte (S-24)") {
  for (int64_t size = 1; size <= 5; ++size) {
    for (const int64_t count : {1, 7, 129068}) {
      int64_t total = 0;
      for (int64_t rank = 0; rank < size; ++rank)
        total += comm::traffic(Collective::all_reduce, 4 * count, 4, rank, size);
      REQUIRE(total == 2 * (size - 1) * 4 * count);
    }
  }
  REQUIRE(comm::traffic(Collective::all_reduce, 516272, 4, 0, 2) == 516272);  // requirements B.5, k = 2
  REQUIRE(comm::traffic(Collective::all_reduce, 516272, 4, 0, 4) == 774408);  // k = 4
}

TEST_CASE("a rank that never comes ends the others after the timeout, with its name") {
  const auto started = std::chrono::steady_clock::now();
  try {
    test::on_ranks(3, test::Backend::local, 0.3, [](Communicator& communicator) {
      if (communicator.rank() == 2) return;
      communicator.barrier();
    });
    FAIL("nobody noticed");
  } catch (const CommError& error) {
    REQUIRE_THAT(error.what(), Catch::Matchers::Contains("barrier #0") && Catch::Matchers::Contains("for rank 2"));
  }
  REQUIRE(std::chrono::steady_clock::now() - started < std::chrono::seconds(5));
}

TEST_CASE("a failing rank ends the collectives of the others at once") {
  const auto started = std::chrono::steady_clock::now();
  REQUIRE_THROWS(test::on_ranks(2, test::Backend::local, 30, [](Communicator& communicator) {
    if (communicator.rank() == 1) throw DataError("bad file");
    communicator.barrier();
  }));
  REQUIRE(std::chrono::steady_clock::now() - started < std::chrono::seconds(5));
}

TEST_CASE("ranks that call different collectives are told so and do not hang") {
  try {
    test::on_ranks(2, test::Backend::local, 10, [](Communicator& communicator) {
      at::Tensor tensor = at::zeros({communicator.rank() + 1});
      communicator.all_reduce(tensor).wait();
    });
    FAIL("nobody noticed");
  } catch (const CommError& error) {
    REQUIRE_THAT(error.what(), Catch::Matchers::Contains("ranks disagree"));
  }
}

TEST_CASE("a Gloo rank that leaves ends the others at once") {
  const auto started = std::chrono::steady_clock::now();
  REQUIRE_THROWS_AS(test::on_ranks(2, test::Backend::gloo, 30,
                                   [](Communicator& communicator) {
                                     if (communicator.rank() == 1) return;
                                     at::Tensor tensor = at::zeros({1});
                                     communicator.all_reduce(tensor).wait();
                                   }),
                    CommError);
  REQUIRE(std::chrono::steady_clock::now() - started < std::chrono::seconds(10));
}
