// `mgt verify` as a user meets it: its options, its mutants, and runs that are replayed.
#include "workplace.h"

#include <filesystem>
#include <fstream>

namespace mgt::test {
namespace {

using nlohmann::json;

Result verify(const Workplace& place, const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {mgt::test::program(), "verify"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run(command, place.folder().path());
}

Result verify_small(const Workplace& place, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"--config", "small.yaml"});
  return verify(place, arguments);
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("a run can be replayed: identical, or the first epoch and tensor that differ, and what has changed") {
  const Workplace place;
  REQUIRE(place.run_train({"strategy=ddp", "devices=2"}, {"--run-dir", "first", "--quiet"}).exit == 0);
  const std::vector<std::string> command = {mgt::test::program(), "verify", "--replay", "first"};
  const Result same = run(command, place.folder().path());
  INFO(same.err);
  REQUIRE(same.exit == 0);
  REQUIRE(same.out.find("identical: 2 epochs") == 0);

  const std::string manifest = place.folder().path() + "/first/run.json";
  std::ifstream manifest_file(manifest);
  const std::string original(std::istreambuf_iterator<char>(manifest_file), {});
  json changed = json::parse(original);
  REQUIRE(changed["data_sha256"].get<std::string>().size() == 64);
  REQUIRE(changed["weights"].size() == 2);
  changed["libtorch"] = "2.10.0";
  changed["weights"][1]["sha256"] = "other";
  changed["weights"][1]["tensors"]["fc1.weight"] = "other";
  place.folder().write("first/run.json", changed.dump());
  const Result other = run(command, place.folder().path());
  INFO(other.err);
  REQUIRE(other.exit == 6);
  REQUIRE(other.err.find("after epoch 2, first in fc1.weight; changed: libtorch: \"2.10.0\" then") !=
          std::string::npos);

  changed = json::parse(std::ifstream(manifest));
  changed["libtorch"] = "2.10.0";
  changed["weights"].erase(1);  // as an interrupted run leaves it
  changed["weights"][0] = json::parse(original)["weights"][0];
  place.folder().write("first/run.json", changed.dump());
  REQUIRE(run(command, place.folder().path()).out.find("identical: 1 epoch,") != std::string::npos);

  place.folder().write("first/run.json", "{\"weights\": 3}");
  REQUIRE(run(command, place.folder().path()).exit == 4);
  REQUIRE(run({mgt::test::program(), "verify", "--replay", "nowhere"}, place.folder().path()).exit == 2);
}

TEST_CASE("a replay finds the first weights from another folder, and tells that they or the facts have changed") {
  const Workplace place;
  REQUIRE(place.run_train({"epochs=1"}, {"--run-dir", "before", "--quiet"}).exit == 0);
  REQUIRE(place
              .run_train({"epochs=1", "init=before/weights.safetensors", "strategy=ddp", "devices=2"},
                         {"--run-dir", "after", "--quiet"})
              .exit == 0);
  const std::string folder = place.folder().path();
  const Result elsewhere = run({mgt::test::program(), "verify", "--replay", folder + "/after"}, "/");
  INFO(elsewhere.err);
  REQUIRE(elsewhere.exit == 0);
  REQUIRE(has(elsewhere.out, "identical: 1 epoch"));

  json manifest = json::parse(std::ifstream(folder + "/after/run.json"));
  REQUIRE(manifest["init_sha256"].get<std::string>().size() == 64);
  manifest["libtorch"] = "2.10.0";
  place.folder().write("after/run.json", manifest.dump());
  const Result changed = verify(place, {"--replay", "after"});
  REQUIRE(changed.exit == 0);
  REQUIRE(has(changed.out, "changed, without effect: libtorch: \"2.10.0\" then"));

  REQUIRE(place.run_train({"epochs=1", "seed=5"}, {"--run-dir", "before2", "--quiet"}).exit == 0);
  std::filesystem::copy_file(folder + "/before2/weights.safetensors", folder + "/before/weights.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  const Result other = verify(place, {"--replay", "after"});
  REQUIRE(other.exit == 6);
  REQUIRE(has(other.err, "init_sha256: "));

  manifest["weights"][0]["tensors"]["fc1.weight"] = "other";
  place.folder().write("after/run.json", manifest.dump());
  REQUIRE(has(verify(place, {"--replay", "after"}).err, "first in "));

  place.folder().write("after/run.json", "{\"weights\": [");
  const Result broken = verify(place, {"--replay", "after"});
  REQUIRE(broken.exit == 4);
  REQUIRE(!has(broken.err, "json.exception"));
  std::filesystem::remove(folder + "/after/config.yaml");
  REQUIRE(has(verify(place, {"--replay", "after"}).err, "config.yaml"));
}

TEST_CASE("options of verify that make no sense together are refused before anything runs") {
  const Workplace place;
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"--full"},
                                                    {"--world", "2,2"},
                                                    {"--inject", "all", "--world", "2"},
                                                    {"--invariant", "--world", "2"},
                                                    {"--all", "--inject", "all"}}) {
    const Result result = verify_small(place, arguments);
    INFO(arguments.front() << ": " << result.err);
    REQUIRE(result.exit == 2);
    REQUIRE(result.out.empty());
  }
  for (const std::string option : {"--steps", "--set", "--devices", "--world"}) {
    const Result result = verify(place, {"--replay", "nowhere", option, option == "--set" ? "epochs=1" : "1"});
    REQUIRE(result.exit == 2);
    REQUIRE(has(result.err, option));
  }
  const Result refused = verify_small(place, {"--set", "strategy=layer_split", "--world", "1,64"});
  REQUIRE(refused.exit == 2);
  REQUIRE(!has(refused.out, "equal"));  // not after the first of the list has run
}

TEST_CASE("verify says which devices it took, and follows the user's own size of the model") {
  const Workplace place;
  const Result result = verify_small(place, {"--set", "devices=[cuda:0]", "--set", "devices_strict=false"});
  INFO(result.err);
  REQUIRE(result.exit == 0);
  if (!has(result.out, "cuda")) REQUIRE(has(result.err, "cuda:0"));
  const Result sized = verify_small(place, {"--inject", "divided_twice", "--set", "model.hidden=24"});
  REQUIRE(sized.exit == 0);
  REQUIRE(!has(sized.out, "model.hidden"));
}

TEST_CASE("a mutant that a config rules out is said to be impossible, not to have survived") {
  const Workplace place;
  REQUIRE(place.run_train({"epochs=1"}, {"--run-dir", "before", "--quiet"}).exit == 0);
  const Result init =
      verify_small(place, {"--inject", "missing_broadcast", "--full", "--set", "init=before/weights.safetensors"});
  INFO(init.out << init.err);
  REQUIRE(init.exit == 0);
  REQUIRE(has(init.out, "not possible missing_broadcast (ddp): init: "));
  const std::string pictures = cases() + "/1_trajectories/data/train-";
  const Result untested = verify_small(place, {"--inject", "padded_evaluation", "--set",
                                               "data={name: idx, images: " + pictures +
                                                   "images-idx3-ubyte, labels: " + pictures + "labels-idx1-ubyte}"});
  INFO(untested.out << untested.err);
  REQUIRE(has(untested.out, "not possible padded_evaluation"));
}

TEST_CASE("mutants that need pictures are impossible where the data has none, and the others are killed") {
  const Workplace place;
  const Result result = verify(place, {"--config", "ddp_template.yaml", "--inject", "all"});
  INFO(result.out << result.err);
  REQUIRE(result.exit == 0);
  REQUIRE(has(result.out, "not possible local_passed_as_sync (ddp): "));
  REQUIRE(has(result.out, "killed skipped_bucket (ddp): "));
}

TEST_CASE("with first weights of the model's own size, verify takes the model in that size") {
  const Workplace place;
  REQUIRE(place.run_train({"epochs=1", "model.hidden=24"}, {"--run-dir", "before", "--quiet"}).exit == 0);
  const Result result = verify_small(
      place, {"--inject", "divided_twice", "--set", "model.hidden=24", "--set", "init=before/weights.safetensors"});
  INFO(result.out << result.err);
  REQUIRE(result.exit == 0);
}

TEST_CASE("a run that cannot be compared is said to be one: the reference is not finite") {
  const Workplace place;
  const Result result = verify_small(
      place, {"--set", "optimizer={lr: 1e30, weight_decay: 1e30}", "--set", "strategy=ddp", "--world", "2"});
  REQUIRE(result.exit == 6);
  REQUIRE(has(result.err, "the reference itself, one device, broke off"));
}

}  // namespace
}  // namespace mgt::test
