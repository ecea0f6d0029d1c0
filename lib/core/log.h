// The logger: the only global, and the only way for lib/ to speak besides report/. No torch, no fmt in this header.
// Messages go to stderr, one line each, and to the run's log.txt once it is known; those before are kept for it. Any
// thread may log.
#pragma once

#include <string>

namespace mgt::log {

void set_level(const std::string& level);   // the least important that stderr shows: "debug", "info" or "warning"
void log_to_file(const std::string& path);  // appends, and begins with what was logged before; replaces an earlier file
void set_prefix(const std::string& prefix);  // such as "rank 1: "; process-wide

void info(const std::string& message);
void warning(const std::string& message);
void to_file(const std::string& message);  // to log.txt alone: what stderr says elsewhere

}  // namespace mgt::log
