// Starts the ranks of a run and ends them together. One rank runs in this process; several are threads, or processes
// started by exec of this program (never by a bare fork). The first failure of a rank ends all: one line names the rank
// and its message. Nothing outlives the run: no process, no file of the rendezvous.
#pragma once

#include "config/config.h"
#include "core/file_system.h"
#include "launch/rank.h"
#include "train/records.h"

#include <functional>
#include <string>
#include <vector>

namespace mgt::launch {

struct Job {
  const config::Config& config;
  Placement placement;
  std::vector<std::string> arguments;  // of this program, without its name, to start the ranks with
  std::string run_folder;              // rank 0 leaves weights.safetensors there; "" for none
  // Makes the observer of the rank that reports; it is called in the process of rank 0, before data is read. Not called
  // where `evaluate_only`.
  std::function<std::unique_ptr<train::Observer>()> make_observer;
  // Called on rank 0 with the finished summary.
  std::function<void(const train::Summary&)> finished;
  bool evaluate_only = false;
};

// Runs to the end or throws the error of the rank that failed first (its own type where it has one, CommError with exit
// 5 for a rank that died). Interrupted when a signal ended the run.
void run(const Job& job, FileSystem& files);

// True in a process that `run` started as a rank: it must call `run` too, which does that rank's work. Where the rank
// fails, `run` tells the launcher and ends the process without a word of its own.
bool is_rank_process();

}  // namespace mgt::launch
