#include "comm/device.h"

#include "comm/c10d.h"
#include "comm/cuda/plugin.h"
#include "core/error.h"
#include "core/text.h"

#include <dlfcn.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

namespace mgt::comm {
namespace {

std::string library_error() {
  const char* text = dlerror();
  return text ? text : "unknown error";
}

// A field of /proc/self/status in bytes.
int64_t status_bytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.rfind(field + ":", 0) == 0) return std::stoll(line.substr(field.size() + 1)) * 1024;
  }
  return 0;
}

class CpuServices final : public DeviceServices {
 public:
  std::string description(at::Device) const override {
    return concat("CPU, ", std::thread::hardware_concurrency(), " cores");
  }
  void set_current(at::Device) const override {}
  void synchronize(at::Device) const override {}
  MemoryFigures memory(at::Device) const override { return {status_bytes("VmRSS"), status_bytes("VmHWM")}; }
  std::unique_ptr<Communicator> make_communicator(Rendezvous&, int64_t, int64_t, at::Device, double) const override {
    throw InternalError("CPU ranks talk over comm/local or comm/gloo");
  }
  std::vector<std::pair<std::string, std::string>> versions() const override { return {}; }
};

// The plug-in lies beside the program in the build tree and in ../lib when installed.
std::string plugin_path() {
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::filesystem::path near = program.parent_path() / "lib" / "libmgt_cuda.so";
  return near.string();
}

ConfigError no_plugin(const std::string& path) {
  return ConfigError(concat("devices: this mgt was built without CUDA (no ", path,
                            "): install the CUDA headers and NCCL, then build again"));
}

ConfigError not_loaded(const std::string& library) {
  return ConfigError(concat("devices: ", library, " does not load: ", library_error(),
                            "; install torch with all the packages that it names, or use cpu"));
}

// Into the global scope: LibTorch's libraries look for each other's symbols there.
void* open_library(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library) throw not_loaded(path);
  return library;
}

const DeviceServices& load_plugin() {
  const std::string path = plugin_path();
  if (!std::filesystem::exists(path)) throw no_plugin(path);
  open_library("libtorch_cuda.so");  // before what needs it, and found by the program's own search path
  const auto entry = reinterpret_cast<PluginEntry>(dlsym(open_library(path), kPluginEntry));
  require(entry != nullptr, "the CUDA plug-in has no entry point");
  return *entry({.make_c10d = make_c10d, .first_line = first_line});
}

}  // namespace

int64_t gpu_count() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!driver) return 0;
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto get_count = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
  int count = 0;
  if (!init || !get_count || init(0) != 0 || get_count(&count) != 0) return 0;
  return count;
}

const DeviceServices& services(at::Device device) {
  static const CpuServices cpu;
  if (device.is_cpu()) return cpu;
  static const DeviceServices& cuda = load_plugin();  // once; thread-safe
  return cuda;
}

}  // namespace mgt::comm
