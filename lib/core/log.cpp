#include "core/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace mgt::log {
namespace {

using Severity = spdlog::level::level_enum;

constexpr std::size_t kMostEarly = 1000;

struct State {
  spdlog::logger console{"console", std::make_shared<spdlog::sinks::stderr_sink_mt>()};
  std::shared_ptr<spdlog::logger> file;                 // null until there is a file
  std::vector<std::pair<Severity, std::string>> early;  // for the file, from before
  std::string prefix;
  std::mutex mutex;

  State() { console.set_pattern("%v"); }

  void to_file(Severity level, const std::string& line) {
    if (file)
      file->log(level, "{}", line);
    else if (early.size() < kMostEarly)
      early.emplace_back(level, line);
  }
};

State& state() {
  static State instance;
  return instance;
}

void write(Severity severity, const std::string& word, const std::string& message) {
  State& log = state();
  const std::lock_guard lock(log.mutex);
  const std::string line = word + log.prefix + message;
  log.console.log(severity, "{}", line);
  log.to_file(severity, log.prefix + message);
}

}  // namespace

void set_level(const std::string& level) { state().console.set_level(spdlog::level::from_str(level)); }

void log_to_file(const std::string& path) {
  State& log = state();
  const std::lock_guard lock(log.mutex);
  log.file = std::make_shared<spdlog::logger>("file", std::make_shared<spdlog::sinks::basic_file_sink_mt>(path));
  log.file->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
  log.file->flush_on(spdlog::level::info);
  for (const auto& [severity, line] : std::exchange(log.early, {})) log.to_file(severity, line);
}

void set_prefix(const std::string& prefix) {
  State& log = state();
  const std::lock_guard lock(log.mutex);
  log.prefix = prefix;
}

void info(const std::string& message) { write(spdlog::level::info, "", message); }
void warning(const std::string& message) { write(spdlog::level::warn, "warning: ", message); }

void to_file(const std::string& message) {
  State& log = state();
  const std::lock_guard lock(log.mutex);
  log.to_file(spdlog::level::info, message);
}

}  // namespace mgt::log
