// The seam that everything turns on: one rank's way of training a model together with its peers. Every rank calls every
// method in the same order. A strategy owns its replicas and optimizers; it belongs to its rank's thread.
#pragma once

#include "data/dataset.h"
#include "core/split.h"
#include "model/replica.h"
#include "model/state.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mgt::strategy {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
  std::optional<Range> flat = {};      // of the flattened tensor, or of the box, where this is a part of it
  std::optional<model::Box> box = {};  // of the whole tensor, where this is a slice of it
};

// Sees and may change what happens inside a step; null in a normal run. `verify` implements it. A call names a replica
// of this process and gives its parameters, or the parts of them that it updates; `grad()` is the gradient in question.
class Probe {
 public:
  using Parameters = std::vector<NamedTensor>;
  virtual ~Probe() = default;
  // Where reducing is a step of its own (scratch, data_parallel): the replica's own part of the gradient.
  virtual void gradients_computed(int64_t, const Parameters&) {}
  // After reduction, before the update: the mean gradient of the global batch that the replica will apply.
  virtual void gradients_ready(int64_t, const Parameters&) {}
  virtual void updated(int64_t, const Parameters&) {}
};

struct StepInput {
  double lr = 0;
  int64_t samples = 0;  // of the global batch of this step, over all ranks
  Probe* probe = nullptr;
};

struct StepResult {
  // Of the global batch, before the update; the same on every rank.
  double loss = 0;           // mean over the samples
  double gradient_norm = 0;  // before clipping
};

struct EvalCounts {
  int64_t correct = 0;
  int64_t total = 0;
};

// What a rank can tell about itself after a run, for the summary and the console: {"gradients of a rank", 516480,
// "bytes"}. All ranks tell the same things in the same order; what stands for them all is the largest or the mean.
struct Note {
  enum class OverRanks { largest, mean };
  std::string name;
  double value = 0;
  std::string unit;
  OverRanks over_ranks = OverRanks::largest;
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual Range shard(int64_t rows) const = 0;  // rows of each global batch that this rank loads; may be empty
  virtual StepResult step(const data::Batch& batch, const StepInput& input) = 0;
  // Counts of the whole global batch: integers, summed over ranks.
  virtual EvalCounts evaluate(const data::Batch& batch) = 0;
  virtual std::vector<model::StateSlice> state() = 0;  // all that this rank owns, as views that may be read and written
  virtual void state_loaded() {}  // call after writing through `state`: refreshes what is derived from it
  virtual std::vector<Note> notes() const { return {}; }
  // Bytes that devices of this process sent each other; what went between ranks stands in the communicator's ledger.
  virtual int64_t bytes_sent() const { return 0; }
};

}  // namespace mgt::strategy
