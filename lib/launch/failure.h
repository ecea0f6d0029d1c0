// Why a rank ended before its time, and which of several failures to tell: where one rank fails, the collectives of all
// others fail too, and only the first is news. Values and pure functions, for threads and processes alike.
#pragma once

#include "core/error.h"

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mgt::launch {

struct Failure {
  int64_t rank = 0;
  ExitCode code = ExitCode::comm;
  std::string message;      // one line
  bool collective = false;  // a collective failed, perhaps only because another rank had ended
};

// An error that a rank threw. Its message begins with the rank, unless it names it already or is about a file that all
// ranks read. An error without a type becomes a CommError: the other ranks lost this one.
Failure failure_of(int64_t rank, const std::exception_ptr& error);

// What brought about the others. `failures` holds at least one, in the order they came.
const Failure& cause_of(const std::vector<Failure>& failures);

[[noreturn]] void throw_failure(const Failure& failure);

// A failure on its way from a rank's process to the launcher: one short line, written at once.
std::string to_line(const Failure& failure);
std::optional<Failure> from_line(int64_t rank, std::string_view line);  // nothing: not such a line, or cut short

}  // namespace mgt::launch
