// Puts the state of a run together that its ranks have in pieces: what a checkpoint, a hash or another strategy needs.
// Works on StateSlices alone, so it knows no strategy. Every rank calls it; the result is rank 0's.
#pragma once

#include "comm/communicator.h"
#include "model/state.h"

#include <vector>

namespace mgt::checkpoint {

// Each logical tensor once, whole, as rank 0's; on other ranks nothing. Every element must have a primary owner.
// `device`: where this rank's communicator takes tensors from. Views of whole slices are not copied.
std::vector<model::StateSlice> gather(comm::Communicator& communicator, const std::vector<model::StateSlice>& state,
                                      at::Device device);

// Of parameters and buffers alone.
std::vector<model::StateSlice> gather_weights(comm::Communicator& communicator,
                                              const std::vector<model::StateSlice>& state, at::Device device);

// Fills every slice of `state`, of whatever strategy and rank, from whole tensors of the same names and kinds.
// CheckpointError names a tensor that is missing.
void scatter(const std::vector<model::StateSlice>& whole, std::vector<model::StateSlice>& state);

}  // namespace mgt::checkpoint
