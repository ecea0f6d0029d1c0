// The devices of this machine and what differs between them besides tensors. GPU services come from a plug-in library
// that is loaded only when a GPU is asked for, so that the program itself links no CUDA.
// Free functions are safe from any thread; a DeviceServices is stateless.
#pragma once

#include "comm/communicator.h"
#include "comm/rendezvous.h"

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mgt::comm {

// GPUs that this process may use (CUDA_VISIBLE_DEVICES counts), asked of the driver without loading LibTorch's CUDA.
int64_t gpu_count();

struct MemoryFigures {
  int64_t allocated_bytes = 0;
  int64_t peak_bytes = 0;  // since the process began, or since `reset_peak`
};

class DeviceServices {
 public:
  virtual ~DeviceServices() = default;
  virtual std::string description(at::Device device) const = 0;  // "NVIDIA H200, 139 GiB"
  virtual void set_current(at::Device device) const = 0;         // of the calling thread
  virtual void synchronize(at::Device device) const = 0;         // waits until all its queued work is done
  virtual MemoryFigures memory(at::Device device) const = 0;
  // Ranks over the devices' own library (NCCL). Returns when every rank is connected.
  virtual std::unique_ptr<Communicator> make_communicator(Rendezvous& rendezvous, int64_t rank, int64_t size,
                                                          at::Device device, double timeout_s) const = 0;
  // Versions of the libraries behind it: {"NCCL", "2.28.9"}.
  virtual std::vector<std::pair<std::string, std::string>> versions() const = 0;
};

// For a CPU: the process's own figures. For a GPU: loads the plug-in on first use; ConfigError with the cure when it
// was not built or does not fit the loaded libraries.
const DeviceServices& services(at::Device device);

}  // namespace mgt::comm
