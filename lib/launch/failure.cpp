#include "launch/failure.h"

#include "core/text.h"

#include <algorithm>
#include <new>
#include <sstream>

namespace mgt::launch {
namespace {

constexpr std::size_t kLongestMessage = 2000;  // with its frame below PIPE_BUF, so that a pipe takes it whole

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// Errors that come from what all ranks read or compute alike.
bool same_on_every_rank(ExitCode code) { return code != ExitCode::comm && code != ExitCode::internal; }

std::string with_rank(int64_t rank, ExitCode code, const std::string& message) {
  if (same_on_every_rank(code) || message.starts_with("rank ")) return message;
  return concat("rank ", rank, ": ", message);
}

Failure untyped(int64_t rank, const std::string& what) {
  return {.rank = rank, .code = ExitCode::comm, .message = concat("rank ", rank, " failed: ", first_line(what))};
}

}  // namespace

Failure failure_of(int64_t rank, const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& typed) {
    return {.rank = rank,
            .code = typed.code(),
            .message = with_rank(rank, typed.code(), first_line(typed.what())),
            .collective = typed.code() == ExitCode::comm};
  } catch (const std::bad_alloc&) {
    return untyped(rank, "out of memory; lower batch_size, or run fewer ranks on this machine");
  } catch (const std::exception& other) {
    return untyped(rank, other.what());
  } catch (...) {
    return untyped(rank, "an error of an unknown type");
  }
}

const Failure& cause_of(const std::vector<Failure>& failures) {
  require(!failures.empty(), "a run that failed has a failure");
  const auto own = std::ranges::find(failures, false, &Failure::collective);
  return own != failures.end() ? *own : failures.front();
}

void throw_failure(const Failure& failure) { throw_error(failure.code, failure.message); }

std::string to_line(const Failure& failure) {
  return concat(static_cast<int>(failure.code), " ", failure.collective, " ",
                shortened(first_line(failure.message), kLongestMessage), "\n");
}

std::optional<Failure> from_line(int64_t rank, std::string_view line) {
  if (!line.ends_with('\n')) return std::nullopt;
  std::istringstream in{std::string(line)};
  int code = 0;
  Failure failure{.rank = rank, .message = ""};
  in >> code >> failure.collective;
  in.get();  // the space before the message
  if (!in || !std::getline(in, failure.message)) return std::nullopt;
  failure.code = static_cast<ExitCode>(code);
  return failure;
}

}  // namespace mgt::launch
