// The strategy of one rank per device that all others of that kind are cases of: which part of the model a rank has
// (axes.h), what the ranks with the same part share out between them (sharing.h), and in what order it takes the pieces
// of a batch (schedule.h). Belongs to its rank's thread.
#pragma once

#include "strategy/entry.h"
#include "strategy/mesh/schedule.h"
#include "strategy/mesh/sharing.h"

#include <memory>
#include <vector>

namespace mgt::strategy {

struct MeshPlan {
  Sharing sharing = {};
  Pipeline pipeline = {};
  int64_t slices = 1;           // of each layer (tensor parallel)
  std::vector<Range> cut = {};  // blocks of each part, stages x chunks; empty: balanced by multiply-adds
};

std::unique_ptr<Strategy> make_mesh(const Context& context, const MeshPlan& plan);

// Options that several entries of the mesh have.
config::Option bucket_option();
int64_t bucket_bytes(const config::Config& config);

}  // namespace mgt::strategy
