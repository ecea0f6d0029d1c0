#include "versions.h"

#include <torch/headeronly/version.h>

namespace mgt {

std::string mgt_version() { return MGT_VERSION; }
std::string libtorch_version() { return TORCH_VERSION; }

#ifdef __clang__
std::string compiler() { return "Clang " __clang_version__; }
#else
std::string compiler() { return "GCC " __VERSION__; }
#endif

}  // namespace mgt
