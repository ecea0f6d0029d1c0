// The orders in which the ranks of a pipeline take the pieces of a batch.
#include "test.h"

#include "strategy/mesh/schedule.h"

#include <algorithm>
#include <functional>
#include <map>

using namespace mgt::strategy;

namespace {

using Kind = Action::Kind;

double formula(int64_t stages, int64_t pieces) {
  return static_cast<double>(stages - 1) / static_cast<double>(pieces + stages - 1);
}

// Each order with up to 6 stages, 4 chunks and 24 pieces.
void for_every_pipeline(const std::function<void(const Pipeline& pipeline, int64_t pieces)>& check) {
  for (const Order order : {Order::gpipe, Order::one_forward_one_backward, Order::interleaved}) {
    for (int64_t stages = 1; stages <= 6; ++stages) {
      for (int64_t chunks = 1; chunks <= (order == Order::interleaved ? 4 : 1); ++chunks) {
        for (int64_t pieces = 1; pieces <= 24; ++pieces) check({order, stages, chunks}, pieces);
      }
    }
  }
}

// The most pieces whose activations a rank holds at once, of all its chunks together.
int64_t pieces_in_flight(const std::vector<Action>& actions) {
  int64_t now = 0, most = 0;
  for (const Action& action : actions) {
    now += action.kind == Kind::forward ? 1 : -1;
    most = std::max(most, now);
  }
  return most;
}

}  // namespace

TEST_CASE(
    "every order does each piece of each chunk once forward and then once backward, and never waits for ever (S-11)") {
  for_every_pipeline([](const Pipeline& pipeline, int64_t pieces) {
    const auto timeline = simulate(pipeline, pieces);  // throws where an order waits for ever
    REQUIRE(static_cast<int64_t>(timeline.size()) == pipeline.stages);
    for (const auto& stage : timeline) {
      REQUIRE(static_cast<int64_t>(stage.size()) == 2 * pieces * pipeline.chunks);
      std::map<std::pair<Kind, int64_t>, int64_t> next;  // piece of a chunk, which come in order
      for (const Timed& timed : stage) {
        const auto& [kind, chunk, piece] = timed.action;
        REQUIRE(piece == next[{kind, chunk}]++);
        if (kind == Kind::backward) REQUIRE(piece < next[{Kind::forward, chunk}]);
      }
    }
  });
}

TEST_CASE("interleaving is never gpipe's order but for pieces that are fewer than it warms up with (S-11, S-106)") {
  for_every_pipeline([](const Pipeline& pipeline, int64_t pieces) {
    if (pipeline.order != Order::interleaved) return;
    const int64_t rounds = std::max<int64_t>(1, pieces / pipeline.stages), all = pieces * pipeline.chunks;
    const int64_t first_round = (pieces + rounds - 1) / rounds;
    for (int64_t stage = 0; stage < pipeline.stages; ++stage) {
      const int64_t ahead = (pipeline.chunks - 1) * first_round + 2 * (pipeline.stages - 1 - stage);
      REQUIRE(pieces_in_flight(actions_of(pipeline, stage, pieces)) == std::min(all, ahead + 1));
    }
    const Pipeline gpipe{Order::gpipe, pipeline.stages, pipeline.chunks};
    REQUIRE(idle_share(simulate(pipeline, pieces)) <= idle_share(simulate(gpipe, pieces)) + 1e-9);
  });
}

TEST_CASE("the idle share of gpipe and 1f1b is (p - 1) / (m + p - 1), of v chunks (p - 1) / (v m + p - 1) (S-106)") {
  for (int64_t stages = 1; stages <= 4; ++stages) {
    for (const int64_t pieces : {1, 2, 4, 8}) {
      const double gpipe = idle_share(simulate({Order::gpipe, stages, 1}, pieces));
      const double one_by_one = idle_share(simulate({Order::one_forward_one_backward, stages, 1}, pieces));
      REQUIRE(gpipe == Approx(formula(stages, pieces)));
      REQUIRE(one_by_one == Approx(formula(stages, pieces)));
      if (stages > 1 && pieces % stages == 0) {
        REQUIRE(idle_share(simulate({Order::interleaved, stages, 2}, pieces)) == Approx(formula(stages, 2 * pieces)));
      }
    }
  }
}

TEST_CASE("1f1b holds min(m, p - stage) pieces, gpipe all of them") {
  for (int64_t stages = 1; stages <= 5; ++stages) {
    for (int64_t pieces = 1; pieces <= 8; ++pieces) {
      for (int64_t stage = 0; stage < stages; ++stage) {
        REQUIRE(pieces_in_flight(actions_of({Order::one_forward_one_backward, stages, 1}, stage, pieces)) ==
                std::min(pieces, stages - stage));
        REQUIRE(pieces_in_flight(actions_of({Order::gpipe, stages, 1}, stage, pieces)) == pieces);
      }
    }
  }
}

TEST_CASE("with one stage, 1f1b is plain accumulation") {
  const std::vector<Action> expected = {
      {Kind::forward, 0, 0}, {Kind::backward, 0, 0}, {Kind::forward, 0, 1}, {Kind::backward, 0, 1}};
  const bool equal = actions_of({}, 0, 2) == expected;  // Catch would print the vectors, and LibTorch has no way to
  REQUIRE(equal);
}

TEST_CASE("a schedule is drawn with its idle time") {
  REQUIRE(drawn(simulate({Order::gpipe, 2, 1}, 2)) ==
          "stage 0 | 0  1  .  .  .  0---- 1----|\n"
          "stage 1 | .  0  1  0---- 1---- .  . |\n");
  REQUIRE(drawn(simulate({Order::interleaved, 2, 2}, 2)) ==
          "stage 0 | 0a  1a  0b  1b   .   .  0b-----  .  1b----- 0a----- 1a-----|\n"
          "stage 1 |  .  0a  1a  0b  0b----- 1b  1b----- 0a----- 1a-----  .   . |\n");
  const std::string many = drawn(simulate({Order::interleaved, 1, 27}, 1));
  REQUIRE(many.starts_with("stage 0 |  0a   0b   0c "));
  REQUIRE(many.find(" 0z  0aa  0aa------  0z------  0y------") != std::string::npos);
}
