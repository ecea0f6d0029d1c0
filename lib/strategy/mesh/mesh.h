// The strategy of one rank per device that all others of that kind are cases of: which part of the model a rank has,
// what the ranks with the same part share out between them (sharing.h), and in what order it takes the pieces of a
// batch. Belongs to its rank's thread.
#pragma once

#include "strategy/entry.h"
#include "strategy/mesh/sharing.h"

#include <memory>

namespace mgt::strategy {

std::unique_ptr<Strategy> make_mesh(const Context& context, const Sharing& sharing);

// Options that every entry of the mesh has.
config::Option bucket_option();
int64_t bucket_bytes(const config::Config& config);

}  // namespace mgt::strategy
