// `mgt verify --replay DIR`: trains again as an earlier run did, and compares the weights after every epoch.
#pragma once

#include "program.h"

#include <string>

namespace mgt {

// Prints that both are identical; NumericsError says where they part and what has changed since.
ExitCode replay(const Program& program, const std::string& run_folder);

}  // namespace mgt
