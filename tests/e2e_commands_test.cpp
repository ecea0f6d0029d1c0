// The subcommands that do not train, and what is said of a wrong command line.
#include "process.h"
#include "temporary_folder.h"
#include "test.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <regex>

namespace mgt::test {
namespace {

Result mgt(std::vector<std::string> arguments, const std::string& folder = "/") {
  arguments.insert(arguments.begin(), mgt::test::program());
  return run(arguments, folder);
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// One line that begins as every error of the program does.
void check_usage_error(const std::vector<std::string>& arguments, const std::string& word) {
  const Result result = mgt(arguments);
  INFO(result.out << result.err);
  CHECK(result.exit == 2);
  CHECK(result.out.empty());
  CHECK(result.err.starts_with("mgt: error: "));
  CHECK(result.err.find('\n') == result.err.size() - 1);
  CHECK(has(result.err, word));
}

std::vector<std::string> shipped() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(mgt::test::source() + "/configs")) {
    names.push_back(entry.path().stem().string());
  }
  return names;
}

}  // namespace

TEST_CASE("a wrong command line is one line and exit 2") {
  check_usage_error({}, "no command given");
  check_usage_error({"config"}, "no command given");
  check_usage_error({"config", "lst"}, "lst");
  check_usage_error({"trian"}, "trian");
  check_usage_error({"train"}, "--config");
  check_usage_error({"train", "--config"}, "--config");
  check_usage_error({"train", "--config", "lenet_1gpu", "--no-such-option"}, "--no-such-option");
  check_usage_error({"train", "--config", "lenet_1gpux"}, "did you mean lenet_1gpu?");
  check_usage_error({"train", "--config", "lenet_1gpu", "--set", "optimizer.lr=-1"}, "--set optimizer.lr=-1");
  check_usage_error({"train", "--config", "lenet_1gpu", "--devices", "two"}, "--set devices=two");
  check_usage_error({"eval"}, "--run");
  check_usage_error({"eval", "--config", "lenet_1gpu"}, "weights");
  check_usage_error({"eval", "--run", "/nowhere"}, "/nowhere: no run is there");
}

TEST_CASE("help and version are no errors") {
  CHECK(
      std::regex_match(mgt({"--version"}).out, std::regex("mgt \\d+\\.\\d+\\.\\d+, LibTorch \\d+\\.\\d+\\.\\d+.*\n")));
  const Result help = mgt({"train", "--help"});
  CHECK(help.exit == 0);
  CHECK(has(help.out, "--run-dir"));
}

TEST_CASE("every shipped config is right") {
  std::vector<std::string> arguments = shipped();
  CHECK(arguments.size() >= 15);
  arguments.insert(arguments.begin(), {"config", "check"});
  const Result result = mgt(arguments);
  INFO(result.err);
  CHECK(result.exit == 0);
  CHECK(has(result.out, "lenet_2gpu: ok\n"));
}

TEST_CASE("config check says of each what is wrong") {
  const TemporaryFolder folder;
  folder.write("good.yaml", "model: lenet\n");
  folder.write("bad.yaml", "model: lenett\n");
  const Result result = mgt({"config", "check", "bad.yaml", "good.yaml"}, folder.path());
  CHECK(result.exit == 2);
  CHECK(result.out == "good.yaml: ok\n");
  CHECK(has(result.err, "mgt: error: bad.yaml:1:8: model.name: "));
  const auto check = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"config", "check", "good.yaml"});
    return mgt(arguments, folder.path());
  };
  CHECK(check({"--set", "strategy=ddp", "--devices", "3"}).out == "good.yaml: ok\n");
  CHECK(has(check({"--set", "strategy={name: pipeline, stages: 2}", "--devices", "[cpu]"}).err, "strategy.stages: "));
  CHECK(has(check({"--set", "optimizer.lr=-1"}).err, "--set optimizer.lr=-1"));
}

TEST_CASE("config show prints values with their origin, and without it a file that resolves to the same") {
  const TemporaryFolder folder;
  folder.write("mine.yaml", "optimizer: {name: sgd, lr: 0.3}\n");
  const Result shown = mgt({"config", "show", "mine.yaml", "--set", "seed=7", "--devices", "[cpu]"}, folder.path());
  CHECK(std::regex_search(shown.out, std::regex(R"(seed: 7 +# --set seed=7)")));
  CHECK(std::regex_search(shown.out, std::regex(R"(lr: 0\.3 +# mine\.yaml:1:\d+)")));
  CHECK(std::regex_search(shown.out, std::regex(R"(epochs: \d+ +# default)")));
  const Result plain = mgt({"config", "show", "mine.yaml", "--no-origins"}, folder.path());
  CHECK_FALSE(has(plain.out, "#"));
  folder.write("resolved.yaml", plain.out);
  CHECK(mgt({"config", "show", "resolved.yaml", "--no-origins"}, folder.path()).out == plain.out);
}

TEST_CASE("config show --schedule tells chunks apart, names the formula of its order, and refuses what is too wide") {
  const auto drawn = [](const std::string& strategy) {
    return mgt({"config", "show", "lenet_2gpu", "--schedule", "--devices", "[cpu:0, cpu:1]", "--set", "batch_size=200",
                "--set", "strategy={name: pipeline, " + strategy + "}"});
  };
  const std::string plain = drawn("microbatches: 4").out;
  CHECK(has(plain, "(p - 1) / (m + p - 1) is 20 %"));
  CHECK(has(plain, "stage 1 | .  0  0---- 1 "));
  const std::string interleaved = drawn("schedule: interleaved").out;
  CHECK(has(interleaved, "2 stages of 2 chunks, 4 pieces"));
  CHECK(has(interleaved, "stage 0 | 0a  1a  0b "));
  CHECK(has(interleaved, "(p - 1) / (v m + p - 1), reached where p divides m, is 11.1 %"));
  CHECK(drawn("microbatches: 64").exit == 0);
  const Result wide = drawn("microbatches: 100000000");
  CHECK(wide.exit == 2);
  CHECK(has(wide.err,
            "strategy.microbatches: 200 pieces are too wide to draw; draw at most 64, with --set "
            "strategy.microbatches=8"));
}

TEST_CASE("config list, schema and options name what there is") {
  const std::string list = mgt({"config", "list"}).out;
  for (const char* const name : {"lenet5", "resnet18", "fashion_mnist", "layer_split", "adamw", "bucket_mb"}) {
    CHECK(has(list, name));
  }
  for (const std::string& name : shipped()) CHECK(std::regex_search(list, std::regex("  " + name + " +[A-Z].*")));
  CHECK(nlohmann::json::parse(mgt({"config", "schema"}).out).contains("properties"));
  CHECK(has(mgt({"config", "options"}).out, "`optimizer.lr`"));
}

TEST_CASE("doctor tells what there is, and each trouble with its cure") {
  const Result good = mgt({"doctor"});
  INFO(good.out << good.err);
  for (const char* const what : {"mgt:", "LibTorch:", "cores:", "memory:", "loopback:", "open files:"}) {
    CHECK(has(good.out, what));
  }
  CHECK((good.exit == 0) == has(good.out, "\nready to train\n"));
  CHECK((good.exit == 0) != has(good.out, "; cure: "));
}

}  // namespace mgt::test
