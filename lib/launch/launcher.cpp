#include "launch/launcher.h"

#include "comm/local/local.h"
#include "core/error.h"
#include "core/log.h"
#include "core/text.h"
#include "launch/processes.h"
#include "launch/rank_process.h"
#include "launch/signals.h"
#include "launch/threads.h"

namespace mgt::launch {
namespace {

// What the ranks of this process do, and the one observer among them.
class Work {
 public:
  Work(const Job& job, FileSystem& files, bool has_rank_0) : job_(job), files_(files) {
    if (has_rank_0 && !job.evaluate_only) observer_ = job.make_observer();
  }

  void operator()(const RankContext& context) const {
    const train::Summary summary = run(context);
    if (context.rank == 0) job_.finished(summary);
  }

 private:
  train::Summary run(const RankContext& context) const {
    if (job_.evaluate_only) return evaluate_rank(job_.config, job_.placement, context, files_);
    const std::string weights = job_.run_folder.empty() ? "" : job_.run_folder + "/weights.safetensors";
    train::Observer silent;
    return train_rank(job_.config, job_.placement, context, files_, weights, context.rank == 0 ? *observer_ : silent);
  }

  const Job& job_;
  FileSystem& files_;
  std::unique_ptr<train::Observer> observer_;
};

// One rank, or all of them as threads.
void run_in_this_process(const Job& job, FileSystem& files) {
  const StopSignals signals(StopSignals::Role::alone);
  const Work work(job, files, /*has_rank_0=*/true);
  RankContext context{.data = load_data(job.config, files), .stop_signal = &signals.signal()};
  const int64_t size = job.placement.world_size;
  if (job.placement.backend == "local")
    context.hub = comm::make_hub(size, config::run_of(job.config).comm_timeout_s);
  else
    context.rendezvous = comm::rendezvous_in_memory();
  if (size == 1)
    work(context);
  else
    run_threads(context, size, [&work](const RankContext& rank) { work(rank); });
}

void run_as_rank(const RankProcess& process, const Job& job, FileSystem& files) {
  die_with_launcher(process);
  if (process.rank > 0) log::set_prefix(concat("rank ", process.rank, ": "));
  const StopSignals signals(StopSignals::Role::rank);
  const auto report = [&process] { report_and_exit(process, failure_of(process.rank, std::current_exception())); };
  try {
    require(process.world_size == job.placement.world_size, "launcher and rank place a config alike");
    const Work work(job, files, process.rank == 0);
    work({.rank = process.rank,
          .data = load_data(job.config, files),
          .rendezvous = comm::rendezvous_in_file(process.rendezvous, process.world_size),
          .stop_signal = &signals.signal(),
          .on_failure = report});
  } catch (...) {
    report();
  }
}

}  // namespace

bool is_rank_process() { return from_environment().has_value(); }

void run(const Job& job, FileSystem& files) {
  if (const auto process = from_environment()) return run_as_rank(*process, job, files);
  const bool threads = config::run_of(job.config).launch == config::Launch::threads;
  if (threads || job.placement.world_size == 1) return run_in_this_process(job, files);
  const StopSignals signals(StopSignals::Role::supervisor);
  run_processes({.arguments = job.arguments,
                 .world_size = job.placement.world_size,
                 .threads_per_rank = job.placement.threads_per_rank},
                signals);
}

}  // namespace mgt::launch
