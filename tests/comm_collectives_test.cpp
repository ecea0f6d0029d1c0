// Own algorithms of the collectives, and splitting.
#include "test.h"
#include "training.h"

#include "comm/gloo/gloo.h"
#include "core/error.h"
#include "core/split.h"
#include "core/text.h"

#include "torch_pch.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <numeric>
#include <thread>

using namespace mgt;
using Catch::Matchers::Contains;
using comm::Algorithm;
using comm::Collective;
using comm::Communicator;

namespace {

constexpr test::Backend kBackends[] = {test::Backend::local, test::Backend::gloo};
constexpr Algorithm kAlgorithms[] = {Algorithm::automatic, Algorithm::library, Algorithm::ring,
                                     Algorithm::halving_doubling};
constexpr Algorithm kOwn[] = {Algorithm::ring, Algorithm::halving_doubling};
constexpr int64_t kLengths[] = {1, 7, 1000, 100003};

void expect(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

// Whole numbers, so that every order of adding gives the same sum.
at::Tensor vector_of(int64_t rank, int64_t length, at::ScalarType dtype) {
  return (at::arange(length, at::kLong) % 97 + 1000 * rank).to(dtype);
}

at::Tensor sum_of_vectors(int64_t size, int64_t length, at::ScalarType dtype) {
  at::Tensor sum = vector_of(0, length, dtype);
  for (int64_t rank = 1; rank < size; ++rank) sum += vector_of(rank, length, dtype);
  return sum;
}

void check_collectives(Communicator& communicator, int64_t length, at::ScalarType dtype) {
  const int64_t rank = communicator.rank(), size = communicator.size();
  const std::string what = concat(length, " ", dtype, " on ", size, " ranks");
  at::Tensor vector = vector_of(rank, length, dtype);
  communicator.all_reduce(vector).wait();
  expect(vector.equal(sum_of_vectors(size, length, dtype)), "all_reduce of " + what);

  const at::Tensor input = vector_of(rank, size * length, dtype);
  at::Tensor part = at::zeros({length}, dtype);
  communicator.reduce_scatter(input, part).wait();
  expect(input.equal(vector_of(rank, size * length, dtype)), "reduce_scatter wrote its input: " + what);
  expect(part.equal(sum_of_vectors(size, size * length, dtype).narrow(0, rank * length, length)),
         "reduce_scatter of " + what);

  const at::Tensor own = vector_of(rank, length, dtype);
  at::Tensor all = at::zeros({size * length}, dtype);
  communicator.all_gather(own, all).wait();
  for (int64_t other = 0; other < size; ++other) {
    expect(all.narrow(0, other * length, length).equal(vector_of(other, length, dtype)), "all_gather of " + what);
  }
}

double seconds_of(const std::function<void()>& action) {
  const auto started = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const CommError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// Bytes that all ranks of `size` sent, by the ledger, for one collective over a vector of `length` floats.
int64_t bytes_sent(int64_t size, Algorithm algorithm, Collective collective, int64_t length) {
  std::vector<int64_t> sent(static_cast<std::size_t>(size));
  const auto rank_function = [&](Communicator& communicator) {
    at::Tensor whole = at::zeros({length}), part = at::zeros({length / size});
    if (collective == Collective::all_reduce) communicator.all_reduce(whole).wait();
    if (collective == Collective::reduce_scatter) communicator.reduce_scatter(whole, part).wait();
    if (collective == Collective::all_gather) communicator.all_gather(part, whole).wait();
    sent[static_cast<std::size_t>(communicator.rank())] = communicator.ledger().of(collective).bytes_sent;
    expect(communicator.ledger().total().operations == 1, "one operation");
  };
  test::on_ranks(size, test::Backend::gloo, 20, rank_function, algorithm);
  return std::accumulate(sent.begin(), sent.end(), int64_t{0});
}

}  // namespace

TEST_CASE(
    "every algorithm gives the sum, for all lengths, dtypes and numbers of ranks, on every backend (S-24, M-09)") {
  for (const test::Backend backend : kBackends) {
    for (const Algorithm algorithm : kAlgorithms) {
      for (int64_t size = 1; size <= 5; ++size) {
        const auto rank_function = [](Communicator& communicator) {
          for (const int64_t length : kLengths) {
            for (const auto dtype : {at::kDouble, at::kFloat, at::kLong}) {
              check_collectives(communicator, length, dtype);
            }
          }
        };
        test::on_ranks(size, backend, 20, rank_function, algorithm);
      }
    }
  }
}

TEST_CASE("a message of many segments is added right") {
  const auto rank_function = [](Communicator& communicator) { check_collectives(communicator, 300001, at::kFloat); };
  for (const Algorithm algorithm : kOwn) test::on_ranks(4, test::Backend::gloo, 20, rank_function, algorithm);
}

TEST_CASE("every rank ends an all-reduce with the same bits, where rounding depends on the order (M-26)") {
  for (const test::Backend backend : kBackends) {
    for (const Algorithm algorithm : kOwn) {
      for (int64_t size = 2; size <= 5; ++size) {
        std::vector<at::Tensor> sums(static_cast<std::size_t>(size));
        const auto rank_function = [&](Communicator& communicator) {
          at::Tensor vector = at::arange(10007, at::kFloat).mul_(0.37 * static_cast<double>(communicator.rank() + 1));
          vector.sin_();
          communicator.all_reduce(vector).wait();
          sums[static_cast<std::size_t>(communicator.rank())] = vector;
        };
        test::on_ranks(size, backend, 20, rank_function, algorithm);
        for (const at::Tensor& sum : sums) REQUIRE(sum.equal(sums.front()));
      }
    }
  }
}

TEST_CASE("the ledger of own algorithms equals the formula, summed over ranks to the byte (S-24)") {
  for (const Algorithm algorithm : kOwn) {
    for (int64_t size = 2; size <= 4; ++size) {
      // LeNet's parameters do not divide by 3.
      CHECK(bytes_sent(size, algorithm, Collective::all_reduce, 129068) == 2 * (size - 1) * 4 * 129068);
      CHECK(bytes_sent(size, algorithm, Collective::all_reduce, 1) == 2 * (size - 1) * 4);
      for (const auto collective : {Collective::reduce_scatter, Collective::all_gather}) {
        CHECK(bytes_sent(size, algorithm, collective, 12000) == (size - 1) * 4 * 12000);
      }
    }
  }
}

TEST_CASE("the ledger tells that Gloo's reduce-scatter sends as much as an all-reduce, and that auto does not use it") {
  CHECK(bytes_sent(3, Algorithm::library, Collective::reduce_scatter, 12000) == 2 * 2 * 4 * 12000);
  CHECK(bytes_sent(3, Algorithm::automatic, Collective::reduce_scatter, 12000) == 2 * 4 * 12000);
}

TEST_CASE("starting a collective does not wait for the other ranks") {
  for (const test::Backend backend : kBackends) {
    for (const Algorithm algorithm : kAlgorithms) {
      const auto rank_function = [](Communicator& communicator) {
        at::Tensor letter = at::ones({1}), vector = at::ones({1000}), own = at::ones({500});
        const at::Tensor input = vector.clone();
        if (communicator.rank() == 1) communicator.recv(letter, 0).wait();  // sent after rank 0 has started both
        comm::Work first = communicator.all_reduce(vector), second = communicator.reduce_scatter(input, own);
        if (communicator.rank() == 0) communicator.send(letter, 1).wait();
        first.wait();
        second.wait();
        expect(vector.eq(2).all().item<bool>() && own.eq(2).all().item<bool>(), "wrong sum");
      };
      test::on_ranks(2, backend, 10, rank_function, algorithm);
    }
  }
}

TEST_CASE("collectives under way do not mix with send, recv and broadcast") {
  for (const test::Backend backend : kBackends) {
    for (const Algorithm algorithm : kOwn) {
      const auto rank_function = [](Communicator& communicator) {
        const int64_t rank = communicator.rank(), other = 1 - rank;
        std::vector<at::Tensor> vectors, shared, sent, received;
        std::vector<comm::Work> works;
        for (int64_t round = 0; round < 20; ++round) {
          vectors.push_back(at::full({2000}, round + rank, at::kFloat));
          shared.push_back(at::full({3}, rank + round));
          sent.push_back(at::full({1000}, 100 * round + rank, at::kFloat));
          received.push_back(at::zeros({1000}, at::kFloat));
        }
        for (std::size_t round = 0; round < 20; ++round) {
          works.push_back(communicator.all_reduce(vectors[round]));
          works.push_back(communicator.recv(received[round], other));  // both ranks receive first
          works.push_back(communicator.broadcast(shared[round], 1));
          works.push_back(communicator.send(sent[round], other));
        }
        for (comm::Work& work : works) work.wait();
        for (int64_t round = 0; round < 20; ++round) {
          const auto index = static_cast<std::size_t>(round);
          expect(vectors[index].eq(2 * round + 1).all().item<bool>(), "wrong sum");
          expect(received[index].eq(100 * round + other).all().item<bool>(), "wrong letter");
          expect(shared[index].eq(round + 1).all().item<bool>(), "wrong broadcast");
        }
      };
      test::on_ranks(2, backend, 10, rank_function, algorithm);
    }
  }
}

TEST_CASE("a rank that stays away ends own collectives of the others after the timeout, by name and number (M-13)") {
  for (const test::Backend backend : kBackends) {
    for (const Algorithm algorithm : kOwn) {
      std::vector<double> waited(4);
      const double all = seconds_of([&] {
        const auto rank_function = [&](Communicator& communicator) {
          communicator.barrier();
          const auto rank = static_cast<std::size_t>(communicator.rank());
          if (rank == 3) return std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // alive, but silent
          at::Tensor vector = at::ones({100});
          comm::Work work = communicator.all_reduce(vector), later = communicator.all_reduce(vector);
          std::string error, next;
          waited[rank] = seconds_of([&] { error = error_of([&] { work.wait(); }); });
          const double again = seconds_of([&] { next = error_of([&] { later.wait(); }); });
          expect(error.starts_with(concat("rank ", rank, ": all_reduce #1 failed: ")), error);
          expect(next.starts_with(concat("rank ", rank, ": all_reduce #2 failed: ")), next);
          expect(again < 0.3, "the next collective waited again");
        };
        test::on_ranks(4, backend, 0.6, rank_function, algorithm);
      });
      CHECK(std::ranges::max(waited) < 1.3);
      CHECK(all < 5);
    }
  }
}

TEST_CASE("a communicator with collectives that nobody joins goes within the timeout") {
  for (const test::Backend backend : kBackends) {
    const double seconds = seconds_of([&] {
      const auto rank_function = [](Communicator& communicator) {
        at::Tensor vector = at::ones({100});
        if (communicator.rank() == 1) return std::this_thread::sleep_for(std::chrono::milliseconds(100));
        for (int i = 0; i < 10; ++i) static_cast<void>(communicator.all_reduce(vector));
      };
      test::on_ranks(2, backend, 0.5, rank_function, Algorithm::ring);
    });
    CHECK(seconds < 3);
  }
}

TEST_CASE("a Gloo rank that leaves ends own collectives of the others at once") {
  const double seconds = seconds_of([] {
    const auto rank_function = [](Communicator& communicator) {
      if (communicator.rank() == 1) return;
      at::Tensor vector = at::ones({100});
      communicator.all_reduce(vector).wait();
    };
    for (const Algorithm algorithm : kOwn) {
      REQUIRE_THROWS_AS(test::on_ranks(2, test::Backend::gloo, 30, rank_function, algorithm), CommError);
    }
  });
  CHECK(seconds < 10);
}

TEST_CASE("split makes a communicator of the ranks of one color, in the order of their ranks, again and again") {
  for (const test::Backend backend : kBackends) {
    for (const Algorithm algorithm : kAlgorithms) {
      const auto rank_function = [](Communicator& world) {
        // A mesh of data 2 x pipeline 3: rank = 3 data + pipeline.
        const int64_t data = world.rank() / 3, pipeline = world.rank() % 3;
        const auto along_data = world.split(pipeline), along_pipeline = world.split(-7 * data);
        expect(along_data->size() == 2 && along_data->rank() == data, "data axis");
        expect(along_pipeline->size() == 3 && along_pipeline->rank() == pipeline, "pipeline axis");
        at::Tensor own = at::full({5}, world.rank(), at::kLong), other = own.clone();
        comm::Work first = along_data->all_reduce(own), second = along_pipeline->all_reduce(other);
        second.wait();
        first.wait();
        expect(own.eq(2 * pipeline + 3).all().item<bool>(), "sum along data");
        expect(other.eq(9 * data + 3).all().item<bool>(), "sum along pipeline");
        const auto alone = along_pipeline->split(pipeline);  // a split of a split
        expect(alone->size() == 1 && alone->rank() == 0, "alone");
        check_collectives(*alone, 7, at::kDouble);
        world.barrier();
      };
      test::on_ranks(6, backend, 20, rank_function, algorithm);
    }
  }
}

TEST_CASE("a rank that does not come to a split ends the others after the timeout, one that fails at once") {
  for (const test::Backend backend : kBackends) {
    const auto stay_away = [](Communicator& world) {
      if (world.rank() == 1) return std::this_thread::sleep_for(std::chrono::milliseconds(900));
      static_cast<void>(world.split(0));
    };
    CHECK_THAT(error_of([&] { test::on_ranks(2, backend, 0.4, stay_away); }), Contains("rank 1"));
  }
  const auto fail = [](Communicator& world) {
    const auto half = world.split(world.rank() / 2);
    if (world.rank() == 3) throw DataError("bad file");
    half->barrier();
    if (world.rank() == 2) half->barrier();
  };
  CHECK(seconds_of([&] { CHECK_THROWS(test::on_ranks(4, test::Backend::local, 30, fail)); }) < 5);
}

// comm_test "[measure]": the algorithms take turns, so that whatever else the machine does meets all alike.
TEST_CASE("measure: milliseconds of each collective over Gloo, by algorithm", "[.][measure]") {
  constexpr Algorithm kMeasured[] = {Algorithm::library, Algorithm::ring, Algorithm::halving_doubling};
  for (const int64_t size : {2, 3, 4}) {
    for (const int64_t length : {256, 131072, 11796480}) {  // floats: 1 KB, 0.5 MB, 45 MB
      for (const auto collective : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather}) {
        std::array<std::vector<double>, 3> spent;
        std::array<std::shared_ptr<comm::Rendezvous>, 3> places;
        for (auto& place : places) place = comm::rendezvous_in_memory();
        const auto rank_function = [&](Communicator& world) {
          std::array<std::unique_ptr<Communicator>, 3> communicators;
          for (std::size_t i = 0; i < 3; ++i) {
            communicators[i] = comm::make_gloo(*places[i], world.rank(), size, 60, kMeasured[i]);
          }
          at::Tensor whole = at::zeros({length / size * size}), part = at::zeros({length / size});
          const int64_t repeats = std::clamp<int64_t>(400000000 / (4 * length), 21, 501);
          for (int64_t repeat = -2; repeat < repeats; ++repeat) {
            for (std::size_t i = 0; i < 3; ++i) {
              Communicator& measured = *communicators[i];
              world.barrier();
              const double seconds = seconds_of([&] {
                if (collective == Collective::all_reduce) measured.all_reduce(whole).wait();
                if (collective == Collective::reduce_scatter) measured.reduce_scatter(whole, part).wait();
                if (collective == Collective::all_gather) measured.all_gather(part, whole).wait();
                world.barrier();
              });
              if (world.rank() == 0 && repeat >= 0) spent[i].push_back(1000 * seconds);
            }
          }
        };
        test::on_ranks(size, test::Backend::local, 60, rank_function);
        std::string line = concat(size, " ranks, ", 4 * length, " bytes, ", comm::name_of(collective), ":");
        for (std::vector<double>& times : spent) {
          std::ranges::sort(times);
          line += concat("  ", brief(times[times.size() / 2]), " (", brief(times.front()), ")");
        }
        std::printf("%s  ms, median (least), library, ring, halving and doubling\n", line.c_str());
      }
    }
  }
}
