// An error seeded into one rank, as functions at the seams where a rank meets its peers and its data; what is empty is
// left as it is. Only `verify --inject` makes any: no config can.
#pragma once

#include "comm/communicator.h"
#include "data/sampler.h"
#include "strategy/entry.h"

#include <functional>
#include <memory>

namespace mgt::verify {

struct Fault {
  using AtReplica = std::function<void(int64_t replica, const strategy::Probe::Parameters&)>;
  AtReplica gradients_computed;
  AtReplica gradients_ready;
  AtReplica updated;
  std::function<data::Order(data::Order)> order;
  std::function<Range(Range right, int64_t rows)> shard;
  std::function<strategy::EvalCounts(strategy::EvalCounts right)> counts;
  std::function<void(std::vector<model::StateSlice>& state)> state;  // changes what this rank says that it has
  std::function<double(double right, int64_t step)> lr;              // of a step, from 0
  std::function<void(at::Tensor& part)> before_reduce;               // changes what this rank gives to an all-reduce
  std::function<void(at::Tensor& parts)> before_scatter;  // ... and to a reduce-scatter: the parts of all ranks
  std::function<void(at::Tensor& message)> received;      // changes what came from another rank
  // Changes what an all-reduce brings; `own` is what this rank gave.
  std::function<void(at::Tensor& sum, const at::Tensor& own)> after_reduce;
  std::function<int(const comm::Operation&)> times;  // how often a collective happens: 0 it is lost, 2 it is done twice
};

// The strategy of `entry` with the fault around it and around its communicator.
std::unique_ptr<strategy::Strategy> make_faulty(const strategy::Entry& entry, const strategy::Context& context,
                                                const Fault& fault);

}  // namespace mgt::verify
