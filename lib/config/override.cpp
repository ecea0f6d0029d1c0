#include "config/override.h"

#include "config/message.h"
#include "config/schema_lookup.h"
#include "config/suggestion.h"
#include "config/value.h"
#include "core/text.h"

#include <vector>

namespace mgt::config {
namespace {

constexpr std::size_t kLongest = 100;

struct Override {
  std::string key;
  Node value;
};

Override parse_override(const std::string& text) {
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
  Node map;
  map.kind = Node::Kind::map;
  map.origin = map.key_origin = origin;
  return put(root, section.key, std::move(map));
}

}  // namespace

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

}  // namespace mgt::config
