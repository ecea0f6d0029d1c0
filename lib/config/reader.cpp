#include "config/reader.h"

#include "config/message.h"
#include "config/override.h"
#include "config/schema_lookup.h"
#include "config/suggestion.h"
#include "config/value.h"
#include "config/yaml.h"
#include "core/error.h"
#include "core/text.h"

namespace mgt::config {
namespace {

using Settings = std::map<std::string, Setting>;

Origin default_origin(const std::string& file) { return {Origin::Source::fallback, file}; }

void add_defaults(const std::vector<Option>& options, const std::string& file, Settings& settings) {
  for (const Option& option : options) {
    if (!settings.contains(option.key)) settings[option.key] = {fallback_of(option), default_origin(file)};
  }
}

// What a section's `name` says, or its default.
Setting chosen_name(const SectionSpec& section, const Node& map, const std::string& file) {
  const std::string key = dotted(section.key, "name");
  const std::string choices = "one of " + join(variant_names(section));
  const Node* name = find_child(map, "name");
  if (name == nullptr) {
    if (section.fallback.empty()) fail(default_origin(file), key, "is missing; choose " + choices);
    require(find_variant(section, section.fallback) != nullptr, "the default of " + key + " is a variant");
    return {section.fallback, default_origin(file)};
  }
  if (find_variant(section, text_of(*name, key, choices)) == nullptr) fail_unknown_variant(section, *name);
  return {name->text, name->origin};
}

// `given` is null where neither file nor --set has the section.
Section resolve_section(const Schema& schema, const SectionSpec& section, const Node* given, const std::string& file) {
  const Node map = given == nullptr ? Node{} : map_of(section, *given);
  Settings settings;
  const Variant* variant = nullptr;
  Origin name_origin;
  if (!section.variants.empty()) {
    const Setting name = chosen_name(section, map, file);
    name_origin = name.origin;
    variant = find_variant(section, std::get<std::string>(name.value));
    settings["name"] = name;
  }
  const std::vector<Option> options = options_of(section, variant);
  for (const Node& entry : map.children) {
    if (variant != nullptr && entry.key == "name") continue;
    const Option* option = find_option(options, entry.key);
    if (option == nullptr) fail_unknown_option(schema, section, variant, name_origin, entry);
    settings[entry.key] = {value_of(*option, entry, dotted(section.key, entry.key)), entry.origin};
  }
  add_defaults(options, file, settings);
  return {section.key, std::move(settings)};
}

Config resolve_tree(const Schema& schema, const Node& root, const std::string& file) {
  Settings top;
  std::map<std::string, Section> sections;
  for (const Node& entry : root.children) {
    if (const Option* option = find_option(schema.top, entry.key)) {
      top[entry.key] = {value_of(*option, entry, entry.key), entry.origin};
    } else if (const SectionSpec* section = find_section(schema, entry.key)) {
      sections.emplace(section->key, resolve_section(schema, *section, &entry, file));
    } else {
      fail_unknown_key(schema, entry);
    }
  }
  add_defaults(schema.top, file, top);
  for (const SectionSpec& section : schema.sections) {
    if (!sections.contains(section.key)) {
      sections.emplace(section.key, resolve_section(schema, section, nullptr, file));
    }
  }
  return {Section("", std::move(top)), std::move(sections)};
}

void check_variants(const Schema& schema, const Config& config) {
  for (const SectionSpec& section : schema.sections) {
    if (section.variants.empty()) continue;
    const Variant* variant = find_variant(section, config.section(section.key).text("name"));
    if (variant->check) variant->check(config);
  }
}

}  // namespace

Config resolve(const Schema& schema, const Source& source, const std::vector<std::string>& overrides) {
  Node root = parse_yaml(source.text, {Origin::Source::file, source.name});
  if (root.kind == Node::Kind::null) {
    fail({Origin::Source::file, source.name}, "",
         "the file is empty; a config is a map of keys, such as 'model: lenet'");
  }
  if (root.kind != Node::Kind::map) {
    fail(root.origin, "", "must be a map of keys at the top, such as 'model: lenet'");
  }
  for (const std::string& text : overrides) apply_override(schema, root, text);
  Config config = resolve_tree(schema, root, source.name);
  check_variants(schema, config);
  return config;
}

}  // namespace mgt::config
