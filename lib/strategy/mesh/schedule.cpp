#include "strategy/mesh/schedule.h"

#include "core/error.h"
#include "core/split.h"
#include "core/text.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

namespace mgt::strategy {
namespace {

using Kind = Action::Kind;

// `ahead` forwards, then one backward after each forward, then the backwards that are left.
std::vector<Action> one_by_one(const std::vector<Action>& forwards, const std::vector<Action>& backwards,
                               int64_t ahead) {
  std::vector<Action> actions;
  const auto count = static_cast<int64_t>(forwards.size());
  for (int64_t next = 0; next < count + ahead; ++next) {
    if (next < count) actions.push_back(forwards[static_cast<std::size_t>(next)]);
    if (next >= ahead) actions.push_back(backwards[static_cast<std::size_t>(next - ahead)]);
  }
  return actions;
}

// Interleaving takes the pieces in rounds of as many as there are stages, or a few more where they do not divide them.
int64_t rounds_of(const Pipeline& pipeline, int64_t pieces) {
  return pipeline.order == Order::interleaved ? std::max<int64_t>(1, pieces / pipeline.stages) : 1;
}

// The pieces of a round pass through all chunks before the next round.
std::vector<Action> in_rounds(int64_t rounds, int64_t pieces, int64_t chunks, Kind kind) {
  std::vector<Action> actions;
  for (int64_t index = 0; index < rounds; ++index) {
    const Range round = split(pieces, rounds, index);
    for (int64_t turn = 0; turn < chunks; ++turn) {
      const int64_t chunk = kind == Kind::forward ? turn : chunks - 1 - turn;
      for (int64_t piece = round.begin; piece < round.end; ++piece) actions.push_back({kind, chunk, piece});
    }
  }
  return actions;
}

// How many forwards a stage does before its first pair of a forward and a backward.
int64_t warm_up(const Pipeline& pipeline, int64_t stage, int64_t first_round) {
  const int64_t later = pipeline.stages - 1 - stage;
  if (pipeline.order == Order::gpipe) return std::numeric_limits<int64_t>::max();
  if (pipeline.order == Order::interleaved) return (pipeline.chunks - 1) * first_round + 2 * later;
  return later;
}

// Simulates one step: each stage does its actions in order, as soon as what they need is there.
class Simulation {
 public:
  Simulation(const Pipeline& pipeline, int64_t pieces) : pipeline_(pipeline) {
    for (int64_t stage = 0; stage < pipeline.stages; ++stage) {
      waiting_.push_back(actions_of(pipeline, stage, pieces));
      std::ranges::reverse(waiting_.back());  // the next one is at the back
    }
    timeline_.resize(waiting_.size());
  }

  std::vector<std::vector<Timed>> run() {
    while (advance()) {
    }
    require(std::ranges::all_of(waiting_, [](const auto& left) { return left.empty(); }), "no schedule waits for ever");
    return std::move(timeline_);
  }

 private:
  bool advance() {
    bool moved = false;
    for (std::size_t stage = 0; stage < waiting_.size(); ++stage) {
      while (!waiting_[stage].empty()) {
        const Action action = waiting_[stage].back();
        const std::optional<int64_t> ready = ready_at(action, static_cast<int64_t>(stage));
        if (!ready) break;
        const int64_t free = timeline_[stage].empty() ? 0 : timeline_[stage].back().end;
        const int64_t begin = std::max(*ready, free), end = begin + (action.kind == Kind::forward ? 1 : 2);
        timeline_[stage].push_back({action, begin, end});
        done_[{action.kind, part_of(action, static_cast<int64_t>(stage)), action.piece}] = end;
        waiting_[stage].pop_back();
        moved = true;
      }
    }
    return moved;
  }

  int64_t part_of(const Action& action, int64_t stage) const { return action.chunk * pipeline_.stages + stage; }

  // When what the action needs is done; absent: not yet.
  std::optional<int64_t> ready_at(const Action& action, int64_t stage) const {
    const int64_t part = part_of(action, stage), last = pipeline_.stages * pipeline_.chunks - 1;
    if (action.kind == Kind::forward) return part == 0 ? 0 : done(Kind::forward, part - 1, action.piece);
    return part == last ? done(Kind::forward, part, action.piece) : done(Kind::backward, part + 1, action.piece);
  }

  std::optional<int64_t> done(Kind kind, int64_t part, int64_t piece) const {
    const auto found = done_.find({kind, part, piece});
    return found == done_.end() ? std::nullopt : std::optional(found->second);
  }

  const Pipeline& pipeline_;
  std::vector<std::vector<Action>> waiting_;
  std::vector<std::vector<Timed>> timeline_;
  std::map<std::tuple<Kind, int64_t, int64_t>, int64_t> done_;
};

int64_t length_of(const std::vector<std::vector<Timed>>& timeline) {
  int64_t length = 0;
  for (const auto& stage : timeline) length = std::max(length, stage.empty() ? 0 : stage.back().end);
  return length;
}

int64_t chunks_in(const std::vector<std::vector<Timed>>& timeline) {
  int64_t last = 0;
  for (const Timed& timed : timeline.front()) last = std::max(last, timed.action.chunk);
  return last + 1;
}

// "7", or "7b" of the second chunk; after z comes aa.
std::string label(const Action& action, bool lettered) {
  std::string letters;
  for (int64_t left = lettered ? action.chunk + 1 : 0; left > 0; left = (left - 1) / 26) {
    letters.insert(letters.begin(), static_cast<char>('a' + (left - 1) % 26));
  }
  return std::to_string(action.piece) + letters;
}

}  // namespace

std::vector<Action> actions_of(const Pipeline& pipeline, int64_t stage, int64_t pieces) {
  const int64_t rounds = rounds_of(pipeline, pieces);
  const int64_t first_round = split(pieces, rounds, 0).size();
  return one_by_one(in_rounds(rounds, pieces, pipeline.chunks, Kind::forward),
                    in_rounds(rounds, pieces, pipeline.chunks, Kind::backward),
                    std::min(warm_up(pipeline, stage, first_round), pieces * pipeline.chunks - 1));
}

std::vector<std::vector<Timed>> simulate(const Pipeline& pipeline, int64_t pieces) {
  return Simulation(pipeline, pieces).run();
}

double idle_share(const std::vector<std::vector<Timed>>& timeline) {
  int64_t busy = 0;
  for (const auto& stage : timeline) {
    for (const Timed& timed : stage) busy += timed.end - timed.begin;
  }
  const int64_t all = length_of(timeline) * static_cast<int64_t>(timeline.size());
  return all == 0 ? 0 : 1.0 - static_cast<double>(busy) / static_cast<double>(all);
}

std::string drawn(const std::vector<std::vector<Timed>>& timeline) {
  const bool lettered = chunks_in(timeline) > 1;
  std::size_t width = 0;  // of one unit of time: a label between spaces
  for (const Timed& timed : timeline.front()) width = std::max(width, label(timed.action, lettered).size() + 2);
  std::string text;
  for (std::size_t stage = 0; stage < timeline.size(); ++stage) {
    std::string line;
    int64_t now = 0;
    const auto idle_until = [&](int64_t end) {
      for (; now < end; ++now) line += std::string(width - 2, ' ') + ". ";
    };
    for (const Timed& timed : timeline[stage]) {
      idle_until(timed.begin);
      const std::string name = label(timed.action, lettered);
      line += std::string(width - 1 - name.size(), ' ') + name;
      line += timed.action.kind == Kind::forward ? " " : std::string(width + 1, '-');
      now = timed.end;
    }
    idle_until(length_of(timeline));
    text += concat("stage ", stage, " |", line, "|\n");
  }
  return text;
}

}  // namespace mgt::strategy
