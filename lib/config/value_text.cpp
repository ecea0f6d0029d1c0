#include "config/value_text.h"

#include "core/text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string_view>

namespace mgt::config {
namespace {

std::string bound_text(double bound) {
  constexpr double kExact = 1e15;
  if (bound == std::floor(bound) && std::abs(bound) < kExact) return std::to_string(static_cast<int64_t>(bound));
  return shortest(bound);
}

std::string list_text(const Option& option, const std::string& elements) {
  return concat("a list of ", option.length ? concat(*option.length, " ") : "", elements);
}

// Words that some YAML reader takes for something other than text.
bool is_reserved(std::string word) {
  constexpr std::array<std::string_view, 9> kReserved = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"};
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::find(kReserved.begin(), kReserved.end(), word) != kReserved.end();
}

bool is_plain(std::string_view text) {
  const bool starts_well = !text.empty() && (std::isalpha(static_cast<unsigned char>(text.front())) != 0 ||
                                             text.front() == '/' || text.starts_with("./") || text.starts_with("../"));
  return starts_well && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return c < 0x80 && (std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.' || c == '/');
         });
}

// A JSON string is a double-quoted YAML scalar.
std::string text_as_yaml(const std::string& text) {
  return is_plain(text) && !is_reserved(text) ? text : nlohmann::json(text).dump();
}

// YAML 1.1 readers take "1e-08" for text: it needs a point.
std::string number_as_yaml(double value) {
  std::string text = shortest(value);
  const std::size_t exponent = text.find('e');
  if (exponent != std::string::npos && text.find('.') == std::string::npos) text.insert(exponent, ".0");
  return text;
}

struct ToYaml {
  std::string operator()(std::monostate) const { return ""; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return number_as_yaml(value); }
  std::string operator()(const std::string& value) const { return text_as_yaml(value); }
  std::string operator()(const DeviceRequest& value) const {
    if (value.automatic) return "auto";
    return value.names.empty() ? std::to_string(value.count) : "[" + join(value.names) + "]";
  }
  template <typename Element>
  std::string operator()(const std::vector<Element>& values) const {
    std::vector<std::string> texts;
    for (const Element& value : values) texts.push_back((*this)(value));
    return "[" + join(texts) + "]";
  }
};

}  // namespace

std::string wanted(const Option& option) {
  switch (option.kind) {
    case Kind::boolean:
      return "true or false";
    case Kind::integer:
      return "a whole number";
    case Kind::number:
      return "a number";
    case Kind::text:
      return option.choices.empty() ? "text" : "one of " + join(option.choices);
    case Kind::integers:
      return list_text(option, "whole numbers");
    case Kind::numbers:
      return list_text(option, "numbers");
    case Kind::devices:
      return "auto, a count, or a list of names such as [cuda:0, cuda:1]";
  }
  return {};
}

std::string range_text(const Bounds& bounds) {
  if (bounds.at_least && bounds.at_most) {
    return concat("from ", bound_text(*bounds.at_least), " to ", bound_text(*bounds.at_most));
  }
  std::vector<std::string> parts;
  if (bounds.at_least) parts.push_back("at least " + bound_text(*bounds.at_least));
  if (bounds.above) parts.push_back("above " + bound_text(*bounds.above));
  if (bounds.at_most) parts.push_back("at most " + bound_text(*bounds.at_most));
  if (bounds.below) parts.push_back("below " + bound_text(*bounds.below));
  return join(parts, " and ");
}

std::string yaml_text(const Value& value) { return std::visit(ToYaml{}, value); }

}  // namespace mgt::config
