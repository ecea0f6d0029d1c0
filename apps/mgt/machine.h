// What the operating system says about this machine. Functions without state; any thread.
#pragma once

#include <cstdint>
#include <string>

namespace mgt {

std::string cpu_model();

struct Space {
  int64_t total_bytes = 0;
  int64_t free_bytes = 0;  // available to this user
};

Space memory();
Space disk(const std::string& folder);  // zeros where it cannot be asked

int64_t file_descriptor_limit();

// Whether a TCP connection on 127.0.0.1 comes about: processes that are ranks talk there.
bool loopback_works();

}  // namespace mgt
