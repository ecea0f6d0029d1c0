#include "config/reader.h"

#include "config/message.h"
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

struct Override {
  std::string key;
  Node value;
};

Override parse_override(const std::string& text) {
  constexpr std::size_t kLongest = 100;
  const Origin origin{Origin::Source::set, printable(text, kLongest)};
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) fail(origin, "", "not of the form KEY=VALUE, as in optimizer.lr=0.1");
  const std::string key = text.substr(0, equals);
  const std::string value_text = text.substr(equals + 1);
  Node value = parse_yaml(value_text, origin, key);
  const bool is_null_word = value_text == "null" || value_text == "~";
  if (value.kind == Node::Kind::null && !is_null_word) {
    fail(origin, key, "there is no value after '='; write one, or null for the default");
  }
  value.key_origin = origin;
  return {key, std::move(value)};
}

void remove(Node& map, const std::string& key) {
  std::erase_if(map.children, [&key](const Node& child) { return child.key == key; });
}

Node& put(Node& map, const std::string& key, Node value) {
  value.key = key;
  remove(map, key);
  return map.children.emplace_back(std::move(value));
}

void put_or_remove(const Schema& schema, Node& map, const Override& change, const std::string& key) {
  // An unknown key stays, for the reader to refuse it.
  if (change.value.kind == Node::Kind::null && is_known_key(schema, change.key)) {
    remove(map, key);
  } else {
    put(map, key, change.value);
  }
}

// The section's map in the tree, made where the file has none or a scalar.
Node& section_map(const SectionSpec& section, Node& root, const Origin& origin) {
  if (const Node* old = find_child(root, section.key)) return put(root, section.key, map_of(section, *old));
  return put(root, section.key, {.kind = Node::Kind::map, .origin = origin, .key_origin = origin});
}

// Puts VALUE, which is YAML, in the place of what stands at KEY ("batch_size", "strategy", "strategy.stage"); null
// removes the key. Whether the schema has the key, and takes the value, is found when the whole tree is read.
void apply_override(const Schema& schema, Node& root, const std::string& text) {
  const Override change = parse_override(text);
  const std::size_t dot = change.key.find('.');
  if (dot == std::string::npos) return put_or_remove(schema, root, change, change.key);
  const std::string first = change.key.substr(0, dot);
  const Origin& origin = change.value.key_origin;
  if (find_option(schema.top, first) != nullptr) {
    fail(origin, change.key, concat(first, " is one value, not a section; write --set ", first, "=VALUE"));
  }
  const SectionSpec* section = find_section(schema, first);
  if (section == nullptr) {
    put(root, first, change.value);
  } else {
    put_or_remove(schema, section_map(*section, root, origin), change, change.key.substr(dot + 1));
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
