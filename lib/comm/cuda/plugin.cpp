#include "comm/cuda/plugin.h"

#include "comm/store.h"
#include "core/error.h"
#include "core/text.h"

#include <ATen/Context.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/util/env.h>
#include <torch/csrc/cuda/nccl.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include <chrono>

namespace mgt::comm {
namespace {

ConfigError other_version(const std::string& library, const std::string& built, const std::string& loaded,
                          const std::string& setting) {
  return ConfigError(concat("devices: mgt was built with ", library, " ", built, ", LibTorch with ", library, " ",
                            loaded, ": configure again with ", setting, " for ", loaded, ", and build"));
}

ConfigError no_usable_gpu(const std::string& reason) {
  return ConfigError(concat("devices: no GPU can be used: ", reason, "; check the driver with nvidia-smi, or use cpu"));
}

ConfigError no_such_gpu(at::Device device, int64_t count) {
  return ConfigError(concat("devices: ", device.str(), " is not there: this process sees ", count,
                            " GPUs, from cuda:0 on (CUDA_VISIBLE_DEVICES counts)"));
}

CommError not_connected(int64_t rank, int64_t size, at::Device device, const std::string& reason) {
  return CommError(concat("rank ", rank, " of ", size, " on ", device.str(), " could not connect over NCCL: ", reason,
                          "; NCCL_DEBUG=WARN tells more"));
}

// 13020 is "13.2".
std::string cuda_text(int version) { return concat(version / 1000, ".", version % 1000 / 10); }

int cuda_runtime_version() {
  int version = 0;
  cudaRuntimeGetVersion(&version);  // cannot fail; LibTorch's check of the result would ask for a driver
  return version;
}

// The layout of c10d's options for NCCL follows nccl.h, so it must be the very version. CUDA keeps its structures
// within a major version.
void check_versions() {
  const int cuda = cuda_runtime_version();
  if (cuda / 1000 != CUDART_VERSION / 1000) {
    throw other_version("CUDA", cuda_text(CUDART_VERSION), cuda_text(cuda), "CUDAToolkit_ROOT");
  }
  const std::string built = concat(NCCL_MAJOR, ".", NCCL_MINOR, ".", NCCL_PATCH);
  const uint64_t torch = torch::cuda::nccl::version();  // 16 bits each, not NCCL_VERSION_CODE
  const std::string loaded = concat(torch >> 32, ".", (torch >> 16) & 0xffff, ".", torch & 0xffff);
  if (built != loaded) throw other_version("NCCL", built, loaded, "Cuda_NCCL_INCLUDE_DIR, the folder of nccl.h,");
}

// What c10d and NCCL read when the first communicator is made. What the user has set stays.
void set_environment() {
  const auto set_default = [](const char* name, const char* value) { c10::utils::set_env(name, value, false); };
  // Waiting for a collective throws after the timeout. Else a watchdog thread would end the process, by its own clock.
  set_default("TORCH_NCCL_BLOCKING_WAIT", "1");
  // The record of past collectives is for the watchdog.
  set_default("TORCH_NCCL_TRACE_BUFFER_SIZE", "0");
  // Ranks of one host find each other on the loopback interface, where no other machine can reach them.
  set_default("NCCL_SOCKET_IFNAME", "=lo");
}

// LibTorch's CUDA side made ready, once; then the device's number.
c10::DeviceIndex ready(at::Device device, const ProgramFunctions& program) {
  try {
    at::globalContext().lazyInitDevice(at::kCUDA);
  } catch (const std::exception& error) {
    throw no_usable_gpu(program.first_line(error));
  }
  if (device.index() < 0 || device.index() >= c10::cuda::device_count()) {
    throw no_such_gpu(device, c10::cuda::device_count());
  }
  return device.index();
}

// Returns when every rank has come, so that NCCL's own connecting, which knows no timeout, finds all of them there.
void meet(c10d::Store& store, int64_t rank, int64_t size, std::chrono::milliseconds timeout) {
  std::vector<std::string> everyone;
  for (int64_t peer = 0; peer < size; ++peer) everyone.push_back(concat("rank ", peer));
  store.set(everyone[static_cast<std::size_t>(rank)], std::vector<uint8_t>{1});
  store.wait(everyone, timeout);
}

// A rank that fails may leave collectives behind that its peers will never join: then nothing must wait for them.
class NcclGroup final : public c10d::ProcessGroupNCCL {
 public:
  using ProcessGroupNCCL::ProcessGroupNCCL;
  void shutdown() override {
    if (std::uncaught_exceptions() > 0) {
      abort();
    } else {
      ProcessGroupNCCL::shutdown();
    }
  }
};

c10::intrusive_ptr<c10d::Backend> connect(Rendezvous& rendezvous, int64_t rank, int64_t size, at::Device device,
                                          std::chrono::milliseconds timeout) {
  const auto store = c10::make_intrusive<c10d::PrefixStore>("nccl", rendezvous.store());
  store->setTimeout(timeout);
  meet(*store, rank, size, timeout);
  const auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = timeout;
  auto group = c10::make_intrusive<NcclGroup>(store, static_cast<int>(rank), static_cast<int>(size), options);
  group->setBoundDeviceId(device);
  group->eagerConnectSingleDevice(device);
  return group;
}

class CudaServices final : public DeviceServices {
 public:
  explicit CudaServices(const ProgramFunctions& program) : program_(program) {}

  std::string description(at::Device device) const override {
    const cudaDeviceProp& properties = *at::cuda::getDeviceProperties(ready(device, program_));
    return concat(properties.name, ", ", properties.totalGlobalMem >> 30, " GiB");
  }

  void set_current(at::Device device) const override { c10::cuda::set_device(ready(device, program_)); }

  void synchronize(at::Device device) const override {
    const c10::cuda::CUDAGuard guard(ready(device, program_));
    c10::cuda::device_synchronize();
  }

  MemoryFigures memory(at::Device device) const override {
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(ready(device, program_));
    const auto& allocated = stats.allocated_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
    return {.allocated_bytes = allocated.current, .peak_bytes = allocated.peak};
  }

  std::unique_ptr<Communicator> make_communicator(Rendezvous& rendezvous, int64_t rank, int64_t size, at::Device device,
                                                  double timeout_s) const override {
    set_current(device);
    try {
      const std::chrono::milliseconds timeout(static_cast<int64_t>(timeout_s * 1000));
      return program_.make_c10d(
          {.backend = connect(rendezvous, rank, size, device, timeout),
           .store = rendezvous.store(),
           .timeout_s = timeout_s,
           .connect = [this, device, timeout_s](Rendezvous& other, int64_t new_rank, int64_t new_size) {
             return make_communicator(other, new_rank, new_size, device, timeout_s);
           }});
    } catch (const std::exception& error) {
      throw not_connected(rank, size, device, program_.first_line(error));
    }
  }

  std::vector<std::pair<std::string, std::string>> versions() const override {
    return {{"CUDA", cuda_text(cuda_runtime_version())}, {"NCCL", c10d::getNcclVersion()}};
  }

 private:
  ProgramFunctions program_;
};

}  // namespace

// Exported under its plain name, for dlsym.
extern "C" const DeviceServices* mgt_cuda_services(const ProgramFunctions& program) {
  check_versions();
  set_environment();
  static const CudaServices services(program);
  return &services;
}

}  // namespace mgt::comm
