// Learning-rate schedules against the columns of torch.optim.lr_scheduler, and what a config may not ask of them.
#include "test.h"

#include "config/reader.h"
#include "config/run.h"
#include "core/error.h"
#include "core/text.h"
#include "optim/entry.h"
#include "optim/schedule.h"

#include "torch_pch.h"

#include <nlohmann/json.hpp>

#include <fstream>
#include <map>
#include <sstream>

using namespace mgt;
using nlohmann::json;

namespace {

constexpr double kBound = 1e-12;  // of the base learning rate

using Columns = std::map<std::string, std::vector<double>>;

constexpr const char* kFirst = "first column";  // its own name may be that of a schedule

Columns columns_of(const std::string& file) {
  std::ifstream stream(test::cases() + "/" + file);
  std::string line, cell;
  std::getline(stream, line);
  std::vector<std::string> names;
  for (std::istringstream cells(line); std::getline(cells, cell, ',');) names.push_back(names.empty() ? kFirst : cell);
  Columns columns;
  while (std::getline(stream, line)) {
    std::istringstream cells(line);
    for (const std::string& name : names) {
      std::getline(cells, cell, ',');
      columns[name].push_back(std::stod(cell));
    }
  }
  return columns;
}

config::Config config_of(const std::string& schedule, double lr, const std::string& top = "devices: 1") {
  const config::Schema schema{.top = config::run_options(), .sections = {optim::section(), optim::schedule_section()}};
  return config::resolve(
      schema, {"test.yaml", concat(top, "\nschedule: ", schedule, "\noptimizer: {lr: ", shortest(lr), "}\n")});
}

void check_column(const optim::Schedule& schedule, const std::vector<double>& wanted, double lr) {
  REQUIRE(!wanted.empty());
  for (std::size_t step = 0; step < wanted.size(); ++step) {
    INFO("step " << step);
    REQUIRE(std::abs(schedule(static_cast<int64_t>(step)) - wanted[step]) <= kBound * lr);
  }
}

// The golden parameters in the words of a config.
std::string section_of(json parameters) {
  if (parameters.contains("steps_per_epoch")) parameters["by"] = "epoch";
  for (const char* const key : {"lr", "steps", "steps_per_epoch"}) parameters.erase(key);
  return parameters.dump();
}

// What is said against the section, or "accepted".
std::string message(const std::string& section, const optim::RunLength& run = {.steps = 40, .steps_per_epoch = 10}) {
  try {
    optim::make_schedule(config_of(section, 0.2), run);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("every schedule, alone and after each ramp, follows its golden column") {
  const Columns columns = columns_of("2_schedules/lr.csv");
  std::ifstream stream(test::cases() + "/2_schedules/lr_columns.json");
  const json all = json::parse(stream);
  REQUIRE(all.size() == 29);
  for (const auto& [name, parameters] : all.items()) {
    INFO(name);
    const double lr = parameters.at("lr");
    const optim::RunLength run{.steps = parameters.at("steps"),
                               .steps_per_epoch = parameters.value("steps_per_epoch", 7)};
    REQUIRE(columns.at(name).size() == static_cast<std::size_t>(run.steps));
    check_column(optim::make_schedule(config_of(section_of(parameters), lr), run), columns.at(name), lr);
  }
}

TEST_CASE("a schedule counts optimizer steps, however many devices take them together") {
  const Columns columns = columns_of("7_semantics/schedule_by_world.csv");
  for (const int64_t world : {1, 2, 4, 8}) {
    INFO(world);
    const config::Config config = config_of("cosine", 0.4, concat("devices: ", world));
    check_column(optim::make_schedule(config, {.steps = 16}), columns.at(concat("right k=", world)), 0.4);
  }
}

TEST_CASE("the learning rate grows with the batch by the rule that is named") {
  const Columns columns = columns_of("7_semantics/lr_scaling.csv");
  for (std::size_t row = 0; row < columns.at("none").size(); ++row) {
    const auto batch_size = static_cast<int64_t>(columns.at(kFirst)[row]);
    const auto scaled = [&](const std::string& section) {
      return optim::make_schedule(config_of(section, 0.1), {.steps = 8, .batch_size = batch_size});
    };
    INFO(batch_size);
    REQUIRE(scaled("constant")(0) == Approx(columns.at("none")[row]).epsilon(kBound));
    REQUIRE(scaled("{scale: linear, base_batch: 256}")(0) == Approx(columns.at("linear")[row]).epsilon(kBound));
    REQUIRE(scaled("{scale: sqrt, base_batch: 256}")(0) == Approx(columns.at("sqrt")[row]).epsilon(kBound));
    const double factor = columns.at("linear")[row] / 0.1;
    REQUIRE(scaled("{name: cosine, eta_min: 0.01, scale: linear, base_batch: 256}")(5) ==
            Approx(factor * scaled("{name: cosine, eta_min: 0.01}")(5)).epsilon(kBound));
  }
}

TEST_CASE("the ramp and the cosine of a golden run") {
  const std::string file = "/1_trajectories/adamw_cosine_warmup_clip_accumulate.json";
  std::ifstream stream(test::cases() + file);
  const json run = json::parse(stream);
  std::vector<double> wanted;
  for (const json& record : run.at("records")) wanted.push_back(record.at("lr"));
  const double lr = run.at("optimizer").at("lr");
  check_column(optim::make_schedule(config_of(run.at("schedule").dump(), lr), {.steps = run.at("steps")}), wanted, lr);
}

TEST_CASE("by epoch, the rate moves at the ends of epochs, whatever the ramp and the last epoch") {
  const auto schedule =
      optim::make_schedule(config_of("{name: linear, by: epoch, warmup: 6}", 1.0), {.steps = 18, .steps_per_epoch = 4});
  // Epochs 1 to 4 of 0 to 4 belong to the line: the ramp ends within epoch 1, the run within epoch 4.
  for (const auto& [step, lr] :
       std::map<int64_t, double>{{0, 0.1}, {6, 1}, {7, 1}, {8, 0.75}, {11, 0.75}, {17, 0.25}}) {
    INFO(step);
    REQUIRE(schedule(step) == Approx(lr));
  }
}

TEST_CASE("every schedule is finite and not negative in runs of any length") {
  for (const config::Variant& variant : optim::schedule_section().variants) {
    const std::string needed = variant.name == "step"          ? ", step_size: 2"
                               : variant.name == "multistep"   ? ", milestones: [1, 2]"
                               : variant.name == "exponential" ? ", gamma: 0.9"
                                                               : "";
    for (int64_t steps = 1; steps <= 5; ++steps) {
      for (int64_t warmup = 0; warmup <= steps; ++warmup) {
        const auto schedule = optim::make_schedule(
            config_of(concat("{name: ", variant.name, needed, ", warmup: ", warmup, "}"), 0.2), {.steps = steps});
        for (int64_t step = 0; step < steps; ++step) {
          INFO(variant.name << ": step " << step << " of " << steps << " with a ramp of " << warmup);
          REQUIRE(std::isfinite(schedule(step)));
          REQUIRE(schedule(step) >= 0);
          REQUIRE(schedule(step) <= 0.2);
        }
      }
    }
  }
}

TEST_CASE("what contradicts itself is refused by key") {
  const std::map<std::string, std::string> cases = {
      {"{warmup: 41}", "test.yaml:2:20: schedule.warmup: a ramp of 41 steps does not end within a run of 40"},
      {"{warmup: 4, warmup_style: goyal, start_factor: 0.1}", "schedule.start_factor: "},
      {"{scale: linear}", "schedule.scale: linear needs schedule.base_batch"},
      {"{base_batch: 256}", "schedule.base_batch: "},
      {"step", "schedule.step_size: missing"},
      {"exponential", "schedule.gamma: missing"},
      {"multistep", "schedule.milestones: missing"},
      {"{name: multistep, milestones: []}", "schedule.milestones: the list is empty"},
      {"{name: multistep, milestones: [5, 5]}", "schedule.milestones: must ascend: 5, 5"},
      {"{name: cosine, eta_min: 0.3}", "schedule.eta_min: "},
      {"{name: cosine, gamma: 0.3}", "schedule.gamma"},
      {"{name: cosin}", "cosine"},
      {"{name: one_cycle, pct_start: 1.5}", "schedule.pct_start: 1.5 is out of range"}};
  for (const auto& [section, words] : cases) {
    INFO(section);
    REQUIRE_THAT(message(section), Catch::Matchers::Contains(words));
  }
  REQUIRE(message("{warmup: 40}") == "accepted");
}
