// From a config back to text, and the files that configs come from.
#include "config_schema.h"
#include "test.h"

#include "config/reader.h"
#include "config/writer.h"
#include "core/error.h"
#include "core/file_system.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

namespace mgt::test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using config::Config;
using nlohmann::json;

void check_round_trip(const Config& first) {
  const std::string text = config::to_yaml(schema(), first, false);
  INFO(text);
  const Config second = resolved(text);
  for (const auto& [key, setting] : first.top().settings()) CHECK(second.at(key).value == setting.value);
  for (const auto& [name, section] : first.sections()) {
    for (const auto& [key, setting] : section.settings()) CHECK(second.at(name + "." + key).value == setting.value);
  }
}

std::string shipped() { return cases() + "/6_bad_inputs/config"; }

}  // namespace

TEST_CASE("a config is written and read back to the same values") {
  check_round_trip(resolved("{}"));
  for (const char* model : {"lenet", "resnet18", "mlp"}) check_round_trip(resolved(concat("model: ", model)));
  for (const char* optimizer : {"sgd", "adam", "adamw"}) check_round_trip(resolved(concat("optimizer: ", optimizer)));
  for (const char* devices : {"auto", "0", "7", "cpu", "cuda:3", "[0, cpu:1]"}) {
    check_round_trip(resolved(concat("strategy: ddp\ndevices: ", devices)));
  }
  for (const char* number : {"0.1", "1e-08", "1e30", "5e-324", "3", "0.30000000000000004", "123456789.125"}) {
    check_round_trip(resolved(concat("optimizer: {lr: ", number, "}")));
  }
}

TEST_CASE("any text is written so that it reads back as itself") {
  for (const char* text : {"plain",
                           "'7'",
                           "'true'",
                           "'No'",
                           "'~'",
                           "'a: b'",
                           "'a #b'",
                           "'[x'",
                           "'- x'",
                           "'&a'",
                           "'*a'",
                           "'!t'",
                           "\"it's\"",
                           "'say \"x\"'",
                           "'back\\slash'",
                           "' led'",
                           "'d\xC3\xA9j\xC3\xA0'",
                           "''",
                           "../a-b_c/d.gz",
                           "'...'",
                           "'---'",
                           "'%x'",
                           "'@x'",
                           "'`x'",
                           "'{'",
                           "'a,b'",
                           "'<<'",
                           "'1e5'"}) {
    check_round_trip(resolved(concat("init: ", text, "\ndata: {name: idx, images: ", text, "}")));
  }
}

TEST_CASE("origins stand in one column") {
  const std::string text = config::to_yaml(schema(), resolved("seed: 3", {"optimizer.lr=0.5"}), true);
  std::istringstream lines(text);
  std::set<std::size_t> columns;
  std::map<std::string, std::string> origins;  // by what stands before it
  for (std::string line; std::getline(lines, line);) {
    const std::size_t column = line.find('#');
    if (column == std::string::npos) continue;
    columns.insert(column);
    origins[line.substr(0, line.find_last_not_of(' ', column - 1) + 1)] = line.substr(column + 2);
  }
  CHECK(columns.size() == 1);
  CHECK(origins["devices: auto"] == "default");
  CHECK(origins["seed: 3"] == "run.yaml:1:7");
  CHECK(origins["  name: sgd"] == "default");
  CHECK(origins["  lr: 0.5"] == "--set optimizer.lr=0.5");
  CHECK_THAT(text, !Contains("clip"));
}

TEST_CASE("the JSON Schema says what the reader says") {
  const json root = json::parse(config::json_schema(schema()));
  CHECK(root.at("$schema") == "https://json-schema.org/draft/2020-12/schema");
  CHECK(root.at("additionalProperties") == false);
  const json& properties = root.at("properties");
  CHECK(properties.at("batch_size").at("minimum") == 1);
  CHECK(properties.at("batch_size").at("default") == 256);
  CHECK(properties.at("precision").at("enum") == json({"fp32", "fp64"}));
  const json& optimizer = properties.at("optimizer").at("oneOf");
  CHECK(optimizer.at(0).at("enum") == json({"sgd", "adam", "adamw"}));
  CHECK(optimizer.at(1).at("properties").at("name").at("const") == "sgd");
  CHECK_FALSE(optimizer.at(1).contains("required"));
  CHECK(optimizer.at(2).at("required") == json::array({"name"}));
  CHECK(optimizer.at(2).at("properties").at("betas").at("maxItems") == 2);
  CHECK(optimizer.at(2).at("additionalProperties") == false);
  CHECK(properties.at("clip").at("oneOf").at(0).at("exclusiveMinimum") == 0);
}

TEST_CASE("the option table has a row for every option") {
  const std::string table = config::option_table(schema());
  CHECK_THAT(table, Contains("| `batch_size` | a whole number | `256` | from 1 to 1000000000 | Samples of"));
  CHECK_THAT(table, Contains("| `strategy.name` | one of single, scratch, ddp, zero | `single` |  | How devices"));
  CHECK_THAT(table, Contains("| `optimizer.momentum` (sgd) | a number | `0` | at least 0 and below 1 | A number. |"));
  CHECK_THAT(table, Contains("momentum \\| look"));
  CHECK_THAT(table, Contains("| `init` | text |  |  | "));
}

TEST_CASE("a default of the wrong kind is a bug of ours") {
  const config::Schema wrong = {.top = {{.key = "n", .kind = config::Kind::integer, .fallback = "one", .help = ""}},
                                .sections = {}};
  CHECK_THROWS_AS(config::resolve(wrong, {"run.yaml", "{}"}), InternalError);
}

TEST_CASE("a config is found here, then among the shipped ones") {
  const FileSystem& files = real_file_system();
  CHECK(config::find_config(files, shipped() + "/empty.yaml", "nowhere") == shipped() + "/empty.yaml");
  CHECK(config::find_config(files, "ok_plain", shipped()) == shipped() + "/ok_plain.yaml");
  CHECK(config::find_config(files, "ok_plain.yaml", shipped()) == shipped() + "/ok_plain.yaml");
  CHECK_THROWS_WITH(config::find_config(files, "ok_plan", shipped()), Contains("ok_plan: no such file here or among"));
  CHECK_THROWS_WITH(config::find_config(files, "ok_plan", shipped()), Contains("did you mean ok_plain?"));
  CHECK_THROWS_WITH(config::find_config(files, "none", "nowhere"), Contains("none: no such file"));
  CHECK_THROWS_WITH(config::read_file(files, config::find_config(files, shipped(), "nowhere")),
                    Contains("is a directory"));
}

TEST_CASE("a file of more than 64 KiB is not read") {
  CHECK_THROWS_WITH(config::read_file(real_file_system(), shipped() + "/long_key.yaml"),
                    Contains("larger than 64 KiB"));
  CHECK_THROWS_WITH(config::read_file(real_file_system(), std::string(9000, 'x')), Contains("no such file"));
}

}  // namespace mgt::test
