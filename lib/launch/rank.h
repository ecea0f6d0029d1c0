// One rank of a run, from its config to its summary: data, model, devices, communicator, strategy, loop. The same
// function runs in a process of its own, in a thread beside other ranks, or alone. No torch in this header.
#pragma once

#include "comm/rendezvous.h"
#include "config/config.h"
#include "config/run.h"
#include "core/file_system.h"
#include "data/sampler.h"
#include "launch/batch_plan.h"
#include "train/records.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace mgt::comm {
class Hub;
}
namespace mgt::data {
struct Splits;
}
namespace mgt::model {
struct StateSlice;
}
namespace mgt::strategy {
class Strategy;
class Probe;
struct Context;
struct Entry;
}  // namespace mgt::strategy

namespace mgt::launch {

// Where the replicas of a run live, decided once by the launcher.
struct Placement {
  std::vector<std::string> devices;  // one a replica: "cuda:0", "cpu"
  int64_t world_size = 1;            // ranks; 1 for strategies in one process, else one per device
  int64_t threads_per_rank = 1;      // intra-op threads
  std::string backend;               // of the communicator: local, gloo, nccl
  BatchPlan batch = {};
};

// Where every config, device and strategy meet: reads `devices`, looks at the machine, says in one line when CPUs stand
// in for GPUs (not again in the processes of the ranks). ConfigError: devices_strict and a device that is not there, a
// contradiction with the strategy.
Placement place(const config::Config& config);

// What `verify` puts between the parts of a rank, to look on and to seed faults; a normal run has none.
class Interposer {
 public:
  virtual ~Interposer() = default;
  virtual data::Order order(data::Order made) = 0;
  virtual std::unique_ptr<strategy::Strategy> make(const strategy::Entry& entry, const strategy::Context& context) = 0;
  virtual strategy::Probe* probe() = 0;
  virtual void saved(const std::vector<model::StateSlice>& weights) = 0;  // on rank 0, whole tensors, in the end
};

// The config with the `batch_size` that follows from micro_batch, accumulate and the devices, where it is left to them.
config::Config with_batch_size(const config::Config& config);

// All that can be said of a config without its data: ConfigError, or warnings.
std::vector<std::string> check(const config::Config& config);

struct RankContext {
  int64_t rank = 0;
  std::shared_ptr<const data::Splits> data = {};      // read-only: one for all ranks of a process
  std::shared_ptr<comm::Hub> hub = {};                // backend local
  std::shared_ptr<comm::Rendezvous> rendezvous = {};  // gloo, nccl
  const std::atomic<int>* stop_signal = nullptr;
  // Called while an error is handled, before anything of the rank is torn down: closing a communicator whose peers are
  // stuck may take as long as its timeout.
  std::function<void()> on_failure = {};
  Interposer* interposer = nullptr;
};

// The data set of the config. DataError.
std::shared_ptr<const data::Splits> load_data(const config::Config& config, const FileSystem& files);

// Trains as the config says. `weights_path`: where rank 0 leaves the trained weights; empty: nowhere. The observer
// hears of `run_started` when everything is built and checked, so that nothing is written by a run that did not start.
train::Summary train_rank(const config::Config& config, const Placement& placement, const RankContext& context,
                          FileSystem& files, const std::string& weights_path, train::Observer& observer);

// Evaluates the weights of `init` on the test set, in the same placement.
train::Summary evaluate_rank(const config::Config& config, const Placement& placement, const RankContext& context,
                             FileSystem& files);

// The whole schema: top level, entries, comm, log.
config::Schema schema();

}  // namespace mgt::launch
