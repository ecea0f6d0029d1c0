// The cases of 6_bad_inputs, and whether a message has the words that a case asks for.
#pragma once

#include "test.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace mgt::test {

inline bool has(const std::string& message, const std::string& word) { return message.find(word) != std::string::npos; }

// A word, or a list of which one must be there.
inline bool has_any(const std::string& message, const nlohmann::json& words) {
  if (words.is_string()) return has(message, words.get<std::string>());
  return std::ranges::any_of(words, [&](const auto& word) { return has(message, word.template get<std::string>()); });
}

inline std::vector<nlohmann::json> bad_inputs(const std::string& kind) {
  const auto all = nlohmann::json::parse(std::ifstream(cases() + "/6_bad_inputs/bad_inputs.json"));
  std::vector<nlohmann::json> chosen;
  std::ranges::copy_if(all, std::back_inserter(chosen), [&](const auto& one) { return one["kind"] == kind; });
  return chosen;
}

}  // namespace mgt::test
