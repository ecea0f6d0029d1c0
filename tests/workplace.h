// A folder with a small config in it, where the built program is run. Belongs to one test.
#pragma once

#include "process.h"
#include "temporary_folder.h"
#include "test.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace mgt::test {

inline constexpr const char* kConfig = R"(# A small net on synthetic pictures.
model: {name: lenet, channels: [4, 6], hidden: 16, init_std: 0.1}
data: {name: synthetic, train: 300, test: 101}
strategy: single
devices: 1
batch_size: 64
epochs: 2
threads: 1
seed: 3
optimizer: {name: sgd, lr: 0.1}
)";

class Workplace {
 public:
  Workplace() { folder_.write("small.yaml", kConfig); }
  const TemporaryFolder& folder() const { return folder_; }

  std::vector<std::string> train(const std::vector<std::string>& overrides,
                                 const std::vector<std::string>& arguments = {}) const {
    std::vector<std::string> command = {mgt::test::program(), "train", "--config", "small.yaml"};
    for (const std::string& override : overrides) command.insert(command.end(), {"--set", override});
    command.insert(command.end(), arguments.begin(), arguments.end());
    return command;
  }

  Result run_train(const std::vector<std::string>& overrides, const std::vector<std::string>& arguments = {}) const {
    return run(train(overrides, arguments), folder_.path());
  }

  // The summary that `--json` prints, alone on stdout.
  nlohmann::json summary(const std::vector<std::string>& overrides, const std::string& run_folder) const {
    const Result result = run_train(overrides, {"--json", "--run-dir", run_folder});
    INFO(result.err);
    REQUIRE(result.exit == 0);
    return nlohmann::json::parse(result.out);
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace mgt::test
