// Where the ranks of a run find each other: memory for ranks that are threads, a file in a folder that only this user
// can enter for processes of one host. No socket is opened for it. Shared by the ranks of a process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace mgt::comm {

class Rendezvous;

std::shared_ptr<Rendezvous> rendezvous_in_memory();
std::shared_ptr<Rendezvous> rendezvous_in_file(const std::string& file, int64_t size);

}  // namespace mgt::comm
