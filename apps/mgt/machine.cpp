#include "machine.h"

#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <fstream>

namespace mgt {
namespace {

// What follows the first "NAME ... :" of a file in /proc; empty where there is none.
std::string proc_field(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t colon = line.find(':');
    if (line.rfind(name, 0) != 0 || colon == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

int64_t memory_field(const std::string& name) {
  const std::string text = proc_field("/proc/meminfo", name);  // "16281840 kB"
  return text.empty() ? 0 : std::stoll(text) * 1024;
}

class Socket {
 public:
  Socket() : value_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  ~Socket() {
    if (value_ >= 0) ::close(value_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int value() const { return value_; }

 private:
  int value_;
};

}  // namespace

std::string cpu_model() {
  const std::string model = proc_field("/proc/cpuinfo", "model name");
  return model.empty() ? "unknown" : model;
}

Space memory() { return {memory_field("MemTotal"), memory_field("MemAvailable")}; }

Space disk(const std::string& folder) {
  struct statvfs status {};
  if (::statvfs(folder.c_str(), &status) != 0) return {};
  const auto block = static_cast<int64_t>(status.f_frsize);
  return {static_cast<int64_t>(status.f_blocks) * block, static_cast<int64_t>(status.f_bavail) * block};
}

int64_t file_descriptor_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<int64_t>(limit.rlim_cur);
}

bool loopback_works() {
  const Socket listener;
  const Socket caller;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const place = reinterpret_cast<sockaddr*>(&address);
  return ::bind(listener.value(), place, size) == 0 && ::listen(listener.value(), 1) == 0 &&
         ::getsockname(listener.value(), place, &size) == 0 && ::connect(caller.value(), place, size) == 0;
}

}  // namespace mgt
