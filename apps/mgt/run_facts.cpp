#include "run_facts.h"

#include "config/run.h"
#include "config/writer.h"
#include "launch/rank.h"
#include "machine.h"
#include "versions.h"

namespace mgt {

report::RunFacts facts_of(const Program& program, const config::Config& config, std::time_t started) {
  std::vector<std::string> command = {"mgt"};
  command.insert(command.end(), program.arguments.begin(), program.arguments.end());
  return {.config = config::to_yaml(launch::schema(), config, false),
          .mgt_version = mgt_version(),
          .libtorch_version = libtorch_version(),
          .cpu_model = cpu_model(),
          .cores = cores(),
          .seed = config::run_of(config).seed,
          .command = command,
          .started = started};
}

}  // namespace mgt
