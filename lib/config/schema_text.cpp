#include "config/message.h"
#include "config/schema_lookup.h"
#include "config/value.h"
#include "config/value_text.h"
#include "config/writer.h"
#include "core/text.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace mgt::config {
namespace {

using Json = nlohmann::ordered_json;

struct ToJson {
  Json operator()(std::monostate) const { return nullptr; }
  Json operator()(const DeviceRequest& value) const {
    if (value.automatic) return "auto";
    return value.names.empty() ? Json(value.count) : Json(value.names);
  }
  template <typename Type>
  Json operator()(const Type& value) const {
    return value;
  }
};

// A number of the option or of its list.
Json number_schema(const char* type, const Bounds& bounds) {
  Json schema = {{"type", type}};
  if (bounds.at_least) schema["minimum"] = *bounds.at_least;
  if (bounds.at_most) schema["maximum"] = *bounds.at_most;
  if (bounds.above) schema["exclusiveMinimum"] = *bounds.above;
  if (bounds.below) schema["exclusiveMaximum"] = *bounds.below;
  return schema;
}

Json text_schema(const std::vector<std::string>& choices) {
  Json schema = {{"type", "string"}};
  if (!choices.empty()) schema["enum"] = choices;
  return schema;
}

Json list_schema(const Option& option, Json items) {
  Json schema = {{"type", "array"}, {"items", std::move(items)}};
  if (option.length) schema["minItems"] = schema["maxItems"] = *option.length;
  return schema;
}

Json devices_schema(const Bounds& bounds) {
  const Json count = number_schema("integer", bounds);
  const Json name = {{"type", "string"}, {"pattern", "^(cpu|cpu:[0-9]+|cuda:[0-9]+)$"}};
  const Json list = {{"type", "array"}, {"items", {{"oneOf", {count, name}}}}, {"minItems", 1}, {"uniqueItems", true}};
  return {{"oneOf", {Json{{"const", "auto"}}, count, name, list}}};
}

Json type_schema(const Option& option) {
  switch (option.kind) {
    case Kind::boolean:
      return {{"type", "boolean"}};
    case Kind::integer:
      return number_schema("integer", option.bounds);
    case Kind::number:
      return number_schema("number", option.bounds);
    case Kind::text:
      return text_schema(option.choices);
    case Kind::integers:
      return list_schema(option, number_schema("integer", option.bounds));
    case Kind::numbers:
      return list_schema(option, number_schema("number", option.bounds));
    case Kind::devices:
      return devices_schema(option.bounds);
  }
  return {};
}

Json option_schema(const Option& option) {
  Json schema = type_schema(option);
  schema["description"] = option.help;
  const Json fallback = std::visit(ToJson{}, fallback_of(option));
  if (!fallback.is_null()) schema["default"] = fallback;
  for (const Value& example : option.examples) schema["examples"].push_back(std::visit(ToJson{}, example));
  return schema;
}

Json map_schema(const std::string& summary, const std::vector<Option>& options) {
  Json schema = {{"type", "object"}, {"description", summary}, {"properties", Json::object()}};
  for (const Option& option : options) schema["properties"][option.key] = option_schema(option);
  schema["additionalProperties"] = false;
  return schema;
}

Json variant_schema(const SectionSpec& section, const Variant& variant) {
  Json schema = map_schema(variant.summary, options_of(section, &variant));
  schema["properties"]["name"] = {{"const", variant.name}};
  if (variant.name != section.fallback) schema["required"] = {"name"};
  return schema;
}

// The forms that the section may have: the scalar of its main key, and one map per variant.
Json section_schema(const SectionSpec& section) {
  Json forms = Json::array();
  if (!section.variants.empty()) {
    forms.push_back(text_schema(variant_names(section)));
    for (const Variant& variant : section.variants) forms.push_back(variant_schema(section, variant));
  } else {
    const Option* main = find_option(section.options, section.main_key);
    if (main != nullptr) forms.push_back(option_schema(*main));
    forms.push_back(map_schema(section.summary, section.options));
  }
  return {{"description", section.summary}, {"oneOf", forms}};
}

std::string cell(std::string text) {
  for (std::size_t bar = text.find('|'); bar != std::string::npos; bar = text.find('|', bar + 2))
    text.insert(bar, "\\");
  return text;
}

std::string row(const std::string& key, const std::string& type, const std::string& fallback, const std::string& range,
                const std::string& meaning) {
  const std::string fallback_code = fallback.empty() ? "" : "`" + fallback + "`";
  return concat("| ", key, " | ", cell(type), " | ", cell(fallback_code), " | ", range, " | ", cell(meaning), " |\n");
}

// `variant` is empty for an option of every variant.
std::string option_row(const std::string& section, const std::string& variant, const Option& option) {
  const std::string owner = variant.empty() ? "" : concat(" (", variant, ")");
  return row(concat("`", dotted(section, option.key), "`", owner), wanted(option), yaml_text(fallback_of(option)),
             range_text(option.bounds), option.help);
}

std::string section_rows(const SectionSpec& section) {
  std::string rows;
  if (!section.variants.empty()) {
    rows += row(concat("`", section.key, ".name`"), "one of " + join(variant_names(section)), section.fallback, "",
                section.summary);
  }
  for (const Option& option : section.options) rows += option_row(section.key, "", option);
  for (const Variant& variant : section.variants) {
    for (const Option& option : variant.options) rows += option_row(section.key, variant.name, option);
  }
  return rows;
}

}  // namespace

std::string json_schema(const Schema& schema) {
  Json root = map_schema("A run of mgt.", schema.top);
  for (const SectionSpec& section : schema.sections) root["properties"][section.key] = section_schema(section);
  Json named = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", "mgt config"}};
  named.update(root);
  return named.dump(2) + "\n";
}

std::string option_table(const Schema& schema) {
  std::string table = "| key | type | default | range | meaning |\n|---|---|---|---|---|\n";
  for (const Option& option : schema.top) table += option_row("", "", option);
  for (const SectionSpec& section : schema.sections) table += section_rows(section);
  return table;
}

}  // namespace mgt::config
