// What the program knows of a run before it starts, for its manifest.
#pragma once

#include "config/config.h"
#include "program.h"
#include "report/manifest.h"

#include <ctime>

namespace mgt {

report::RunFacts facts_of(const Program& program, const config::Config& config, std::time_t started);

}  // namespace mgt
