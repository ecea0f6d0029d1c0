#include "core/error.h"

#include <csignal>

namespace mgt {

Interrupted::Interrupted(int signal_number)
    : Error(signal_number == SIGINT ? ExitCode::interrupted : ExitCode::terminated,
            signal_number == SIGINT ? "stopped by Ctrl-C" : "stopped by SIGTERM") {}

void require(bool holds, const std::string& rule) {
  if (!holds) throw InternalError("broken rule: " + rule);
}

void throw_error(ExitCode code, const std::string& message) {
  switch (code) {
    case ExitCode::config:
      throw ConfigError(message);
    case ExitCode::data:
      throw DataError(message);
    case ExitCode::checkpoint:
      throw CheckpointError(message);
    case ExitCode::comm:
      throw CommError(message);
    case ExitCode::numerics:
      throw NumericsError(message);
    case ExitCode::interrupted:
      throw Interrupted(SIGINT);
    case ExitCode::terminated:
      throw Interrupted(SIGTERM);
    default:
      throw InternalError(message);
  }
}

}  // namespace mgt
