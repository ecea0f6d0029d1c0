#include "core/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <mutex>

namespace mgt::log {
namespace {

struct State {
  std::shared_ptr<spdlog::logger> logger;
  std::string prefix;
  std::mutex mutex;

  State() : logger(std::make_shared<spdlog::logger>("mgt", std::make_shared<spdlog::sinks::stderr_sink_mt>())) {
    logger->sinks().front()->set_pattern("%v");
    logger->set_level(spdlog::level::info);
  }
};

State& state() {
  static State instance;
  return instance;
}

void write(spdlog::level::level_enum level, const std::string& word, const std::string& message) {
  State& log = state();
  const std::lock_guard lock(log.mutex);
  log.logger->log(level, "{}{}{}", word, log.prefix, message);
}

}  // namespace

void set_level(Level level) {
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                                   spdlog::level::off};
  state().logger->set_level(kLevels[static_cast<int>(level)]);
}

void log_to_file(const std::string& path) {
  State& log = state();
  const std::lock_guard lock(log.mutex);
  auto file = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
  file->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
  log.logger->sinks().resize(1);
  log.logger->sinks().push_back(std::move(file));
  log.logger->flush_on(spdlog::level::info);
}

void set_prefix(const std::string& prefix) {
  State& log = state();
  const std::lock_guard lock(log.mutex);
  log.prefix = prefix;
}

void debug(const std::string& message) { write(spdlog::level::debug, "", message); }
void info(const std::string& message) { write(spdlog::level::info, "", message); }
void warning(const std::string& message) { write(spdlog::level::warn, "warning: ", message); }

}  // namespace mgt::log
