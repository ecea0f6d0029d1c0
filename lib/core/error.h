// Typed errors: the whole vocabulary of how mgt can fail, one type per exit code.
// Library code throws one of these, only `main` catches. Each carries one line worded for the one who must act:
// what happened, where (file:line, dotted key, rank, step), and what to do. Values; safe to throw on any thread or
// rank.
#pragma once

#include <stdexcept>
#include <string>

namespace mgt {

enum class ExitCode : int {
  done = 0,
  config = 2,      // usage or config file
  data = 3,        // data set missing or damaged
  checkpoint = 4,  // weights missing, damaged or of another model
  comm = 5,        // a rank died or stalled, a collective failed
  numerics = 6,    // NaN, Inf, ranks diverged
  internal = 70,   // a bug of ours
  interrupted = 130,
  terminated = 143,
};

class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

// One type per row of the exit-code table, so that a caller can catch what it can handle.
template <ExitCode Code>
class TypedError : public Error {
 public:
  explicit TypedError(const std::string& message) : Error(Code, message) {}
};

using ConfigError = TypedError<ExitCode::config>;
using DataError = TypedError<ExitCode::data>;
using CheckpointError = TypedError<ExitCode::checkpoint>;
using CommError = TypedError<ExitCode::comm>;
using NumericsError = TypedError<ExitCode::numerics>;
using InternalError = TypedError<ExitCode::internal>;

// Stopped by SIGINT (130) or SIGTERM (143).
class Interrupted : public Error {
 public:
  explicit Interrupted(int signal_number);
};

// Throws InternalError when a rule that the program itself must keep is broken. Never for user input.
void require(bool holds, const std::string& rule);

// The error that `code` stands for, as its type: how an error that crossed a process boundary is thrown again.
[[noreturn]] void throw_error(ExitCode code, const std::string& message);

}  // namespace mgt
