// Runs a program and waits for it, with what it wrote and what time it took; for tests of the built program.
// A Process belongs to one thread; one that still runs when it goes out of scope is killed.
#pragma once

#include "test.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <map>
#include <string>
#include <vector>

extern char** environ;

namespace mgt::test {

struct Result {
  int exit = -1;  // the exit code; -1 where a signal ended it or the time was over
  std::string out;
  std::string err;
  double cpu_s = 0;  // of the program and the children it waited for; unlike wall time, load does not change it
};

class Process {
 public:
  using Clock = std::chrono::steady_clock;

  // `variables` are added to the environment, `folder` is where the program runs.
  Process(const std::vector<std::string>& arguments, const std::string& folder,
          const std::map<std::string, std::string>& variables = {}) {
    std::array<int, 2> out{};
    std::array<int, 2> err{};
    REQUIRE(::pipe2(out.data(), O_CLOEXEC) == 0);
    REQUIRE(::pipe2(err.data(), O_CLOEXEC) == 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO);
    posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
    std::vector<std::string> environment = environment_with(variables);
    const int error = ::posix_spawn(&pid_, arguments.front().c_str(), &actions, nullptr, pointers(arguments).data(),
                                    pointers(environment).data());
    posix_spawn_file_actions_destroy(&actions);
    ::close(out[1]);
    ::close(err[1]);
    out_ = out[0];
    err_ = err[0];
    REQUIRE(error == 0);
  }

  ~Process() {
    if (!reaped_) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(out_);
    ::close(err_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  int pid() const { return pid_; }
  void send(int signal) const { ::kill(pid_, signal); }
  const std::string& output() const { return result_.out; }  // so far

  // Reads until `text` stands in the standard output; false where the program ends or the time is over before.
  bool wait_for(const std::string& text, double timeout_s) {
    const Clock::time_point end = after(timeout_s);
    while (result_.out.find(text) == std::string::npos) {
      if (!read_some(end)) return false;
    }
    return true;
  }

  // Waits for the end; a program that is not done in time is killed.
  Result finish(double timeout_s = 50) {
    const Clock::time_point end = after(timeout_s);
    while (read_some(end)) {
    }
    if (Clock::now() >= end) ::kill(pid_, SIGKILL);
    int status = 0;
    rusage usage{};
    ::wait4(pid_, &status, 0, &usage);
    reaped_ = true;
    if (WIFEXITED(status)) result_.exit = WEXITSTATUS(status);
    result_.cpu_s = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
    return result_;
  }

 private:
  static std::vector<std::string> environment_with(const std::map<std::string, std::string>& variables) {
    std::vector<std::string> all;
    for (char** entry = environ; *entry != nullptr; ++entry) all.emplace_back(*entry);
    for (const auto& [name, value] : variables) all.push_back(name + "=" + value);
    return all;
  }

  static std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> all;
    for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
    all.push_back(nullptr);
    return all;
  }

  static double seconds_of(const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  }

  static Clock::time_point after(double seconds) {
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  // False when both ends are closed or the time is over.
  bool read_some(Clock::time_point end) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    std::array<pollfd, 2> ends = {pollfd{open_out_ ? out_ : -1, POLLIN, 0}, pollfd{open_err_ ? err_ : -1, POLLIN, 0}};
    if (left <= 0 || (!open_out_ && !open_err_) || ::poll(ends.data(), ends.size(), static_cast<int>(left)) <= 0) {
      return false;
    }
    if (ends[0].revents != 0) open_out_ = read_into(out_, result_.out);
    if (ends[1].revents != 0) open_err_ = read_into(err_, result_.err);
    return true;
  }

  static bool read_into(int descriptor, std::string& text) {
    std::array<char, 4096> buffer;
    const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
    if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
    return count > 0;
  }

  pid_t pid_ = 0;
  int out_ = -1;
  int err_ = -1;
  bool open_out_ = true;
  bool open_err_ = true;
  bool reaped_ = false;
  Result result_;
};

inline Result run(const std::vector<std::string>& arguments, const std::string& folder, double timeout_s = 50) {
  return Process(arguments, folder).finish(timeout_s);
}

}  // namespace mgt::test
