// The few things of the operating system that starting and ending a program takes, each freed when its owner goes.
// Used by the launcher's thread alone.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace mgt::launch {

class FileDescriptor {
 public:
  explicit FileDescriptor(int number = -1) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&&) = delete;
  ~FileDescriptor();
  int number() const { return number_; }  // -1: none
  void close();

 private:
  int number_;
};

// Neither end is inherited by other programs unless Start names it.
struct Pipe {
  FileDescriptor reader;  // never blocks
  FileDescriptor writer;
};
Pipe make_pipe();

// A file in memory without a name in any folder: nobody else can open it, and nobody needs to remove it.
FileDescriptor make_nameless_file();

struct Start {
  std::vector<std::string> arguments;              // without the program's name
  std::map<std::string, std::string> environment;  // on top of this process's own
  std::vector<int> inherited = {};                 // file descriptors that keep their numbers
  bool quiet = false;                              // what it writes to stdout goes to stderr
};

// This program once more, started by exec, never by a bare fork: nothing of this process's threads and locks lives on
// in it. Killed and reaped when its owner goes.
class ChildProcess {
 public:
  explicit ChildProcess(const Start& start);  // std::system_error
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  bool ended();                           // does not wait; reaps it when it has
  int status() const { return status_; }  // as of waitpid, once it has ended
  void send(int signal) const;            // nothing once it has ended

 private:
  pid_t id_ = 0;
  bool ended_ = false;
  int status_ = 0;
};

}  // namespace mgt::launch
