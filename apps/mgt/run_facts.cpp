#include "run_facts.h"

#include "config/run.h"
#include "config/writer.h"
#include "core/sha256.h"
#include "launch/placement.h"
#include "launch/rank.h"
#include "machine.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace mgt {
namespace {

// "" where it cannot be read: the run itself will say so.
std::string file_sha256(const FileSystem& files, const std::string& path) {
  constexpr int64_t kPiece = 1 << 20;
  try {
    Sha256 hash;
    for (int64_t offset = 0, size = files.size(path); offset < size; offset += kPiece) {
      const std::string piece = files.read(path, offset, std::min(kPiece, size - offset));
      hash.update(piece.data(), piece.size());
    }
    return hash.hex();
  } catch (const std::system_error&) {
    return "";
  }
}

}  // namespace

report::RunFacts facts_of(const Program& program, const config::Config& config, std::time_t started) {
  std::vector<std::string> command = {"mgt"};
  command.insert(command.end(), program.arguments.begin(), program.arguments.end());
  const config::Run run = config::run_of(config);
  return {.config = config::to_yaml(launch::schema(), config, false),
          .init_sha256 = run.init ? file_sha256(program.files, *run.init) : "",
          .mgt_version = mgt_version(),
          .libtorch_version = libtorch_version(),
          .cpu_model = cpu_model(),
          .cores = launch::usable_cores(),
          .seed = run.seed,
          .command = command,
          .working_directory = std::filesystem::current_path().string(),
          .started = started};
}

}  // namespace mgt
