// In what order each rank of a pipeline takes the pieces of a batch: GPipe (Huang et al., 2019), 1F1B (PipeDream-Flush,
// Narayanan et al., 2021) and interleaved 1F1B (Megatron-LM, Narayanan et al., SC 2021). Pure functions of numbers: the
// engine follows the lists, `config show --schedule` draws them.
//
// A model is cut into stages x chunks parts; rank r has the parts r, r + stages, r + 2 stages, ... as its chunks. With
// one stage every order is plain accumulation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mgt::strategy {

enum class Order { gpipe, one_forward_one_backward, interleaved };

struct Pipeline {
  Order order = Order::one_forward_one_backward;
  int64_t stages = 1;  // ranks
  int64_t chunks = 1;  // parts of the model on each of them; more than one is interleaved
};

struct Action {
  enum class Kind { forward, backward };
  Kind kind = Kind::forward;
  int64_t chunk = 0;
  int64_t piece = 0;
  bool operator==(const Action&) const = default;
};

// What rank `stage` does in a step of `pieces`, one after another. Interleaving takes the pieces in rounds, each
// through all chunks: max(1, pieces / stages) of them, whose sizes differ by at most one.
std::vector<Action> actions_of(const Pipeline& pipeline, int64_t stage, int64_t pieces);

// When each action begins, where a forward takes one unit of time, a backward two and sending nothing.
struct Timed {
  Action action;
  int64_t begin = 0;
  int64_t end = 0;
};
std::vector<std::vector<Timed>> simulate(const Pipeline& pipeline, int64_t pieces);  // by stage

// The share of time that the ranks of a simulated step are idle: (stages - 1) / (pieces + stages - 1) for gpipe and
// 1f1b, (stages - 1) / (chunks x pieces + stages - 1) for interleaved where the stages divide the pieces.
double idle_share(const std::vector<std::vector<Timed>>& timeline);

// One line a stage: "stage 0 | 0  1  .  .  .  0---- 1----|"; a number is a piece's forward, one with dashes its
// backward, a dot idle time. Where there are several chunks, a letter tells which.
std::string drawn(const std::vector<std::vector<Timed>>& timeline);

}  // namespace mgt::strategy
