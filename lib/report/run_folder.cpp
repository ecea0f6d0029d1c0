#include "report/run_folder.h"

#include "core/error.h"
#include "core/log.h"
#include "core/sha256.h"
#include "core/text.h"
#include "report/record_text.h"

#include <nlohmann/json.hpp>

#include <iomanip>
#include <sstream>
#include <system_error>
#include <utility>

namespace mgt::report {
namespace {

constexpr const char* kRunFile = "run.json";  // its presence says that the folder holds a run

ConfigError folder_taken(const std::string& path) {
  return ConfigError(concat("--run-dir: ", path, " holds a run already; name another folder or remove it"));
}

// Runs `write`; what the file system refuses becomes the error of whoever chose the folder.
template <typename Write>
void guarded(const Write& write) {
  try {
    write();
  } catch (const std::system_error& error) {
    throw ConfigError(concat("the run's folder cannot be written: ", error.what(),
                             "; make room there, or name another with --run-dir"));
  }
}

std::string time_text(const std::tm& time, const char* format) {
  std::ostringstream out;
  out << std::put_time(&time, format);
  return out.str();
}

std::string local_stamp(std::time_t time) {
  std::tm parts{};
  localtime_r(&time, &parts);
  return time_text(parts, "%Y%m%d-%H%M%S");
}

std::string utc_time(std::time_t time) {
  std::tm parts{};
  gmtime_r(&time, &parts);
  return time_text(parts, "%Y-%m-%dT%H:%M:%SZ");
}

std::string run_json(const RunFacts& facts, const train::RunInfo& info) {
  nlohmann::ordered_json json = {
      {"mgt", facts.mgt_version},
      {"libtorch", facts.libtorch_version},
      {"started", utc_time(facts.started)},
      {"command", facts.command},
      {"hardware", {{"cpu", facts.cpu_model}, {"cores", facts.cores}, {"devices", info.devices}}},
      {"world_size", info.world_size},
      {"threads_per_rank", info.threads_per_rank},
      {"seed", facts.seed},
      {"config_sha256", sha256_hex(facts.config)},
      {"strategy", info.strategy},
      {"model", info.model},
      {"parameters", info.parameters},
      {"data", info.data},
      {"train_samples", info.train_samples},
      {"test_samples", info.test_samples},
      {"batch_size", info.batch_size},
      {"steps_per_epoch", info.steps_per_epoch},
      {"epochs", info.epochs},
  };
  if (info.bayes_accuracy) json["bayes_accuracy"] = *info.bayes_accuracy;
  return json.dump(2) + "\n";
}

}  // namespace

std::string new_run_folder(const FileSystem& files, const std::string& parent, const std::string& config_name,
                           std::time_t now) {
  const std::string first = concat(parent, "/", config_name, "-", local_stamp(now));
  std::string path = first;
  for (int number = 2; files.kind(path) != FileSystem::Kind::missing; ++number) path = concat(first, "-", number);
  return path;
}

RunFolder::RunFolder(FileSystem& files, std::string path, RunFacts facts, int64_t every_steps)
    : files_(files), path_(std::move(path)), facts_(std::move(facts)), every_steps_(every_steps) {}

void RunFolder::run_started(const train::RunInfo& info) {
  if (files_.kind(file(kRunFile)) != FileSystem::Kind::missing) throw folder_taken(path_);
  guarded([&] {
    files_.make_directories(path_);
    files_.write_whole(file(kRunFile), run_json(facts_, info));
    files_.write_whole(file("config.yaml"), facts_.config);
    files_.append(file("metrics.csv"), csv_header() + "\n");
    files_.append(file("log.txt"), "");
  });
  log::log_to_file(file("log.txt"));
}

void RunFolder::step_done(const train::StepRecord& record) {
  if (every_steps_ > 0 && record.step % every_steps_ == 0) add_record(record);
}

void RunFolder::epoch_done(const train::EpochRecord& record) { add_record(record); }

template <typename Record>
void RunFolder::add_record(const Record& record) {
  guarded([&] {
    files_.append(file("metrics.jsonl"), json_line(record) + "\n");
    files_.append(file("metrics.csv"), csv_line(record) + "\n");
  });
}

void RunFolder::run_finished(const train::Summary& summary) {
  guarded([&] { files_.write_whole(file("summary.json"), summary_json(summary) + "\n"); });
}

}  // namespace mgt::report
