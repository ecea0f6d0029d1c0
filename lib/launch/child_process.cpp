#include "launch/child_process.h"

#include "core/error.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
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

std::vector<std::string> folders_for_temporary_files() {
  std::vector<std::string> folders;
  for (const char* variable : {"XDG_RUNTIME_DIR", "TMPDIR"}) {
    const char* folder = getenv(variable);
    if (folder != nullptr && *folder != '\0') folders.emplace_back(folder);
  }
  folders.emplace_back("/tmp");
  return folders;
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

ChildProcess::ChildProcess(const Start& start) {
  FileActions actions;
  if (start.inherited >= 0) actions.duplicate(start.inherited, start.inherited);
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

PrivateFolder::PrivateFolder() {
  for (const std::string& folder : folders_for_temporary_files()) {
    std::string pattern = folder + "/mgt-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) continue;
    path_ = pattern;
    return;
  }
  throw std::system_error(errno, std::generic_category(), "no folder for temporary files: set TMPDIR");
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;  // nothing more can be done about it
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace mgt::launch
