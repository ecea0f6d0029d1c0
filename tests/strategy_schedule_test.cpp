// The orders in which the ranks of a pipeline take the pieces of a batch.
#include "test.h"

#include "strategy/mesh/schedule.h"

#include <algorithm>
#include <set>

using namespace mgt::strategy;

namespace {

using Kind = Action::Kind;

double formula(int64_t stages, int64_t pieces) {
  return static_cast<double>(stages - 1) / static_cast<double>(pieces + stages - 1);
}

}  // namespace

TEST_CASE(
    "every order does each piece of each chunk once forward and then once backward, and never waits for ever (S-11)") {
  for (const Order order : {Order::gpipe, Order::one_forward_one_backward, Order::interleaved}) {
    for (int64_t stages = 1; stages <= 5; ++stages) {
      for (int64_t pieces = 1; pieces <= 9; ++pieces) {
        const Pipeline pipeline{order, stages, order == Order::interleaved ? 3 : 1};
        const auto timeline = simulate(pipeline, pieces);  // throws where an order waits for ever
        REQUIRE(static_cast<int64_t>(timeline.size()) == stages);
        for (const auto& stage : timeline) {
          REQUIRE(static_cast<int64_t>(stage.size()) == 2 * pieces * pipeline.chunks);
          std::set<std::pair<int64_t, int64_t>> forward, backward;
          for (const Timed& timed : stage) {
            const std::pair what(timed.action.chunk, timed.action.piece);
            if (timed.action.kind == Kind::backward) {
              REQUIRE(forward.contains(what));
              REQUIRE(backward.insert(what).second);
            } else {
              REQUIRE(forward.insert(what).second);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("the idle share of gpipe and 1f1b is (p - 1) / (m + p - 1), that of interleaving is less (S-106)") {
  for (int64_t stages = 1; stages <= 4; ++stages) {
    for (const int64_t pieces : {1, 2, 4, 8}) {
      const double gpipe = idle_share(simulate({Order::gpipe, stages, 1}, pieces));
      const double one_by_one = idle_share(simulate({Order::one_forward_one_backward, stages, 1}, pieces));
      REQUIRE(gpipe == Approx(formula(stages, pieces)));
      REQUIRE(one_by_one == Approx(formula(stages, pieces)));
      if (stages > 1 && pieces % stages == 0 && pieces > stages) {
        REQUIRE(idle_share(simulate({Order::interleaved, stages, 2}, pieces)) < one_by_one);
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
}
