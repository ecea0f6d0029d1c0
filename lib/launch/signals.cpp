#include "launch/signals.h"

#include "core/error.h"

#include <unistd.h>

namespace mgt::launch {
namespace {

constexpr unsigned kPatience_s = 3;  // of the 5 s within which a run must have ended

// A signal handler gets nothing but its number, so what it needs is global: and nothing else is.
std::atomic<int> first_signal{0};
std::atomic<int> signals_received{0};
std::atomic<StopSignals::Role> role_now{StopSignals::Role::alone};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<StopSignals::Role>::is_always_lock_free,
              "a handler may not wait for a lock");

// What runs here may have been interrupted anywhere, so no destructor and no output: the process ends.
[[noreturn]] void end_now() { _exit(128 + first_signal); }

void on_stop(int number) {
  const StopSignals::Role role = role_now;
  int none = 0;
  const bool first = first_signal.compare_exchange_strong(none, number);
  ++signals_received;
  if (!first && role == StopSignals::Role::alone) end_now();
  if (first && role != StopSignals::Role::supervisor) alarm(kPatience_s);
}

void on_alarm(int) { end_now(); }

struct sigaction install(int number, void (*handler)(int)) {
  struct sigaction action {
  }, before{};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  require(sigaction(number, &action, &before) == 0, "signal handlers can be installed");
  return before;
}

}  // namespace

StopSignals::StopSignals(Role role) {
  first_signal = 0;
  signals_received = 0;
  role_now = role;
  interrupt_ = install(SIGINT, on_stop);
  terminate_ = install(SIGTERM, on_stop);
  alarm_ = install(SIGALRM, on_alarm);
}

StopSignals::~StopSignals() {
  sigaction(SIGINT, &interrupt_, nullptr);
  sigaction(SIGTERM, &terminate_, nullptr);
  if (first_signal == 0) sigaction(SIGALRM, &alarm_, nullptr);  // else the time for leaving the program is running
}

const std::atomic<int>& StopSignals::signal() { return first_signal; }

int StopSignals::count() { return signals_received; }

}  // namespace mgt::launch
