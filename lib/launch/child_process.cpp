#include "launch/child_process.h"

#include "core/error.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>

namespace mgt::launch {
namespace {

void check(int error, const std::string& what) {
  if (error != 0) throw std::system_error(error, std::generic_category(), what);
}

class FileActions {
 public:
  FileActions() { check(posix_spawn_file_actions_init(&actions_), "posix_spawn"); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;

  // A duplicate under the same number is the way to say that it stays open across exec.
  void duplicate(int from, int to) { check(posix_spawn_file_actions_adddup2(&actions_, from, to), "posix_spawn"); }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> merged;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (!added.contains(std::string(text.substr(0, text.find('='))))) merged.emplace_back(text);
  }
  for (const auto& [name, value] : added) merged.push_back(name + "=" + value);
  return merged;
}

// What exec takes: pointers into `texts`, and a null at the end.
std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

}  // namespace

FileDescriptor::~FileDescriptor() { close(); }

void FileDescriptor::close() {
  if (number_ >= 0) ::close(number_);
  number_ = -1;
}

Pipe make_pipe() {
  int ends[2];
  check(pipe2(ends, O_CLOEXEC) == 0 ? 0 : errno, "pipe");
  Pipe pipe{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
  check(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0 ? 0 : errno, "pipe");
  return pipe;
}

FileDescriptor make_nameless_file() {
  const int number = memfd_create("mgt", MFD_CLOEXEC);
  check(number >= 0 ? 0 : errno, "memfd_create");
  return FileDescriptor(number);
}

ChildProcess::ChildProcess(const Start& start) {
  FileActions actions;
  for (const int number : start.inherited) actions.duplicate(number, number);
  if (start.quiet) actions.duplicate(STDERR_FILENO, STDOUT_FILENO);
  std::vector<std::string> arguments = start.arguments;
  arguments.insert(arguments.begin(), program_invocation_name);
  std::vector<std::string> environment = merged_environment(start.environment);
  check(posix_spawn(&id_, "/proc/self/exe", actions.get(), nullptr, pointers(arguments).data(),
                    pointers(environment).data()),
        "this program cannot be started again");
}

ChildProcess::~ChildProcess() {
  if (ended_) return;
  kill(id_, SIGKILL);
  while (waitpid(id_, &status_, 0) < 0 && errno == EINTR) {
  }
}

bool ChildProcess::ended() {
  if (!ended_) ended_ = waitpid(id_, &status_, WNOHANG) == id_;
  return ended_;
}

void ChildProcess::send(int signal) const {
  if (!ended_) kill(id_, signal);
}

}  // namespace mgt::launch
