#include "optim/schedule.h"

#include "core/error.h"
#include "core/text.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace mgt::optim {
namespace {

using config::Kind;
using config::Section;

constexpr double kStartFactor = 0.1;

// Where a curve is asked for its learning rate.
struct Point {
  double lr;      // optimizer.lr
  double done;    // steps or epochs since the ramp ended
  double length;  // of the curve, in the same unit
};

// One thing that `schedule.name` may say.
struct Curve {
  config::Variant variant;
  double (*lr)(const Section& own, const Point& at);
};

double constant(const Section&, const Point& at) { return at.lr; }

double step(const Section& own, const Point& at) {
  return at.lr * std::pow(own.number("gamma"), std::floor(at.done / own.number("step_size")));
}

double multistep(const Section& own, const Point& at) {
  const auto passed = std::ranges::count_if(
      own.integers("milestones"), [&](int64_t milestone) { return static_cast<double>(milestone) <= at.done; });
  return at.lr * std::pow(own.number("gamma"), static_cast<double>(passed));
}

double exponential(const Section& own, const Point& at) { return at.lr * std::pow(own.number("gamma"), at.done); }

// From `from` to `to` along half a cosine, as `share` goes from 0 to 1.
double along_cosine(double from, double to, double share) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * share)) / 2;
}

double cosine(const Section& own, const Point& at) {
  return along_cosine(at.lr, own.number("eta_min"), at.done / at.length);
}

double polynomial(const Section& own, const Point& at) {
  return at.lr * std::pow(1 - at.done / at.length, own.number("power"));
}

double linear(const Section& own, const Point& at) {
  return at.lr * std::lerp(1.0, own.number("end_factor"), at.done / at.length);
}

// Up to the peak and down again (Smith and Topin, 2017). The last step has the lowest learning rate, so there is one
// interval less than steps.
double one_cycle(const Section& own, const Point& at) {
  const double peak = own.has("max_lr") ? own.number("max_lr") : at.lr;
  const double first = peak / own.number("div_factor"), last = first / own.number("final_div_factor");
  const double top = own.number("pct_start") * at.length - 1, end = at.length - 1;
  const auto between = [&](double from, double to, double share) {
    return own.text("anneal") == "cos" ? along_cosine(from, to, share) : std::lerp(from, to, share);
  };
  if (top > 0 && at.done <= top) return between(first, peak, at.done / top);
  return end > top ? between(peak, last, (at.done - top) / (end - top)) : peak;
}

config::Option gamma(std::optional<double> fallback) {
  return config::number("gamma", fallback, "factor of each move", {.above = 0}, {0.5});
}

const std::vector<Curve>& curves() {
  static const std::vector<Curve> table = {
      {{.name = "constant", .summary = "the same learning rate throughout", .options = {}}, constant},
      {{.name = "step",
        .summary = "times gamma every step_size steps or epochs",
        .options = {config::integer("step_size", {}, "steps or epochs between two moves", {.at_least = 1}, {2}),
                    gamma(0.1)}},
       step},
      {{.name = "multistep",
        .summary = "times gamma at each milestone",
        .options = {{.key = "milestones",
                     .kind = Kind::integers,
                     .fallback = {},
                     .help = "steps or epochs after the ramp at which to move, ascending",
                     .bounds = {.at_least = 1},
                     .examples = {std::vector<int64_t>{1, 2}}},
                    gamma(0.1)}},
       multistep},
      {{.name = "exponential", .summary = "times gamma every step or epoch", .options = {gamma({})}}, exponential},
      {{.name = "cosine",
        .summary = "down to eta_min along half a cosine",
        .options = {config::number("eta_min", 0.0, "learning rate at the end", {.at_least = 0}, {1e-5})}},
       cosine},
      {{.name = "polynomial",
        .summary = "down to 0 as a power of the share that is left",
        .options = {config::number("power", 1.0, "1 is a straight line", {.above = 0}, {2.0})}},
       polynomial},
      {{.name = "linear",
        .summary = "in a straight line to end_factor times the learning rate",
        .options = {config::number("end_factor", 0.0, "share of the learning rate at the end", {.at_least = 0},
                                   {0.1})}},
       linear},
      {{.name = "one_cycle",
        .summary = "up to the peak, then down to almost nothing",
        .options =
            {config::number("max_lr", {}, "the peak; absent: optimizer.lr", {.at_least = 0}, {0.01}),
             config::number("pct_start", 0.3, "share of the run that climbs", {.at_least = 0, .at_most = 1}, {0.5}),
             config::text("anneal", "cos", "form of the slopes", {"cos", "linear"}),
             config::number("div_factor", 25.0, "the peak over the first learning rate", {.above = 0}, {10.0}),
             config::number("final_div_factor", 1e4, "the first learning rate over the last", {.above = 0}, {100.0})}},
       one_cycle},
  };
  return table;
}

const Curve& curve_of(const Section& section) {
  for (const Curve& curve : curves()) {
    if (curve.variant.name == section.text("name")) return curve;
  }
  throw InternalError("no schedule is called " + section.text("name"));
}

std::vector<config::Option> options_of_all() {
  return {
      config::integer("warmup", 0, "optimizer steps of the ramp; what follows counts from its end", {.at_least = 0}),
      config::text("warmup_style", "factor",
                   "factor: from start_factor times the first learning rate; goyal: by one part in warmup each step",
                   {"factor", "goyal"}),
      config::number("start_factor", {}, "where the ramp starts; absent: 0.1", {.at_least = 0, .at_most = 1}),
      config::text("by", "step", "what counts and moves the schedule after its ramp", {"step", "epoch"}),
      config::text("scale", "none",
                   "every learning rate times batch_size / base_batch (linear), or times its square root (sqrt)",
                   {"none", "linear", "sqrt"}),
      config::integer("base_batch", {}, "the batch_size that optimizer.lr was chosen for", {.at_least = 1})};
}

void check_scale(const config::Config& config) {
  const Section& section = config.section("schedule");
  const std::string& scale = section.text("scale");
  if (scale != "none" && !section.has("base_batch")) {
    config.error_at("schedule.scale", scale + " needs schedule.base_batch, the batch_size that optimizer.lr is for");
  }
  if (scale == "none" && section.has("base_batch")) {
    config.error_at("schedule.base_batch", "does nothing without a rule; set schedule.scale to linear or sqrt");
  }
}

void check_own_options(const config::Config& config) {
  const Section& section = config.section("schedule");
  for (const std::string key : {"step_size", "milestones", "gamma"}) {
    if (section.settings().contains(key) && !section.has(key)) {
      config.error_at("schedule." + key, concat("missing; schedule ", section.text("name"), " needs it"));
    }
  }
  if (section.has("milestones")) {
    const std::vector<int64_t>& milestones = section.integers("milestones");
    if (milestones.empty()) config.error_at("schedule.milestones", "the list is empty; name at least one");
    if (std::ranges::adjacent_find(milestones, std::greater_equal()) != milestones.end()) {
      config.error_at("schedule.milestones", "must ascend: " + join(milestones));
    }
  }
  const double lr = config.section("optimizer").number("lr");
  if (section.has("eta_min") && section.number("eta_min") > lr) {
    config.error_at("schedule.eta_min", concat("the end, ", shortest(section.number("eta_min")),
                                               ", is above the start, optimizer.lr ", shortest(lr), "; lower it"));
  }
}

void check_schedule(const config::Config& config) {
  const Section& section = config.section("schedule");
  if (section.text("warmup_style") == "goyal" && section.has("start_factor")) {
    config.error_at("schedule.start_factor", "warmup_style: goyal starts at 1 / warmup; leave one of the two out");
  }
  check_scale(config);
  check_own_options(config);
}

double scale_of(const config::Config& config, int64_t batch_size) {
  const Section& section = config.section("schedule");
  if (section.text("scale") == "none") return 1;
  const double ratio = static_cast<double>(batch_size) / section.number("base_batch");
  return section.text("scale") == "sqrt" ? std::sqrt(ratio) : ratio;
}

// The share of the first learning rate after the ramp that `step` has.
double ramp(const Section& section, int64_t step, int64_t warmup) {
  if (step >= warmup) return 1;
  const auto length = static_cast<double>(warmup);
  if (section.text("warmup_style") == "goyal") return static_cast<double>(step + 1) / length;
  const double start = section.has("start_factor") ? section.number("start_factor") : kStartFactor;
  return std::lerp(start, 1.0, static_cast<double>(step) / length);
}

}  // namespace

config::SectionSpec schedule_section() {
  config::SectionSpec spec{.key = "schedule",
                           .summary = "how the learning rate changes from step to step",
                           .main_key = "name",
                           .options = options_of_all(),
                           .variants = {},
                           .fallback = "constant"};
  for (const Curve& curve : curves()) {
    spec.variants.push_back(curve.variant);
    spec.variants.back().check = check_schedule;
  }
  return spec;
}

Schedule make_schedule(const config::Config& config, const RunLength& run) {
  const Section& section = config.section("schedule");
  const int64_t warmup = section.integer("warmup");
  if (warmup > run.steps) {
    config.error_at("schedule.warmup", concat("a ramp of ", counted(warmup, "step"), " does not end within a run of ",
                                              run.steps, "; shorten it, or train longer"));
  }
  const int64_t unit = section.text("by") == "epoch" ? run.steps_per_epoch : 1;
  const int64_t begin = warmup / unit, end = (run.steps + unit - 1) / unit;
  const auto length = static_cast<double>(std::max<int64_t>(1, end - begin));
  const double lr = config.section("optimizer").number("lr"), scale = scale_of(config, run.batch_size);
  return [=, own = section, curve = curve_of(section).lr](int64_t step) {
    const auto done = static_cast<double>(std::max(step, warmup) / unit - begin);
    return scale * ramp(own, step, warmup) * curve(own, {.lr = lr, .done = done, .length = length});
  };
}

}  // namespace mgt::optim
