// The config files of tests/cases/6_bad_inputs: each ends with the exit code, the words and the line that its case
// names.
#include "config_schema.h"
#include "test.h"

#include "config/reader.h"
#include "config/writer.h"
#include "core/error.h"
#include "core/text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>

namespace mgt::test {
namespace {

using nlohmann::json;

// Cases of options that the schema of these tests does not have.
const std::map<std::string, std::string> kSkipped = {
    {"config/batch_contradiction.yaml", "micro_batch belongs to the module that cuts batches"},
    {"config/hybrid_product.yaml", "the hybrid strategy checks its own degrees"},
    {"config/more_stages_than_layers.yaml", "the pipeline strategy checks its own stages"},
    {"config/warmup_longer_than_run.yaml", "schedules need the number of steps of the run"},
};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

bool has_word(const std::string& message, const json& word) {
  if (word.is_string()) return lower(message).find(lower(word.get<std::string>())) != std::string::npos;
  return std::any_of(word.begin(), word.end(), [&](const json& any) { return has_word(message, any); });
}

// The line in "FILE:LINE:COLUMN: ..."; 0 where there is none.
int line_of(const std::string& message) {
  std::smatch match;
  return std::regex_search(message, match, std::regex(R"(\.yaml:(\d+):\d+: )")) ? std::stoi(match[1]) : 0;
}

bool has_line(const std::string& message, const json& expected) {
  if (expected.is_number()) return line_of(message) == expected.get<int>();
  return std::any_of(expected.begin(), expected.end(), [&](const json& any) { return has_line(message, any); });
}

// A copy of the config cases that a test may add files to.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "mgt_config_XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
    std::filesystem::copy(cases() + "/6_bad_inputs/config", path_ / "config", std::filesystem::copy_options::recursive);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string file(const std::string& name) const { return (path_ / name).string(); }
  void make(const std::string& command) const {
    REQUIRE(std::system(("cd '" + file("config") + "' && " + command).c_str()) == 0);
  }

 private:
  std::filesystem::path path_;
};

json config_cases() {
  std::ifstream stream(cases() + "/6_bad_inputs/bad_inputs.json");
  json chosen = json::array();
  for (const json& item : json::parse(stream)) {
    if (item.at("kind") == "config") chosen.push_back(item);
  }
  return chosen;
}

}  // namespace

TEST_CASE("every bad config file ends with the error that its case names") {
  const Folder folder;
  for (const json& item : config_cases()) {
    const std::string file = item.at("file");
    if (kSkipped.contains(file)) continue;
    if (item.contains("make")) folder.make(item.at("make"));
    int code = 0;
    std::string message;
    try {
      config::resolve(schema(), config::read_file(real_file_system(), folder.file(file)));
    } catch (const Error& error) {
      code = static_cast<int>(error.code());
      message = error.what();
    }
    INFO(file << ": " << message);
    CHECK(code == item.at("expect_exit"));
    CHECK(message.size() < 2000);
    CHECK(message.find('\n') == std::string::npos);
    for (const json& word : item.at("expect_words")) CHECK(has_word(message, word));
    if (item.contains("expect_line")) CHECK(has_line(message, item.at("expect_line")));
  }
}

TEST_CASE("what the good config files resolve to is written and read back to the same values") {
  int count = 0;
  for (const json& item : config_cases()) {
    if (item.at("expect_exit") != 0) continue;
    const std::string path = cases() + "/6_bad_inputs/" + item.at("file").get<std::string>();
    const config::Config first = config::resolve(schema(), config::read_file(real_file_system(), path));
    const std::string text = config::to_yaml(schema(), first, true);
    INFO(text);
    const config::Config second = resolved(text);
    for (const auto& [key, setting] : first.top().settings())
      CHECK(second.top().settings().at(key).value == setting.value);
    for (const auto& [name, section] : first.sections()) {
      for (const auto& [key, setting] : section.settings()) {
        CHECK(second.section(name).settings().at(key).value == setting.value);
      }
    }
    ++count;
  }
  CHECK(count == 7);
}

}  // namespace mgt::test
