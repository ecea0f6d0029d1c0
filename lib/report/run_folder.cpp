#include "report/run_folder.h"

#include "core/error.h"
#include "core/log.h"
#include "core/text.h"
#include "report/format.h"
#include "report/record_text.h"

#include <iomanip>
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

}  // namespace

std::string new_run_folder(const FileSystem& files, const std::string& parent, const std::string& config_name,
                           std::time_t now) {
  std::tm local{};
  localtime_r(&now, &local);
  const std::string first = concat(parent, "/", config_name, "-", std::put_time(&local, "%Y%m%d-%H%M%S"));
  std::string path = first;
  for (int number = 2; files.kind(path) != FileSystem::Kind::missing; ++number) path = concat(first, "-", number);
  return path;
}

RunFolder::RunFolder(FileSystem& files, std::string path, RunFacts facts, int64_t every_steps)
    : files_(files), path_(std::move(path)), facts_(std::move(facts)), every_steps_(every_steps) {}

void RunFolder::run_started(const train::RunInfo& info) {
  if (files_.kind(file(kRunFile)) != FileSystem::Kind::missing) throw folder_taken(path_);
  info_ = info;
  guarded([&] {
    files_.make_directories(path_);
    write_manifest("");
    files_.write_whole(file("config.yaml"), facts_.config);
    files_.append(file("metrics.csv"), csv_header() + "\n");
    files_.append(file("log.txt"), "");
  });
  log::log_to_file(file("log.txt"));
  log::to_file(header_line(info));
}

void RunFolder::step_done(const train::StepRecord& record) {
  if (every_steps_ > 0 && record.step % every_steps_ == 0) add_record(record);
}

void RunFolder::epoch_done(const train::EpochRecord& record) {
  add_record(record);
  epochs_.push_back(record.weights);
  guarded([&] { write_manifest(""); });
}

template <typename Record>
void RunFolder::add_record(const Record& record) {
  guarded([&] {
    files_.append(file("metrics.jsonl"), json_line(record) + "\n");
    files_.append(file("metrics.csv"), csv_line(record) + "\n");
  });
}

void RunFolder::run_finished(const train::Summary& summary) {
  guarded([&] {
    write_manifest(summary.data_sha256);
    files_.write_whole(file("summary.json"), summary_json(summary) + "\n");
  });
  log::to_file(last_line(summary, "en"));
}

void RunFolder::write_manifest(const std::string& data_sha256) {
  files_.write_whole(file(kRunFile), manifest_text(facts_, info_, epochs_, data_sha256));
}

}  // namespace mgt::report
