#include "config_schema.h"
#include "test.h"

#include "config/reader.h"
#include "config/run.h"
#include "core/error.h"

#include <string>
#include <vector>

namespace mgt::test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::Equals;
using config::Config;
using config::DeviceRequest;

DeviceRequest devices_of(const std::string& value) {
  return resolved("strategy: ddp\ndevices: " + value).top().devices("devices");
}

double lr_of(const std::string& value) {
  return resolved("optimizer: {lr: " + value + "}").section("optimizer").number("lr");
}

}  // namespace

TEST_CASE("a value knows where it came from") {
  const Config run = resolved("optimizer:\n  name: adam\n  lr: 0.2\n", {"optimizer.eps=1e-6"});
  CHECK(run.at("optimizer.name").origin.text() == "run.yaml:2:9");
  CHECK(run.at("optimizer.lr").origin.text() == "run.yaml:3:7");
  CHECK(run.at("optimizer.eps").origin.text() == "--set optimizer.eps=1e-6");
  CHECK(run.at("batch_size").origin.text() == "default");
}

TEST_CASE("an absent section is its default variant with default values") {
  const Config run = resolved("{}");
  CHECK(run.section("optimizer").text("name") == "sgd");
  CHECK(run.section("optimizer").number("lr") == 0.1);
  CHECK(run.section("model").integers("channels") == std::vector<int64_t>{20, 50});
  CHECK_FALSE(run.section("clip").has("norm"));
  CHECK_FALSE(run.section("optimizer").has("no_such_option"));
}

TEST_CASE("a section without a name and without a default must be given") {
  config::Schema strict = schema();
  strict.sections[1].fallback = "";
  CHECK_THROWS_WITH(config::resolve(strict, {"run.yaml", "epochs: 1"}),
                    Equals("run.yaml: data.name: is missing; choose one of fashion_mnist, idx"));
}

TEST_CASE("a scalar stands for the main key of its section") {
  const Config run = resolved("strategy: ddp\nclip: 1.5\ncomm: gloo\n");
  CHECK(run.section("strategy").text("name") == "ddp");
  CHECK(run.section("strategy").number("bucket_mb") == 25);
  CHECK(run.section("clip").number("norm") == 1.5);
  CHECK(run.section("comm").text("backend") == "gloo");
}

TEST_CASE("numbers are read whole or refused") {
  CHECK(lr_of("0.25") == 0.25);
  CHECK(lr_of("1e-3") == 0.001);
  CHECK(lr_of("2") == 2);
  for (const char* word :
       {"0.2x", "nan", ".inf", "inf", "0x10", "1_000", "'0.1'", "+1", "1e999", "1e-999", "[1]", "true"}) {
    INFO(word);
    CHECK_THAT(error_of(concat("optimizer: {lr: ", word, "}")), Contains("run.yaml:1:17: optimizer.lr: "));
  }
  for (const char* word : {"64.5", "2.0e2", "2e2", "9223372036854775808", "0x10", "'2'", "1 2", "-1", "~"}) {
    INFO(word);
    CHECK_THAT(error_of(concat("batch_size: ", word)), Contains("batch_size: "));
  }
  CHECK(resolved("seed: 9223372036854775807").top().integer("seed") == 9223372036854775807);
}

TEST_CASE("truth values are true and false only") {
  CHECK_FALSE(resolved("shuffle: false").top().boolean("shuffle"));
  for (const char* word : {"yes", "no", "True", "1", "on", "'true'"}) {
    CHECK_THAT(error_of(concat("shuffle: ", word)), Contains("shuffle: must be true or false"));
  }
}

TEST_CASE("lists keep their length, and each element its bounds") {
  const Config run = resolved("optimizer: {name: adam, betas: [0, 0.5]}");
  CHECK(run.section("optimizer").numbers("betas") == std::vector<double>{0, 0.5});
  CHECK_THAT(error_of("model: {channels: 4}"), Contains("model.channels: must be a list of 2 whole numbers, not '4'"));
  CHECK_THAT(error_of("model: {channels: [4, 5, 6]}"), Contains("list of 2 whole numbers; this list has 3"));
  CHECK_THAT(error_of("optimizer: {name: adam, betas: [0.9, 1]}"), Contains("optimizer.betas: 1 is out of range"));
  CHECK_THAT(error_of("optimizer: {no_decay: bios}"), Contains("(did you mean bias?)"));
}

TEST_CASE("devices are auto, a count or names") {
  CHECK(devices_of("auto") == DeviceRequest{.automatic = true});
  CHECK(devices_of("0") == DeviceRequest{});
  CHECK(devices_of("3") == DeviceRequest{.count = 3});
  CHECK(devices_of("cpu") == DeviceRequest{.names = {"cpu"}});
  CHECK(devices_of("cuda:1") == DeviceRequest{.names = {"cuda:1"}});
  CHECK(devices_of("[0, 2]") == DeviceRequest{.names = {"cuda:0", "cuda:2"}});
  CHECK(devices_of("[cuda:01, cpu:0, cpu:1]") == DeviceRequest{.names = {"cuda:1", "cpu:0", "cpu:1"}});
  CHECK_THAT(error_of("devices: [0, cuda:0]"), Contains("devices: cuda:0 is named twice"));
  CHECK_THAT(error_of("devices: [cpu, cpu]"), Contains("write cpu:0, cpu:1"));
  CHECK_THAT(error_of("devices: []"), Contains("devices: the list is empty"));
  for (const char* word :
       {"-1", "[-1]", "cuda:-1", "gpu", "cuda", "'cuda:'", "cuda:x", "1.5", "[[0]]", "{a: 1}", "9999"}) {
    INFO(word);
    CHECK_THAT(error_of(concat("devices: ", word)), Contains("devices: "));
  }
}

TEST_CASE("an unknown key comes with the key that was meant") {
  CHECK_THAT(error_of("optimizer: {momentun: 0.9}"),
             Equals("run.yaml:1:13: optimizer.momentun: unknown key (did you mean momentum?)"));
  CHECK_THAT(error_of("lr: 1"), Contains("lr: unknown key here; it belongs elsewhere: write optimizer.lr"));
  CHECK_THAT(error_of("model: {seed: 1}"),
             Contains("model.seed: unknown key here; it belongs elsewhere: write seed at"));
  CHECK_THAT(error_of("momentun: 1"), Contains("did you mean optimizer.momentum?"));
  CHECK_THAT(error_of("BATCH_SIZE: 1"), Contains("did you mean batch_size?"));
  CHECK_THAT(error_of("optimizer.lr: 1"), Contains("dotted keys are for --set"));
  CHECK_THAT(error_of("comm: {zzz: 1}"), Contains("comm.zzz: unknown key; known in comm: backend, timeout"));
  CHECK_THAT(error_of("strategy: {name: ddp, stage: 2}"),
             Contains("strategy.stage: ddp has no option stage, it belongs to zero; options of ddp: bucket_mb"));
  CHECK_THAT(error_of("strategy: {stage: 2}"),
             Contains("single has no option stage, it belongs to zero; single has no options"));
}

TEST_CASE("a message is one short line whatever the user wrote") {
  const std::string huge(50000, 'k');
  std::vector<std::string> messages = {error_of(huge + ": 1"),
                                       error_of("seed: " + huge),
                                       error_of("{}", {huge}),
                                       error_of("{}", {huge + "=1"}),
                                       error_of("{}", {"seed=" + huge}),
                                       error_of("model: " + huge),
                                       error_of("model: {" + huge + ": 1}"),
                                       error_of("devices: " + huge),
                                       error_of("a: \"\\u0001\\n\""),
                                       error_of("{}", {"seed=\n\x01"}),
                                       error_of("{}", {"seed=\xFF"})};
  for (const std::string& message : messages) {
    INFO(message);
    CHECK_FALSE(message.empty());
    CHECK(message.size() < 2000);
    CHECK(message.find('\n') == std::string::npos);
  }
}

TEST_CASE("deep nesting of any kind is an error and no overflow") {
  for (const char* unit : {"[", "{", "- ", "? ", "{a: ", "[a: ", "[? "}) {
    std::string text;
    while (text.size() < 60000) text += unit;
    CHECK_FALSE(error_of(text).empty());
  }
}

TEST_CASE("directives, document marks and Windows line ends are fine") {
  CHECK(resolved("%YAML 1.2\n---\nseed: 3\n...\n").top().integer("seed") == 3);
  CHECK(resolved("model: mlp\r\ninit: a.st\r\n").top().text("init") == "a.st");
  CHECK(resolved("\xEF\xBB\xBFinit: d\xC3\xA9j\xC3\xA0.st").top().text("init") == "d\xC3\xA9j\xC3\xA0.st");
  CHECK_THAT(error_of("{seed: 1} more"), Contains("second document or stray text"));
  CHECK_THAT(error_of("init: \xC0\xAF"), Contains("run.yaml:1:7: byte 0xC0 is not UTF-8"));
  CHECK_THAT(error_of("? [seed]\n: 1"), Contains("a key must be a word"));
}

TEST_CASE("the run is typed") {
  const config::Run run = config::run_of(
      resolved("{strategy: ddp, devices: 2, epochs: 3, max_steps: 7, precision: fp64, launch: threads, comm: {timeout: "
               "2.5}, log: {language: zh}}"));
  CHECK(run.devices.count == 2);
  CHECK(run.epochs == 3);
  CHECK(run.max_steps == 7);
  CHECK(run.precision == config::Precision::fp64);
  CHECK(run.launch == config::Launch::threads);
  CHECK(run.comm_backend == "auto");
  CHECK(run.comm_timeout_s == 2.5);
  CHECK(run.language == "zh");
  CHECK_FALSE(run.threads.has_value());
  CHECK_FALSE(run.init.has_value());
}

TEST_CASE("asking for an option as the wrong type is a bug of ours") {
  const Config run = resolved("{}");
  CHECK_THROWS_AS(run.top().text("seed"), InternalError);
  CHECK_THROWS_AS(run.top().integer("max_steps"), InternalError);
  CHECK_THROWS_AS(run.at("no.such"), InternalError);
}

TEST_CASE("a check across keys names the file even when the value is a default") {
  CHECK_THAT(error_of("devices: 2"), Contains("run.yaml: strategy.name: single is one device"));
  CHECK_THAT(error_of("{}", {"devices=2", "strategy=single"}), Contains("--set strategy=single: strategy.name: "));
}

}  // namespace mgt::test
