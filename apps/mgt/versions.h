// What this program is and what it was built from. Pure functions.
#pragma once

#include <string>

namespace mgt {

std::string mgt_version();
std::string libtorch_version();
std::string compiler();

}  // namespace mgt
