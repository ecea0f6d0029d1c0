#include "verify/cases.h"

#include "config/option.h"
#include "config/value_text.h"
#include "core/text.h"
#include "optim/entry.h"
#include "optim/schedule.h"
#include "strategy/entry.h"

#include <algorithm>
#include <functional>

namespace mgt::verify {
namespace {

using Overrides = std::vector<std::string>;

// The other values worth trying of an option; none where only the user can know.
std::vector<std::string> other_values(const config::Option& option) {
  std::vector<std::string> values;
  for (const config::Value& value : option.examples) values.push_back(config::yaml_text(value));
  if (option.kind == config::Kind::boolean) values = {std::get<bool>(option.fallback) ? "false" : "true"};
  for (const std::string& choice : option.choices) {
    if (config::Value(choice) != option.fallback) values.push_back(choice);
  }
  return values;
}

struct Choice {
  std::string key;
  std::string override;
};

// Each other value of the options of a variant for which `chosen` holds.
std::vector<Choice> settings_of(const std::string& section, const config::Variant& variant,
                                const std::function<bool(const config::Option&)>& chosen) {
  std::vector<Choice> settings;
  for (const config::Option& option : variant.options) {
    if (!chosen(option)) continue;
    for (const std::string& value : other_values(option)) {
      settings.push_back({option.key, concat(section, ".", option.key, "=", value)});
    }
  }
  return settings;
}

bool is_switch(const config::Option& option) { return option.kind == config::Kind::boolean; }

// Every combination of a variant's switches, alone and with each value of its other options; and those in pairs.
std::vector<Overrides> combinations(const std::string& section, const config::Variant& variant) {
  const std::vector<Choice> switches = settings_of(section, variant, is_switch);
  const std::vector<Choice> others = settings_of(section, variant, std::not_fn(is_switch));
  std::vector<Overrides> lists;
  for (std::size_t set = 0; set < (std::size_t{1} << switches.size()); ++set) {
    Overrides on;
    for (std::size_t index = 0; index < switches.size(); ++index) {
      if ((set >> index) & 1) on.push_back(switches[index].override);
    }
    if (!on.empty()) lists.push_back(on);
    for (const Choice& other : others) {
      lists.push_back(on);
      lists.back().push_back(other.override);
    }
  }
  for (std::size_t first = 0; first < others.size(); ++first) {
    for (std::size_t second = first + 1; second < others.size(); ++second) {
      if (others[first].key != others[second].key) lists.push_back({others[first].override, others[second].override});
    }
  }
  return lists;
}

// A schedule after a ramp of one step, with another value of each of its own options.
std::string schedule_setting(const config::Variant& variant) {
  std::vector<std::string> settings = {"name: " + variant.name, "warmup: 1"};
  for (const config::Option& option : variant.options) {
    settings.push_back(concat(option.key, ": ", other_values(option).at(0)));
  }
  return concat("schedule={", join(settings), "}");
}

}  // namespace

std::vector<Case> invariant_cases(int64_t virtual_shards) {
  std::vector<Case> cases;
  const Overrides base = {"determinism=invariant", "launch=threads"};
  for (const strategy::Entry* entry : strategy::entries()) {
    if (!entry->can_be_invariant) continue;
    const auto add = [&](int64_t world, const Overrides& more) {
      Case one{.overrides = {"strategy=" + entry->variant.name}, .world = world};
      one.overrides.insert(one.overrides.end(), base.begin(), base.end());
      one.overrides.insert(one.overrides.end(), more.begin(), more.end());
      cases.push_back(std::move(one));
    };
    const bool in_ranks = entry->ranks == strategy::Ranks::one_per_device;
    const int64_t most = entry->splits_batch || in_ranks ? virtual_shards : 1;
    for (int64_t world = 1; world <= most; world *= 2) {
      add(world, {});
      if (in_ranks) add(world, {"comm.backend=gloo"});
    }
    const int64_t some = entry->data_ranks ? most : std::min<int64_t>(2, most);  // a mesh of several axes has divisors
    add(some, {"accumulate=2"});
    for (const Choice& setting : settings_of("strategy", entry->variant, [](const auto&) { return true; })) {
      add(some, {setting.override});
    }
  }
  return cases;
}

std::vector<Case> all_cases(const std::vector<int64_t>& worlds) {
  const int64_t uneven = worlds.size() > 2 ? worlds[2] : worlds.back();  // 3 of 1, 2, 3, 4: nothing divides by it
  std::vector<Case> cases;
  const auto add = [&cases](Overrides first, const Overrides& more, int64_t world) {
    first.insert(first.end(), more.begin(), more.end());
    cases.push_back({std::move(first), world});
  };
  for (const strategy::Entry* entry : strategy::entries()) {
    const std::string strategy = "strategy=" + entry->variant.name;
    const int64_t world = entry->data_ranks ? worlds.back() : uneven;  // a mesh of several axes has divisors
    const bool alone = entry->ranks == strategy::Ranks::one_process;
    const std::vector<std::string> backends =
        alone ? std::vector<std::string>{"local"} : std::vector<std::string>{"local", "gloo"};
    for (const int64_t ranks : worlds) {
      for (const std::string& backend : backends) add({strategy}, {"launch=threads", "comm.backend=" + backend}, ranks);
    }
    for (const Overrides& options : combinations("strategy", entry->variant)) {
      add({strategy, "launch=threads"}, options, world);
    }
    for (const auto& step : {Overrides{"accumulate=3"},
                             {"clip.norm=0.1"},
                             {"clip.value=0.001"},
                             {"accumulate=3", "clip.norm=0.1"},
                             {"optimizer={name: adamw, lr: 0.01, weight_decay: 0.1, no_decay: true}"}}) {
      add({strategy, "launch=threads"}, step, world);
    }
    for (const optim::Entry* optimizer : optim::entries()) {
      const std::string name = concat("optimizer={name: ", optimizer->variant.name, ", lr: 0.01}");
      add({strategy, "launch=threads", name}, {}, world);
      for (const Overrides& options : combinations("optimizer", optimizer->variant)) {
        add({strategy, "launch=threads", name}, options, world);
      }
    }
  }
  // No strategy knows its schedule, so one is enough.
  for (const config::Variant& schedule : optim::schedule_section().variants) {
    add({"strategy=ddp", "launch=threads"}, {schedule_setting(schedule)}, uneven);
  }
  return cases;
}

}  // namespace mgt::verify
