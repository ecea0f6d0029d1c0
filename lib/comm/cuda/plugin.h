// The border between the program and its CUDA plug-in, a library that device.cpp opens when a GPU is asked for.
// The plug-in is compiled against mgt's headers and links none of mgt's code, so nothing of it exists twice in the
// process: what the plug-in needs is handed over here. Errors cross as exceptions of core/error.h. The entry point is
// called once; the services that it returns live as long as the process.
#pragma once

#include "comm/c10d.h"
#include "comm/device.h"

#include <exception>
#include <memory>
#include <string>

namespace mgt::comm {

struct ProgramFunctions {
  std::unique_ptr<Communicator> (*make_c10d)(C10dGroup group);
  std::string (*first_line)(const std::exception& error);
};

// ConfigError when the plug-in was built with other versions of CUDA or NCCL than LibTorch.
using PluginEntry = const DeviceServices* (*)(const ProgramFunctions& program);
inline constexpr const char* kPluginEntry = "mgt_cuda_services";

}  // namespace mgt::comm
