// The shipped configs: all resolve, and those of the tutorials say what the tutorials say.
#include "test.h"

#include "config/reader.h"
#include "config/run.h"
#include "launch/rank.h"

#include <filesystem>

using namespace mgt;

namespace {

const std::string kFolder = test::source() + "/configs/";

config::Config shipped(const std::string& name) {
  return config::resolve(launch::schema(), config::read_file(real_file_system(), kFolder + name + ".yaml"));
}

}  // namespace

TEST_CASE("every shipped config resolves and can be placed on this machine (S-15)") {
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator(kFolder)) {
    INFO(file.path().string());
    REQUIRE_NOTHROW(launch::place(shipped(file.path().stem())));
    ++count;
  }
  REQUIRE(count >= 9);
}

TEST_CASE("the book's hyper-parameters (S-49, S-51)") {
  struct Row {
    std::string config, model, strategy;
    int64_t devices, batch_size;
    double lr;
  };
  const Row rows[] = {{"lenet_1gpu", "lenet", "single", 1, 256, 0.2},
                      {"lenet_2gpu", "lenet", "scratch", 2, 256, 0.2},
                      {"resnet18_1gpu", "resnet18", "single", 1, 256, 0.1},
                      {"resnet18_2gpu", "resnet18", "data_parallel", 2, 512, 0.2},
                      {"ddp_template", "mlp", "ddp", 2, 64, 0.001}};
  for (const Row& row : rows) {
    INFO(row.config);
    const config::Config config = shipped(row.config);
    const config::Run run = config::run_of(config);
    REQUIRE(config.section("model").text("name") == row.model);
    REQUIRE(config.section("strategy").text("name") == row.strategy);
    REQUIRE(run.devices.count == row.devices);
    REQUIRE(run.batch_size == row.batch_size);
    REQUIRE(run.epochs == 10);
    REQUIRE(config.section("optimizer").number("lr") == row.lr);
  }
}
