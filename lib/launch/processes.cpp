#include "launch/processes.h"

#include "core/clock.h"
#include "core/error.h"
#include "core/text.h"
#include "launch/child_process.h"
#include "launch/failure.h"
#include "launch/rank_process.h"

#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <list>
#include <system_error>

namespace mgt::launch {
namespace {

constexpr double kReportTime_s = 0.5;  // after a first failure, for the others to tell theirs: the cause may be slower
constexpr double kEndTime_s = 2;       // from being asked to end to being killed
constexpr double kStopTime_s = 3;      // the same after Ctrl-C: a step may be under way
constexpr double kNever = std::numeric_limits<double>::infinity();

// A rank's process and what it said.
class RankChild {
 public:
  RankChild(int64_t rank, const RankCommand& command, int rendezvous)
      : RankChild(rank, command, rendezvous, make_pipe()) {}

  int64_t rank() const { return rank_; }
  int listening_on() const { return reports_.number(); }  // -1 once it has closed its end: it is ending
  void send(int signal) const { process_.send(signal); }

  // Reads what there is; does not wait.
  void listen() {
    std::array<char, 1024> buffer;
    ssize_t count = 0;
    while (reports_.number() >= 0 && (count = read(reports_.number(), buffer.data(), buffer.size())) > 0) {
      said_.append(buffer.data(), static_cast<std::size_t>(count));
    }
    if (reports_.number() >= 0 && count == 0) reports_.close();
  }

  bool ended() {
    if (!process_.ended()) return false;
    listen();
    return true;
  }

  // Nothing for a rank that is done as it should be.
  std::optional<Failure> failure() const {
    const int status = process_.status();
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return std::nullopt;
    if (const auto reported = from_line(rank_, said_)) return reported;
    const std::string how = WIFSIGNALED(status)
                                ? concat("died by signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)), ")")
                                : concat("ended with exit code ", WEXITSTATUS(status), " and no message");
    return Failure{.rank = rank_, .message = concat("rank ", rank_, " ", how, "; the other ranks were ended")};
  }

 private:
  RankChild(int64_t rank, const RankCommand& command, int rendezvous, Pipe pipe)
      : rank_(rank),
        reports_(std::move(pipe.reader)),
        process_(start(rank, command, rendezvous, pipe.writer.number())) {}

  static Start start(int64_t rank, const RankCommand& command, int rendezvous, int report) {
    Start start{.arguments = command.arguments,
                .environment = to_environment({.rank = rank,
                                               .world_size = command.world_size,
                                               .rendezvous = concat("/proc/self/fd/", rendezvous),
                                               .report = report,
                                               .launcher = getpid()}),
                .inherited = {rendezvous, report},
                .quiet = rank != 0};
    for (const char* variable : {"OMP_NUM_THREADS", "MKL_NUM_THREADS"}) {
      start.environment[variable] = std::to_string(command.threads_per_rank);
    }
    return start;
  }

  int64_t rank_;
  FileDescriptor reports_;
  ChildProcess process_;
  std::string said_;
};

// All ranks of a run, from the first start to the last end.
class Team {
 public:
  Team(const RankCommand& command, const StopSignals& signals) : signals_(signals) {
    for (int64_t rank = 0; rank < command.world_size; ++rank) {
      running_.emplace_back(rank, command, rendezvous_.number());
    }
  }

  void run() {
    while (!running_.empty()) {
      wait_for_news();
      collect();
      end_what_is_due();
    }
    if (!failed_) return;
    if (signals_.count() > 0) throw Interrupted(signals_.signal());
    throw_failure(told());
  }

 private:
  // A signal ends the wait as well; where it comes just before, the next look is not far.
  void wait_for_news() {
    std::vector<pollfd> reports;
    bool some_are_ending = false;
    for (const RankChild& child : running_) {
      if (child.listening_on() < 0)
        some_are_ending = true;
      else
        reports.push_back({.fd = child.listening_on(), .events = POLLIN, .revents = 0});
    }
    poll(reports.data(), reports.size(), some_are_ending ? 1 : 100);
  }

  void collect() {
    for (auto child = running_.begin(); child != running_.end();) {
      child->listen();
      if (!child->ended()) {
        ++child;
        continue;
      }
      if (const auto failure = child->failure()) add(*failure);
      child = running_.erase(child);
    }
  }

  void add(const Failure& failure) {
    failed_ = true;
    if (asked_) return;  // it failed because it was told to end
    if (failures_.empty()) ask_at_s_ = now_s() + kReportTime_s;
    failures_.push_back(failure);
  }

  void end_what_is_due() {
    if (!asked_ && signals_.count() > 0) ask_to_end(signals_.signal(), kStopTime_s);
    if (!asked_ && now_s() >= ask_at_s_) ask_to_end(SIGTERM, kEndTime_s);
    if (signals_.count() > 1) kill_at_s_ = 0;  // impatience
    if (now_s() >= kill_at_s_) send(SIGKILL);
  }

  void ask_to_end(int signal, double patience_s) {
    asked_ = true;
    for (const RankChild& child : running_) silent_.push_back(child.rank());
    kill_at_s_ = now_s() + patience_s;
    send(signal);
  }

  void send(int signal) {
    for (const RankChild& child : running_) child.send(signal);
  }

  // A collective that failed while a rank gave no sign of life: that rank is the one to look at.
  Failure told() const {
    Failure cause = cause_of(failures_);
    if (cause.collective && !silent_.empty()) {
      cause.message += concat("; rank ", join(silent_), " did not answer and was ended");
    }
    return cause;
  }

  static double now_s() { return real_clock().now_s(); }

  const StopSignals& signals_;
  FileDescriptor rendezvous_ = make_nameless_file();  // of the ranks alone, and it goes with the last of them
  std::list<RankChild> running_;
  std::vector<Failure> failures_;  // of ranks that were not yet asked to end, in the order they came
  std::vector<int64_t> silent_;    // still running when they were asked to end
  bool failed_ = false;
  bool asked_ = false;
  double ask_at_s_ = kNever;
  double kill_at_s_ = kNever;
};

}  // namespace

void run_processes(const RankCommand& command, const StopSignals& signals) {
  try {
    Team(command, signals).run();
  } catch (const std::system_error& error) {
    throw CommError(concat("the ranks could not be started: ", error.what()));
  }
}

}  // namespace mgt::launch
