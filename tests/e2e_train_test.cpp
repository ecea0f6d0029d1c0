// Whole runs of the built program: what it prints, what it leaves, and that a run can be had again to the bit.
#include "process.h"
#include "test.h"
#include "workplace.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

namespace mgt::test {
namespace {

using nlohmann::json;

const std::vector<std::string> kSingle = {"strategy=single", "devices=1"};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> on_two_devices(const std::string& strategy) { return {"strategy=" + strategy, "devices=2"}; }

void check_run(const std::string& strategy, const std::vector<std::string>& overrides) {
  const Workplace workplace;
  const json summary = workplace.summary(overrides, strategy);
  CHECK(summary["strategy"] == strategy);
  CHECK(summary["steps"] == 10);
  CHECK(summary["epochs"] == 2);
  CHECK(summary["test_total"] == 101);
  CHECK(summary["weights_sha256"].get<std::string>().size() == 64);
  CHECK(json::parse(workplace.folder().content(strategy + "/summary.json")) == summary);
  for (const char* const name : {"config.yaml", "run.json", "log.txt", "metrics.csv", "weights.safetensors"}) {
    CHECK(workplace.folder().has(strategy + "/" + name));
  }
  CHECK(lines_of(workplace.folder().content(strategy + "/metrics.jsonl")).size() == 2);

  const Result result = run({mgt::test::program(), "eval", "--run", strategy, "--json"}, workplace.folder().path());
  INFO(result.err);
  REQUIRE(result.exit == 0);
  const json evaluated = json::parse(result.out);
  for (const char* const key : {"test_acc", "test_correct", "test_total", "devices"}) {
    CHECK(evaluated[key] == summary[key]);
  }
}

}  // namespace

TEST_CASE("single trains, leaves its folder, and its weights are tested to the same counts") {
  check_run("single", kSingle);
}
TEST_CASE("scratch trains, leaves its folder, and its weights are tested to the same counts") {
  check_run("scratch", on_two_devices("scratch"));
}
TEST_CASE("data_parallel trains, leaves its folder, and its weights are tested to the same counts") {
  check_run("data_parallel", on_two_devices("data_parallel"));
}
TEST_CASE("ddp trains, leaves its folder, and its weights are tested to the same counts") {
  check_run("ddp", on_two_devices("ddp"));
}
TEST_CASE("layer_split trains, leaves its folder, and its weights are tested to the same counts") {
  check_run("layer_split", on_two_devices("layer_split"));
}

TEST_CASE("zero trains, leaves its folder, and its weights are tested to the same counts") {
  check_run("zero", on_two_devices("{name: zero, stage: 3}"));
}
TEST_CASE("tensor trains, leaves its folder, and its weights are tested to the same counts") {
  check_run("tensor", on_two_devices("tensor"));
}
TEST_CASE("pipeline trains, leaves its folder, and its weights are tested to the same counts") {
  check_run("pipeline", on_two_devices("pipeline"));
}
TEST_CASE("hybrid trains, leaves its folder, and its weights are tested to the same counts") {
  check_run("hybrid", {"strategy={name: hybrid, data: 2, pipeline: 2, zero: 1}", "devices=4"});
}

TEST_CASE("ranks that keep different things tell each its own: stages of LeNet") {
  const Workplace workplace;
  const json notes = workplace.summary(on_two_devices("{name: pipeline, split: [1, 3]}"), "run")["notes"];
  // Each tensor of fp32 in whole cache lines of 64 bytes: 192 + 64 of conv1; conv2's 2432 + 64, then 6144 + 64 and
  // 640 + 64.
  CHECK(notes["parameters of a rank"] == "9408 bytes (by rank: 256, 9408)");
  CHECK(notes["activations held at most"] == "2 pieces (by rank: 2, 1)");
  CHECK(std::regex_match(notes["idle"].get<std::string>(), std::regex(R"([\d.]+ %( \(by rank: [\d.]+, [\d.]+\))?)")));
  CHECK(notes["idle, were stages equal"] == "20.0 %");
}

TEST_CASE("S-71: the result is the very last line, in both languages") {
  const Workplace workplace;
  const Result english = workplace.run_train(on_two_devices("scratch"));
  INFO(english.out << english.err);
  CHECK(english.exit == 0);
  const std::vector<std::string> lines = lines_of(english.out);
  REQUIRE(lines.size() >= 4);
  CHECK(std::regex_match(lines.front(), std::regex("scratch: lenet .*")));
  CHECK(std::regex_match(lines[1], std::regex(R"(epoch 1/2  loss \d+\.\d{4}  test acc .*)")));
  CHECK(std::regex_match(lines.back(), std::regex(R"(test acc: \d\.\d\d, \d+\.\d sec/epoch on \[cpu, cpu\])")));
  const Result chinese = workplace.run_train({"log.language=zh"}, {"--quiet"});
  CHECK(std::regex_match(chinese.out, std::regex("测试精度：\\d\\.\\d\\d，\\d+\\.\\d秒/轮，在\\[.*\\]\n")));
}

TEST_CASE("a run's folder is named after its config") {
  const Workplace workplace;
  REQUIRE(workplace.run_train(kSingle).exit == 0);
  const std::filesystem::directory_iterator runs(workplace.folder().file("runs"));
  CHECK(std::regex_match(runs->path().filename().string(), std::regex(R"(small-\d{8}-\d{6})")));
}

TEST_CASE("the same config gives the same weights, and ranks as processes or as threads give them too") {
  const Workplace workplace;
  const auto weights = [&](std::vector<std::string> overrides, const std::string& folder) {
    return workplace.summary(overrides, folder).at("weights_sha256").get<std::string>();
  };
  const std::string processes = weights({"strategy=ddp", "devices=2", "launch=processes"}, "first");
  CHECK(weights({"strategy=ddp", "devices=2", "launch=processes"}, "second") == processes);
  CHECK(weights({"strategy=ddp", "devices=2", "launch=threads"}, "third") == processes);
  CHECK(weights({"strategy=ddp", "devices=2", "seed=4"}, "fourth") != processes);
}

TEST_CASE("the learning rate of each step is told, and is the same on any number of devices") {
  const Workplace workplace;
  const auto rates = [&](const std::string& devices, const std::string& folder) {
    workplace.summary({"strategy=ddp", "launch=threads", devices, "log.every_steps=1",
                       "schedule={name: multistep, milestones: [2, 5], gamma: 0.5, warmup: 2, warmup_style: goyal}"},
                      folder);
    std::vector<double> values;
    for (const std::string& line : lines_of(workplace.folder().content(folder + "/metrics.jsonl"))) {
      values.push_back(json::parse(line).at("lr"));
    }
    return values;
  };
  // Two epochs of 5 steps, each with the record of the epoch after its last step.
  const std::vector<double> wanted = {0.05, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05, 0.025, 0.025, 0.025, 0.025};
  CHECK(rates("devices=1", "one") == wanted);
  CHECK(rates("devices=3", "three") == wanted);
}

TEST_CASE("a run without a test set tells the training loss") {
  const Workplace workplace;
  const Result result =
      workplace.run_train({"data=random_rows", "model={name: mlp, input: [10], hidden: [], loss: mse}"});
  INFO(result.err);
  CHECK(result.exit == 0);
  CHECK(std::regex_match(lines_of(result.out).back(), std::regex(R"(train loss: \d\.\d{4}, \d+\.\d sec/epoch on .*)")));
}

TEST_CASE("a folder that holds a run is refused, and the run in it is kept") {
  const Workplace workplace;
  REQUIRE(workplace.run_train(kSingle, {"--run-dir", "mine"}).exit == 0);
  const std::string before = workplace.folder().content("mine/summary.json");
  const Result result = workplace.run_train(kSingle, {"--run-dir", "mine"});
  CHECK(result.exit == 2);
  CHECK(result.err.find("mine holds a run already") != std::string::npos);
  CHECK(workplace.folder().content("mine/summary.json") == before);
}

TEST_CASE("the installed program finds its configs") {
  const TemporaryFolder folder;
  const std::string build = std::filesystem::path(mgt::test::program()).parent_path().parent_path().string();
  const Result installed = run({"/usr/bin/env", "cmake", "--install", build, "--prefix", folder.file("prefix")}, "/");
  INFO(installed.out << installed.err);
  REQUIRE(installed.exit == 0);
  const std::string program = folder.file("prefix/bin/mgt");
  const Result list = run({program, "config", "list"}, folder.path());
  CHECK(list.out.find(folder.file("prefix/share/mgt/configs")) != std::string::npos);
  const Result result = run({program, "train", "--config", "lenet_2gpu.yaml", "--set", "data=synthetic", "--set",
                             "max_steps=2", "--devices", "2"},
                            folder.path());
  INFO(result.out << result.err);
  CHECK(result.exit == 0);
}

TEST_CASE("determinism: invariant gives the same bits to processes and threads, one device and four") {
  const Workplace place;
  std::set<std::string> hashes;
  const std::vector<std::vector<std::string>> ways = {{"strategy=single", "devices=1"},
                                                      {"strategy=ddp", "devices=2", "launch=processes"},
                                                      {"strategy=ddp", "devices=4", "launch=processes"},
                                                      {"strategy=ddp", "devices=4", "launch=threads"},
                                                      {"strategy={name: hybrid, pipeline: 2, zero: 2}", "devices=4"},
                                                      {"strategy=scratch", "devices=4"}};
  int number = 0;
  for (std::vector<std::string> way : ways) {
    way.push_back("determinism=invariant");
    hashes.insert(place.summary(way, "run" + std::to_string(++number))["weights_sha256"].get<std::string>());
  }
  REQUIRE(hashes.size() == 1);
}

TEST_CASE("a batch that micro_batch and accumulate make is in the run's config, so that the run can be had again") {
  const Workplace place;
  std::string text = kConfig;
  text.erase(text.find("batch_size: 64\n"), std::string("batch_size: 64\n").size());
  place.folder().write("pieces.yaml", text);
  const auto mgt = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), mgt::test::program());
    return run(arguments, place.folder().path());
  };
  REQUIRE(mgt({"train", "--config", "pieces.yaml", "--set", "strategy=ddp", "--set", "devices=3", "--set",
               "micro_batch=5", "--set", "accumulate=3", "--run-dir", "pieces", "--quiet"})
              .exit == 0);
  std::ifstream file(place.folder().path() + "/pieces/config.yaml");
  const std::string config(std::istreambuf_iterator<char>(file), {});
  REQUIRE(config.find("batch_size: 45") != std::string::npos);
  REQUIRE(mgt({"eval", "--run", "pieces"}).exit == 0);
  REQUIRE(mgt({"verify", "--replay", "pieces"}).exit == 0);
}

TEST_CASE("log.txt tells what the run said, and the error that ended it") {
  const Workplace place;
  const auto text = [&](const std::string& run_folder) {
    std::ifstream file(place.folder().path() + "/" + run_folder + "/log.txt");
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  REQUIRE(place.run_train({"strategy=ddp", "devices=2"}, {"--run-dir", "good", "--quiet"}).exit == 0);
  REQUIRE(text("good").find("stand in for 2 devices") != std::string::npos);
  REQUIRE(text("good").find("test acc: ") != std::string::npos);
  for (const std::string strategy : {"single", "ddp"}) {
    const std::vector<std::string> ways = {"strategy=" + strategy, strategy == "ddp" ? "devices=2" : "devices=1",
                                           "optimizer.lr=1e30"};
    REQUIRE(place.run_train(ways, {"--run-dir", strategy}).exit == 6);
    REQUIRE(text(strategy).find("error: the loss is") != std::string::npos);
  }
}

TEST_CASE("a stdout that is full or closed is an error or harmless, never a file of the run") {
  const Workplace place;
  const auto shell = [&](const std::string& command) {
    return run({"/bin/sh", "-c", "MGT=" + mgt::test::program() + "; " + command}, place.folder().path());
  };
  const std::string train = "$MGT train --config small.yaml --set epochs=1 --json --run-dir ";
  REQUIRE(shell(train + "a >/dev/full").exit == 2);
  REQUIRE(shell(train + "b --set strategy=ddp --set devices=2 >/dev/full").exit == 2);
  REQUIRE(shell("$MGT config schema >/dev/full").exit == 2);
  REQUIRE(shell("$MGT --version >/dev/full").exit == 2);
  REQUIRE(shell(train + "c >&-").exit == 0);
  const Result log = shell("cat c/log.txt");
  REQUIRE(log.out.find("test_acc") == std::string::npos);
  REQUIRE(shell("$MGT config list | head -n 1 >/dev/null").exit == 0);
}

TEST_CASE("config check and a drawn schedule warn as a run does") {
  const Workplace place;
  const std::vector<std::string> pieces = {"--set", "strategy={name: pipeline, microbatches: 65}", "--set",
                                           "devices=2"};
  for (const std::vector<std::string>& verb :
       {std::vector<std::string>{"config", "check", "small.yaml"}, {"config", "show", "small.yaml", "--schedule"}}) {
    std::vector<std::string> command = {mgt::test::program()};
    command.insert(command.end(), verb.begin(), verb.end());
    command.insert(command.end(), pieces.begin(), pieces.end());
    const Result result = run(command, place.folder().path());
    CHECK(result.exit == 0);
    CHECK(result.err.find("warning: 65 pieces of a batch cannot be had from 64 rows") != std::string::npos);
  }
}

TEST_CASE("what only the model and the number of devices show is found by config check too") {
  const Workplace place;
  place.folder().write("split.yaml", "model: lenet\nstrategy: {name: layer_split, split: [1, 1]}\ndevices: 2\n");
  place.folder().write("many.yaml", "model: lenet\nstrategy: layer_split\ndevices: 40\n");
  for (const std::string file : {"split.yaml", "many.yaml"}) {
    REQUIRE(run({mgt::test::program(), "config", "check", file}, place.folder().path()).exit == 2);
    REQUIRE(run({mgt::test::program(), "train", "--config", file}, place.folder().path()).exit == 2);
  }
  REQUIRE(place.run_train({"optimizer.lr=1e300"}).exit == 2);
}

TEST_CASE("a folder without a finished run is said to be one") {
  const Workplace place;
  const Result nothing = run({mgt::test::program(), "eval", "--run", "nowhere"}, place.folder().path());
  REQUIRE(nothing.exit == 2);
  REQUIRE(nothing.err.find("no run is there") != std::string::npos);
  REQUIRE(place.run_train({"optimizer.lr=1e30"}, {"--run-dir", "broken"}).exit == 6);
  const Result broken = run({mgt::test::program(), "eval", "--run", "broken"}, place.folder().path());
  REQUIRE(broken.exit == 4);
  REQUIRE(broken.err.find("did not finish") != std::string::npos);
}

}  // namespace mgt::test
