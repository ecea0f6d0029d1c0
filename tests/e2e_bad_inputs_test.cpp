// Every case of tests/cases/6_bad_inputs through the built program: exit code, words, line, and nothing left behind.
#include "process.h"
#include "temporary_folder.h"
#include "test.h"

#include "core/split.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <vector>

namespace mgt::test {
namespace {

using nlohmann::json;

constexpr double kMostCpu_s = 5;  // most of it is loading LibTorch; a bomb or a loop takes more

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// A word, or a list of which one must be there; case does not matter.
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

std::set<std::string> paths_in(const std::string& folder) {
  std::set<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) paths.insert(entry.path().string());
  return paths;
}

std::vector<std::string> new_paths(const std::set<std::string>& before, const std::set<std::string>& after) {
  std::vector<std::string> added;
  std::set_difference(after.begin(), after.end(), before.begin(), before.end(), std::back_inserter(added));
  return added;
}

std::vector<std::string> command_for(const json& item) {
  const std::string file = std::filesystem::path(item.at("file").get<std::string>()).filename().string();
  std::vector<std::string> command = {mgt::test::program(), "train", "--config", item.value("config", file)};
  json overrides = item.value("set", json::object());
  overrides["threads"] = 1;  // tests run beside others
  for (const auto& [key, value] : overrides.items()) {
    command.insert(command.end(), {"--set", key + "=" + (value.is_string() ? value.get<std::string>() : value.dump())});
  }
  return command;
}

// The message of the error, which is the last line and the only one of its kind; empty where there is none.
std::string error_in(const std::string& err) {
  const std::string mark = "mgt: error: ";
  const std::size_t begin = err.find(mark);
  if (begin == std::string::npos) return "";
  const std::string message = err.substr(begin + mark.size());
  CHECK(message.find('\n') == message.size() - 1);
  return message;
}

void check_refused(const json& item, const std::string& message) {
  CHECK(!message.empty());
  CHECK(message.size() < 2000);
  for (const json& word : item.at("expect_words")) CHECK(has_word(message, word));
  if (item.contains("expect_line")) CHECK(has_line(message, item.at("expect_line")));
}

void check_case(const json& item, const TemporaryFolder& folder) {
  const std::string run_in = folder.file(item.at("run_in"));
  if (item.contains("make")) {
    REQUIRE(run({"/bin/sh", "-c", item.at("make")}, run_in).exit == 0);
  }
  const std::set<std::string> before = paths_in(folder.path());
  const Result result = run(command_for(item), run_in);
  INFO(item.at("file") << " (" << item.at("why") << "): exit " << result.exit << "\n" << result.out << result.err);
  const int expected = item.at("expect_exit");
  CHECK((result.exit == expected || result.exit == item.value("expect_exit_or", expected)));
  CHECK(result.cpu_s < kMostCpu_s);
  if (result.exit != 0) check_refused(item, error_in(result.err));
  if (result.exit == 0) std::filesystem::remove_all(run_in + "/runs");  // all that a run may write
  CHECK(new_paths(before, paths_in(folder.path())) == std::vector<std::string>{});
}

std::vector<json> cases_of(const std::string& kind) {
  std::ifstream stream(cases() + "/6_bad_inputs/bad_inputs.json");
  std::vector<json> chosen;
  for (const json& item : json::parse(stream)) {
    if (item.at("kind") == kind) chosen.push_back(item);
  }
  return chosen;
}

// One of several parts of a kind's cases: parts may run at the same time.
void check_part(const std::string& kind, int64_t part, int64_t parts) {
  const std::vector<json> all = cases_of(kind);
  CHECK(all.size() >= 27);
  const TemporaryFolder folder;
  for (const char* const name : {"1_trajectories", "6_bad_inputs"}) {  // the first has the good data
    std::filesystem::copy(cases() + "/" + name, folder.file(name), std::filesystem::copy_options::recursive);
  }
  const Range range = split(static_cast<int64_t>(all.size()), parts, part - 1);
  for (int64_t i = range.begin; i < range.end; ++i) check_case(all[static_cast<std::size_t>(i)], folder);
}

}  // namespace

TEST_CASE("bad configs end the program as their cases say, part 1 of 4") { check_part("config", 1, 4); }
TEST_CASE("bad configs end the program as their cases say, part 2 of 4") { check_part("config", 2, 4); }
TEST_CASE("bad configs end the program as their cases say, part 3 of 4") { check_part("config", 3, 4); }
TEST_CASE("bad configs end the program as their cases say, part 4 of 4") { check_part("config", 4, 4); }
TEST_CASE("bad data files end the program as their cases say, part 1 of 2") { check_part("data", 1, 2); }
TEST_CASE("bad data files end the program as their cases say, part 2 of 2") { check_part("data", 2, 2); }
TEST_CASE("bad files of weights end the program as their cases say, part 1 of 2") { check_part("checkpoint", 1, 2); }
TEST_CASE("bad files of weights end the program as their cases say, part 2 of 2") { check_part("checkpoint", 2, 2); }

}  // namespace mgt::test
