// Trains a few steps under any strategy, in threads where it needs ranks, and keeps what happened: for tests that
// compare strategies with each other and with golden numbers.
#pragma once

#include "comm/collectives/algorithm.h"
#include "comm/communicator.h"
#include "config/config.h"
#include "data/sampler.h"
#include "launch/batch_plan.h"
#include "model/state.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "strategy/entry.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace mgt::test {

// A config from YAML text, under the schema of all entries.
config::Config config_of(const std::string& yaml);

enum class Backend { local, gloo };

struct Training {
  std::string yaml;  // model, strategy, optimizer, batch_size, precision, seed
  int64_t devices = 1;
  int64_t steps = 12;
  data::Splits data;
  std::optional<data::Order> order;                           // absent: file order
  std::string init;                                           // safetensors file; empty: the seed's initial weights
  std::function<void(std::vector<model::StateSlice>&)> fill;  // another way to set the first weights
  Backend backend = Backend::local;
  int64_t first_step = 0;  // where in the order of batches the run begins
};

struct Outcome {
  std::vector<double> losses;      // by step
  std::vector<double> grad_norms;  // by step
  std::vector<int64_t> samples;    // by step
  strategy::EvalCounts test;       // when there is a test set
  // Final parameters and buffers by name: one map for each replica (of each rank).
  std::vector<std::map<std::string, at::Tensor>> replicas;
  std::vector<model::StateSlice> state;  // all of it put together, after the last step
  std::vector<strategy::Note> notes;     // of rank 0
  std::vector<int64_t> bytes_sent;       // by rank, of the ledger
};

Outcome train(const Training& training);

// One rank of a training, step by step, for tests that look on closely: what `train` runs on each of its ranks, and
// they all call the same in the same order. Belongs to the rank's thread.
class TrainingRank {
 public:
  TrainingRank(const Training& training, const config::Config& config, comm::Communicator& communicator);
  void begin();  // makes the strategy and its first weights
  strategy::StepResult step(int64_t number, strategy::Probe* probe = nullptr);
  strategy::EvalCounts evaluate(int64_t rows);  // of the first rows of the test set
  int64_t samples(int64_t step);                // of its global batch
  strategy::Strategy& strategy() { return *strategy_; }
  const model::Model& model() const { return model_; }

 private:
  std::vector<int64_t> indices(int64_t step);

  const Training& training_;
  const config::Config& config_;
  comm::Communicator& communicator_;
  const strategy::Entry& entry_;
  model::Model model_;
  launch::BatchPlan plan_;
  at::ScalarType dtype_;
  data::Sampler sampler_;
  optim::Schedule schedule_;
  std::unique_ptr<strategy::Strategy> strategy_;
};

// Runs `rank_function(communicator)` on `size` threads and rethrows the first error.
void on_ranks(int64_t size, Backend backend, double timeout_s,
              const std::function<void(comm::Communicator&)>& rank_function,
              comm::Algorithm algorithm = comm::Algorithm::automatic);

// The golden data set: 147 training and 101 test pictures.
data::Splits golden_data();

// ||a - b|| / ||b||; ||a - b|| where b is zero.
double relative_difference(const at::Tensor& a, const at::Tensor& b);

// Plain SGD for one tensor.
std::unique_ptr<optim::Optimizer> sgd_for(const at::Tensor& parameter);

// Where the parameters of all replicas of a strategy in one process begin.
std::vector<const void*> replica_addresses(const std::string& yaml, int64_t devices);

}  // namespace mgt::test
