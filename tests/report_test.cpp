// What a run tells: the lines for people, the records for programs, and the folder on disk.
#include "temporary_folder.h"
#include "test.h"

#include "core/error.h"
#include "core/sha256.h"
#include "report/console.h"
#include "report/format.h"
#include "report/progress_bar.h"
#include "report/record_text.h"
#include "report/run_folder.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <regex>
#include <set>
#include <sstream>
#include <system_error>

namespace mgt::test {
namespace {

using nlohmann::json;

train::RunInfo info_of_two_devices() {
  return {.strategy = "scratch",
          .model = "lenet",
          .data = "fashion_mnist",
          .devices = {"cuda:0", "cuda:1"},
          .world_size = 1,
          .threads_per_rank = 2,
          .parameters = 129068,
          .train_samples = 60000,
          .test_samples = 10000,
          .batch_size = 256,
          .steps_per_epoch = 235,
          .epochs = 10,
          .bayes_accuracy = {}};
}

train::EpochRecord third_epoch() {
  return {.epoch = 3,
          .step = 705,
          .train_loss = 0.7202,
          .lr = 0.05,
          .train_s = 13.9,
          .eval_s = 0.5,
          .samples_per_s = 4316.5,
          .evaluated = true,
          .test_correct = 7173,
          .test_total = 10000};
}

train::Summary good_summary() {
  train::Summary summary;
  summary.info = info_of_two_devices();
  summary.evaluated = true;
  summary.test_correct = 8312;
  summary.test_total = 10000;
  summary.best_test_acc = 0.84;
  summary.sec_per_epoch = 2.41;
  summary.samples_per_sec = 24896.3;
  summary.epochs = 10;
  summary.steps = 2350;
  summary.final_train_loss = 0.4123;
  summary.first_step_s = 0.7;
  summary.weights_sha256 = sha256_hex("");
  summary.peak_bytes = 1 << 28;
  summary.bytes_sent = 1000;
  summary.comm_wait_s = 0.25;
  summary.notes = {{"device 1 idle", "12.3 %"}};
  return summary;
}

train::Summary without_evaluation() {
  train::Summary summary = good_summary();
  summary.evaluated = false;
  return summary;
}

class ManualClock final : public Clock {
 public:
  double now_s() const override { return now; }
  double now = 0;
};

// A disk that is full.
class FullDisk final : public FileSystem {
 public:
  Kind kind(const std::string&) const override { return Kind::missing; }
  int64_t size(const std::string& path) const override { fail(path); }
  std::string read(const std::string& path, int64_t, int64_t) const override { fail(path); }
  void write_whole(const std::string& path, std::string_view) override { fail(path); }
  void append(const std::string& path, std::string_view) override { fail(path); }
  void make_directories(const std::string&) override {}

 private:
  [[noreturn]] static void fail(const std::string& path) {
    throw std::system_error(ENOSPC, std::generic_category(), path);
  }
};

report::RunFacts facts() {
  return {.config = "model:\n  name: lenet\n",
          .mgt_version = "0.1.0",
          .libtorch_version = "2.11.0",
          .cpu_model = "a CPU",
          .cores = 2,
          .seed = 7,
          .command = {"mgt", "train"},
          .started = 1796048100};  // 2026-11-30 14:15:00 UTC
}

std::string error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("S-71: the last line, in both languages") {
  CHECK(report::last_line(good_summary(), "en") == "test acc: 0.83, 2.4 sec/epoch on [cuda:0, cuda:1]");
  CHECK(report::last_line(good_summary(), "zh") == "测试精度：0.83，2.4秒/轮，在[cuda:0, cuda:1]");
  CHECK(report::last_line(without_evaluation(), "en") == "train loss: 0.4123, 2.4 sec/epoch on [cuda:0, cuda:1]");
  CHECK(report::last_line(without_evaluation(), "zh") == "训练损失：0.4123，2.4秒/轮，在[cuda:0, cuda:1]");
}

TEST_CASE("S-70: the epoch's line has the accuracy where there was an evaluation") {
  train::EpochRecord record = third_epoch();
  CHECK(report::epoch_line(record, 10) ==
        "epoch 3/10  loss 0.7202  test acc 0.7173 (7173/10000)  13.9 s  4316 images/s");
  record.evaluated = false;
  CHECK(report::epoch_line(record, 10) == "epoch 3/10  loss 0.7202  13.9 s  4316 images/s");
}

TEST_CASE("the header says what runs where") {
  train::RunInfo info = info_of_two_devices();
  CHECK(report::header_line(info) ==
        "scratch: lenet (129,068 parameters) on fashion_mnist (60,000 training + 10,000 test samples), batch 256, "
        "235 steps per epoch, 10 epochs on [cuda:0, cuda:1], 2 threads");
  info.world_size = 2;
  info.threads_per_rank = 1;
  info.test_samples = 0;
  CHECK(has(report::header_line(info), "(60,000 training samples)"));
  CHECK(has(report::header_line(info), ", 2 ranks of 1 thread"));
}

TEST_CASE("the line of an evaluation gives the counts") {
  CHECK(report::evaluation_line(good_summary()) == "test acc: 0.8312 (8312/10000) on [cuda:0, cuda:1]");
}

TEST_CASE("S-75: the sparkline goes from the lowest to the highest value") {
  CHECK(report::sparkline({}) == "");
  CHECK(report::sparkline({0.5}) == "▁");
  CHECK(report::sparkline({0.5, 0.5}) == "▁▁");
  CHECK(report::sparkline({0, 1, 2, 3, 4, 5, 6, 7}) == "▁▂▃▄▅▆▇█");
  CHECK(report::sparkline({0.1, 0.55, 1}) == "▁▅█");
  CHECK(report::sparkline({0, 9, 0, 9, 0, 9}, 3) == "███");  // every second one, the last among them
}

TEST_CASE("a progress line fits the terminal") {
  const train::RunInfo info{.steps_per_epoch = 234, .epochs = 10};
  const train::StepRecord record{.epoch = 3, .step_in_epoch = 117, .loss = 0.7202};
  CHECK(report::progress_line(record, info, 44) == "epoch 3/10 [#####.....] 117/234  loss 0.7202");
  for (int64_t columns = 0; columns < 200; ++columns) {
    CHECK(static_cast<int64_t>(report::progress_line(record, info, columns).size()) <= columns);
  }
}

TEST_CASE("records are one line of JSON and one of CSV with the same values") {
  const train::StepRecord step{.epoch = 1,
                               .step = 10,
                               .step_in_epoch = 10,
                               .samples = 256,
                               .loss = 2.285679107323412,
                               .gradient_norm = 0.5,
                               .lr = 0.2};
  CHECK(
      report::json_line(step) ==
      R"({"event":"step","epoch":1,"step":10,"train_loss":2.285679107323412,"grad_norm":0.5,"lr":0.2,"samples":256})");
  CHECK(report::json_line(third_epoch()) ==
        R"({"event":"epoch","epoch":3,"step":705,"train_loss":0.7202,"lr":0.05,"train_s":13.9,"eval_s":0.5,)"
        R"("samples_per_s":4316.5,"test_correct":7173,"test_total":10000,"test_acc":0.7173})");
  CHECK(
      report::csv_header() ==
      "event,epoch,step,train_loss,grad_norm,lr,samples,train_s,eval_s,samples_per_s,test_correct,test_total,test_acc");
  CHECK(report::csv_line(step) == "step,1,10,2.285679107323412,0.5,0.2,256,,,,,,");
  CHECK(report::csv_line(third_epoch()) == "epoch,3,705,0.7202,,0.05,,13.9,0.5,4316.5,7173,10000,0.7173");
}

TEST_CASE("the summary has every key, and nulls where nothing was evaluated") {
  const json summary = json::parse(report::summary_json(good_summary()));
  std::set<std::string> keys;
  for (const auto& [key, value] : summary.items()) keys.insert(key);
  CHECK(keys == std::set<std::string>{"test_acc", "test_correct", "test_total", "best_test_acc", "train_loss",
                                      "sec_per_epoch", "samples_per_sec", "first_step_s", "epochs", "steps", "strategy",
                                      "devices", "world_size", "weights_sha256", "peak_bytes", "bytes_sent",
                                      "bytes_per_step", "comm_wait_s", "notes"});
  CHECK(summary["test_acc"] == 0.8312);
  CHECK(summary["devices"] == json({"cuda:0", "cuda:1"}));
  CHECK(summary["notes"] == json({{"device 1 idle", "12.3 %"}}));
  const json without = json::parse(report::summary_json(without_evaluation()));
  for (const char* const key : {"test_acc", "test_correct", "test_total", "best_test_acc"})
    CHECK(without[key].is_null());
}

TEST_CASE("a progress bar is drawn on a terminal only, at most ten times a second") {
  ManualClock clock;
  std::ostringstream terminal;
  std::ostringstream file;
  report::ProgressBar bar(
      terminal, [] { return 60; }, clock);
  report::ProgressBar none(
      file, [] { return 0; }, clock);
  for (int i = 0; i < 100; ++i) {
    clock.now = 0.01 * i;
    const train::StepRecord record{.epoch = 1, .step_in_epoch = i, .loss = 1};
    bar.show(record, {.steps_per_epoch = 100, .epochs = 1});
    none.show(record, {.steps_per_epoch = 100, .epochs = 1});
  }
  bar.erase();
  none.erase();
  CHECK(file.str().empty());
  const std::string drawn = terminal.str();
  const auto drawings = std::count(drawn.begin(), drawn.end(), '[') - std::count(drawn.begin(), drawn.end(), '\x1b');
  CHECK(drawings >= 9);
  CHECK(drawings <= 10);
  CHECK(drawn.ends_with("\r\x1b[K"));
}

namespace {

// What the console writes over a run of two epochs.
std::string told(const report::ConsoleStyle& style) {
  std::ostringstream out;
  std::ostringstream terminal;
  report::ProgressBar bar(terminal, [] { return 0; });
  report::Console console(style, out, bar);
  console.run_started(info_of_two_devices());
  for (int64_t epoch = 1; epoch <= 2; ++epoch) {
    train::EpochRecord record = third_epoch();
    record.epoch = epoch;
    record.test_correct = 5000 * epoch;
    console.epoch_done(record);
  }
  console.run_finished(good_summary());
  return out.str();
}

}  // namespace

TEST_CASE("the console tells a header, the epochs, the notes, and the result last") {
  const std::string text = told({.run_folder = "runs/lenet"});
  CHECK(std::count(text.begin(), text.end(), '\n') == 7);
  CHECK(has(text, "\ndevice 1 idle: 12.3 %\n"));
  CHECK(has(text, "\ntest acc per epoch: ▁█\n"));
  CHECK(has(text, "\nrun folder: runs/lenet\n"));
  CHECK(text.ends_with("\ntest acc: 0.83, 2.4 sec/epoch on [cuda:0, cuda:1]\n"));
}

TEST_CASE("quiet is the last line alone, and json one object") {
  CHECK(told({.quiet = true, .language = "zh"}) == "测试精度：0.83，2.4秒/轮，在[cuda:0, cuda:1]\n");
  CHECK(told({.json = true}) == report::summary_json(good_summary()) + "\n");
}

TEST_CASE("a run's folder is named after the config and the time, and is a new one") {
  const TemporaryFolder folder;
  const std::string first = report::new_run_folder(real_file_system(), folder.file("runs"), "lenet", 1796048100);
  CHECK(std::regex_match(first, std::regex(R"(.*/runs/lenet-20261[12]\d\d-\d{6})")));
  CHECK_FALSE(folder.has("runs"));
  std::filesystem::create_directories(first);
  CHECK(report::new_run_folder(real_file_system(), folder.file("runs"), "lenet", 1796048100) == first + "-2");
  std::filesystem::create_directories(first + "-2");
  CHECK(report::new_run_folder(real_file_system(), folder.file("runs"), "lenet", 1796048100) == first + "-3");
}

TEST_CASE("a run's folder holds the whole story of the run") {
  const TemporaryFolder folder;
  report::RunFolder run(real_file_system(), folder.file("run"), facts(), 10);
  CHECK_FALSE(folder.has("run"));  // a run that does not start leaves nothing
  run.run_started(info_of_two_devices());
  for (int64_t step = 1; step <= 25; ++step) run.step_done({.epoch = 1, .step = step, .samples = 256, .loss = 1});
  run.epoch_done(third_epoch());
  run.run_finished(good_summary());

  CHECK(folder.content("run/config.yaml") == facts().config);
  const json about = json::parse(folder.content("run/run.json"));
  CHECK(about["mgt"] == "0.1.0");
  CHECK(about["libtorch"] == "2.11.0");
  CHECK(about["started"] == "2026-11-30T14:15:00Z");
  CHECK(about["command"] == json({"mgt", "train"}));
  CHECK(about["hardware"] == json({{"cpu", "a CPU"}, {"cores", 2}, {"devices", {"cuda:0", "cuda:1"}}}));
  CHECK(about["seed"] == 7);
  CHECK(about["config_sha256"] == sha256_hex(facts().config));
  const std::string lines = folder.content("run/metrics.jsonl");
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 3);  // steps 10 and 20, and the epoch
  const std::string table = folder.content("run/metrics.csv");
  CHECK(table.starts_with(report::csv_header() + "\n"));
  CHECK(std::count(table.begin(), table.end(), '\n') == 4);
  CHECK(folder.content("run/summary.json") == report::summary_json(good_summary()) + "\n");
  CHECK(folder.has("run/log.txt"));
}

TEST_CASE("a folder that holds a run is not written over") {
  const TemporaryFolder folder;
  report::RunFolder(real_file_system(), folder.file("run"), facts(), 0).run_started(info_of_two_devices());
  report::RunFolder second(real_file_system(), folder.file("run"), facts(), 0);
  CHECK(has(error_of([&] { second.run_started(info_of_two_devices()); }), "holds a run already"));
}

TEST_CASE("a disk that is full is an error that names the file") {
  FullDisk disk;
  report::RunFolder run(disk, "run", facts(), 0);
  CHECK(has(error_of([&] { run.run_started(info_of_two_devices()); }), "run/run.json"));
  CHECK(has(error_of([&] { run.epoch_done(third_epoch()); }), "run/metrics.jsonl"));
  CHECK(has(error_of([&] { run.run_finished(good_summary()); }), "run/run.json"));
}

}  // namespace mgt::test
