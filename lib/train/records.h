// What a run tells while it goes on and when it ends: plain values without torch, and the observer that receives them.
// `train` fills them; `report` turns them into files and lines.
#pragma once

#include "checkpoint/weights_hash.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mgt::train {

struct RunInfo {
  std::string strategy;
  std::string model;
  std::string data;
  std::vector<std::string> devices;  // one a replica: "cuda:0", "cpu"
  int64_t world_size = 1;            // processes or threads that are ranks; 1 for strategies in one process
  int64_t threads_per_rank = 1;
  int64_t parameters = 0;
  int64_t train_samples = 0;
  int64_t test_samples = 0;
  int64_t batch_size = 0;
  int64_t accumulate = 1;  // pieces that each rank takes its part of a batch in
  int64_t steps_per_epoch = 0;
  int64_t epochs = 0;
  std::optional<double> bayes_accuracy;
};

struct StepRecord {
  int64_t epoch = 0;          // from 1
  int64_t step = 0;           // optimizer steps done, over all epochs
  int64_t step_in_epoch = 0;  // from 1
  int64_t samples = 0;
  double loss = 0;           // mean over the step's samples, before the update
  double gradient_norm = 0;  // of the global gradient, before clipping
  double lr = 0;
};

struct EpochRecord {
  int64_t epoch = 0;      // from 1
  int64_t step = 0;       // optimizer steps done, over all epochs
  double train_loss = 0;  // mean over the epoch's samples
  double lr = 0;          // of the epoch's last step
  double train_s = 0;     // training alone, devices synchronised, all ranks at a barrier
  double eval_s = 0;
  double samples_per_s = 0;
  bool evaluated = false;
  int64_t test_correct = 0;
  int64_t test_total = 0;
  checkpoint::WeightsHash weights;  // on rank 0
};

struct Summary {
  RunInfo info;
  bool evaluated = false;
  int64_t test_correct = 0;
  int64_t test_total = 0;
  double best_test_acc = 0;
  double sec_per_epoch = 0;  // average training time; a run that ended within an epoch counts its part of it
  double samples_per_sec = 0;
  int64_t epochs = 0;  // begun
  int64_t steps = 0;
  double final_train_loss = 0;
  double first_step_s = 0;  // from exec to the end of the first step
  std::string weights_sha256;
  std::string data_sha256;                                 // of the training set, then the test set
  int64_t peak_bytes = 0;                                  // largest over ranks
  int64_t bytes_sent = 0;                                  // summed over ranks and devices
  int64_t train_bytes_sent = 0;                            // of them those of the training steps
  double comm_wait_s = 0;                                  // largest over ranks
  std::vector<std::pair<std::string, std::string>> notes;  // what the strategy tells about itself
};

inline double accuracy(int64_t correct, int64_t total) {
  return static_cast<double>(correct) / static_cast<double>(total);
}

// Called on the rank that reports (0), in the order of events. This one keeps silent.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void run_started(const RunInfo& /*info*/) {}
  virtual void step_done(const StepRecord& /*record*/) {}
  virtual void epoch_done(const EpochRecord& /*record*/) {}
};

}  // namespace mgt::train
