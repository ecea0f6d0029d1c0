// A run that is stopped or loses a rank: it ends soon, with the exit code that says so, and leaves no process.
#include "process.h"
#include "temporary_folder.h"
#include "test.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

namespace mgt::test {
namespace {

constexpr const char* kEndless = R"(model: {name: lenet, channels: [4, 6], hidden: 16}
data: {name: synthetic, train: 256, test: 16}
strategy: ddp
devices: 2
batch_size: 64
threads: 1
epochs: 1000000
optimizer: {name: sgd, lr: 0.01}
)";

// The environment of a process as it began; empty where it may not be read.
std::string environment_of(const std::filesystem::path& process) {
  std::ifstream file(process / "environ");
  return std::string(1, '\0') + std::string(std::istreambuf_iterator<char>(file), {});
}

bool is_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

// The ranks that `launcher` started and that are still there, by process id; only those of `rank` where it is given.
std::vector<int> ranks_of(int launcher, std::optional<int> rank = {}) {
  const auto set = [](const std::string& environment, const std::string& variable, int value) {
    return environment.find('\0' + variable + "=" + std::to_string(value) + '\0') != std::string::npos;
  };
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (!is_number(entry.path().filename().string())) continue;
    const std::string environment = environment_of(entry.path());
    if (!set(environment, "MGT_LAUNCHER_PID", launcher) || (rank && !set(environment, "MGT_RANK", *rank))) continue;
    found.push_back(std::stoi(entry.path().filename().string()));
  }
  return found;
}

// A run that would never end, under way.
class EndlessRun {
 public:
  explicit EndlessRun(const std::string& launch) : process_(command(launch), prepared(folder_)) {
    REQUIRE(process_.wait_for("epoch 2/", 30));
  }
  Process& process() { return process_; }

 private:
  static std::vector<std::string> command(const std::string& launch) {
    return {mgt::test::program(), "train", "--config", "endless.yaml", "--set", "launch=" + launch};
  }
  static std::string prepared(const TemporaryFolder& folder) {
    folder.write("endless.yaml", kEndless);
    return folder.path();
  }

  TemporaryFolder folder_;
  Process process_;
};

double seconds_since(Process::Clock::time_point start) {
  return std::chrono::duration<double>(Process::Clock::now() - start).count();
}

}  // namespace

TEST_CASE("S-78: a rank that is killed ends the run, and no process is left") {
  EndlessRun run("processes");
  const int launcher = run.process().pid();
  CHECK(ranks_of(launcher).size() == 2);
  const std::vector<int> victim = ranks_of(launcher, 1);
  REQUIRE(victim.size() == 1);
  const auto start = Process::Clock::now();
  ::kill(victim.front(), SIGKILL);
  const Result result = run.process().finish(20);
  INFO(result.err);
  CHECK(result.exit == 5);
  CHECK(seconds_since(start) < 10);
  CHECK(result.err.find("mgt: error: ") != std::string::npos);
  CHECK(result.err.find("rank 1") != std::string::npos);
  CHECK(ranks_of(launcher).empty());
}

TEST_CASE("S-78: Ctrl-C and SIGTERM end all ranks, and no process is left") {
  const std::vector<std::pair<int, int>> kSignals = {{SIGINT, 130}, {SIGTERM, 143}};
  for (const char* const launch : {"processes", "threads"}) {
    for (const auto& [signal, exit] : kSignals) {
      EndlessRun run(launch);
      const auto start = Process::Clock::now();
      run.process().send(signal);
      const Result result = run.process().finish(10);
      INFO(launch << ", signal " << signal << ": " << result.err);
      CHECK(result.exit == exit);
      CHECK(seconds_since(start) < 5);
      CHECK(ranks_of(run.process().pid()).empty());
    }
  }
}

TEST_CASE("S-78: a launcher that is killed takes its ranks with it") {
  EndlessRun run("processes");
  const int launcher = run.process().pid();
  CHECK(ranks_of(launcher).size() == 2);
  run.process().send(SIGKILL);
  run.process().finish(20);
  CHECK(ranks_of(launcher).empty());
}

}  // namespace mgt::test
