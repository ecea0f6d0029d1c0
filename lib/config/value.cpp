#include "config/value.h"

#include "config/message.h"
#include "config/suggestion.h"
#include "config/value_text.h"
#include "core/error.h"
#include "core/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

namespace mgt::config {
namespace {

constexpr double kLargestNumber = 1e30;  // fits into fp32, and so do products with it that are not absurd

std::string described(const Node& node) {
  if (node.kind == Node::Kind::scalar) return (node.quoted ? "the quoted text " : "") + in_quotes(node.text);
  return node.kind == Node::Kind::list ? "a list" : "a map";
}

[[noreturn]] void fail_type(const Node& node, const std::string& key, const std::string& wanted_text) {
  if (node.kind == Node::Kind::null) {
    fail(node.origin, key, concat("has no value; write ", wanted_text, ", or remove the key to take its default"));
  }
  fail(node.origin, key, concat("must be ", wanted_text, ", not ", described(node)));
}

// The node as a plain scalar; quoted ones are text and nothing else.
const std::string& plain_of(const Node& node, const std::string& key, const std::string& wanted_text) {
  if (node.kind != Node::Kind::scalar || node.quoted) fail_type(node, key, wanted_text);
  return node.text;
}

void check_bounds(const Bounds& bounds, double value, const Node& node, const std::string& key) {
  const bool inside = (!bounds.at_least || value >= *bounds.at_least) &&
                      (!bounds.at_most || value <= *bounds.at_most) && (!bounds.above || value > *bounds.above) &&
                      (!bounds.below || value < *bounds.below);
  if (!inside) {
    fail(node.origin, key, concat(printable(node.text), " is out of range; it must be ", range_text(bounds)));
  }
}

// `text` as a number, read to its last character.
template <typename Number>
std::errc read_whole(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end != text.data() + text.size()) return std::errc::invalid_argument;
  return error;
}

template <typename Number>
Number number_of(const Node& node, const std::string& key, const Bounds& bounds, const std::string& wanted_text) {
  const std::string& text = plain_of(node, key, wanted_text);
  Number value{};
  const std::errc error = read_whole(text, value);
  if (error == std::errc::result_out_of_range) {
    fail(node.origin, key, concat(printable(text), " does not fit into 64 bits; write ", wanted_text, " that does"));
  }
  if (error != std::errc{} || !std::isfinite(static_cast<double>(value))) fail_type(node, key, wanted_text);
  if (std::abs(static_cast<double>(value)) > kLargestNumber) {
    fail(node.origin, key, concat(printable(text), " is out of range; it must be at most ", shortest(kLargestNumber)));
  }
  check_bounds(bounds, static_cast<double>(value), node, key);
  return value;
}

bool boolean_of(const Option& option, const Node& node, const std::string& key) {
  const std::string& text = plain_of(node, key, wanted(option));
  if (text != "true" && text != "false") fail_type(node, key, wanted(option));
  return text == "true";
}

std::string choice_of(const Option& option, const Node& node, const std::string& key) {
  const std::string& text = text_of(node, key, wanted(option));
  const auto& choices = option.choices;
  if (!choices.empty() && std::find(choices.begin(), choices.end(), text) == choices.end()) {
    fail(node.origin, key,
         concat("must be one of ", join(choices), ", not ", in_quotes(text), did_you_mean(text, choices)));
  }
  return text;
}

template <typename Number>
std::vector<Number> list_of(const Option& option, const Node& node, const std::string& key, Kind element) {
  if (node.kind != Node::Kind::list) fail_type(node, key, wanted(option));
  if (option.length && node.children.size() != *option.length) {
    fail(node.origin, key, concat("must be ", wanted(option), "; this list has ", node.children.size()));
  }
  const std::string wanted_element = wanted({.kind = element});
  std::vector<Number> values;
  for (const Node& child : node.children) {
    values.push_back(number_of<Number>(child, key, option.bounds, wanted_element));
  }
  return values;
}

// "cpu", "cpu:1", "cuda:0"; 0 is "cuda:0". Numbers are written anew, so that a name has one spelling.
std::string device_name(const Option& option, const Node& node, const std::string& key) {
  std::string_view text = text_of(node, key, wanted(option));
  if (text == "cpu") return "cpu";
  std::string prefix = "cuda:";
  for (const std::string_view candidate : {"cpu:", "cuda:"}) {
    if (text.starts_with(candidate)) {
      prefix = candidate;
      text.remove_prefix(candidate.size());
      break;
    }
  }
  int64_t index = 0;
  if (read_whole(text, index) != std::errc{}) {
    fail(node.origin, key, concat(in_quotes(node.text), " is no device; write a number, cuda:0, cpu or cpu:0"));
  }
  check_bounds(option.bounds, static_cast<double>(index), node, key);
  return prefix + std::to_string(index);
}

DeviceRequest named_devices(const Option& option, const Node& list, const std::string& key) {
  if (list.children.empty())
    fail(list.origin, key, "the list is empty; name at least one device, or write 0 for the CPU");
  DeviceRequest request;
  for (const Node& child : list.children) {
    const std::string name = device_name(option, child, key);
    if (std::find(request.names.begin(), request.names.end(), name) != request.names.end()) {
      fail(child.origin, key,
           concat(name, " is named twice; ",
                  name == "cpu" ? "write cpu:0, cpu:1 for several ranks on the CPU" : "name each device once"));
    }
    request.names.push_back(name);
  }
  return request;
}

DeviceRequest devices_of(const Option& option, const Node& node, const std::string& key) {
  if (node.kind == Node::Kind::list) return named_devices(option, node, key);
  const std::string& text = text_of(node, key, wanted(option));
  DeviceRequest request;
  if (text == "auto") {
    request.automatic = true;
  } else if (!text.empty() && text.find_first_not_of("-0123456789") == std::string::npos) {
    request.count = number_of<int64_t>(node, key, option.bounds, "a count");
  } else {
    request.names = {device_name(option, node, key)};
  }
  return request;
}

}  // namespace

Node map_of(const SectionSpec& section, const Node& node) {
  if (node.kind == Node::Kind::map) return node;
  if (node.kind != Node::Kind::scalar || section.main_key.empty()) fail_type(node, section.key, "a map of keys");
  Node map{.kind = Node::Kind::map, .origin = node.origin, .key = node.key, .key_origin = node.key_origin};
  map.children = {node};
  map.children.front().key = section.main_key;
  map.children.front().key_origin = node.origin;
  return map;
}

const std::string& text_of(const Node& node, const std::string& key, const std::string& wanted_text) {
  if (node.kind != Node::Kind::scalar) fail_type(node, key, wanted_text);
  return node.text;
}

Value value_of(const Option& option, const Node& node, const std::string& key) {
  switch (option.kind) {
    case Kind::boolean:
      return boolean_of(option, node, key);
    case Kind::integer:
      return number_of<int64_t>(node, key, option.bounds, wanted(option));
    case Kind::number:
      return number_of<double>(node, key, option.bounds, wanted(option));
    case Kind::text:
      return choice_of(option, node, key);
    case Kind::integers:
      return list_of<int64_t>(option, node, key, Kind::integer);
    case Kind::numbers:
      return list_of<double>(option, node, key, Kind::number);
    case Kind::devices:
      return devices_of(option, node, key);
  }
  return {};
}

Value fallback_of(const Option& option) {
  const Value& fallback = option.fallback;
  if (std::holds_alternative<std::monostate>(fallback)) return fallback;
  const auto* integer = std::get_if<int64_t>(&fallback);
  if (option.kind == Kind::number && integer != nullptr) return static_cast<double>(*integer);
  // Value lists the kinds' types in the order of Kind, after monostate.
  const std::size_t kind_index = static_cast<std::size_t>(option.kind) + 1;
  require(fallback.index() == kind_index, "the default of " + option.key + " is not of its kind");
  return fallback;
}

}  // namespace mgt::config
