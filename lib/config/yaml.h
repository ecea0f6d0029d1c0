// YAML text as a small tree that remembers where everything stood. Stricter than YAML: no anchors, aliases, tags, merge
// keys, second documents or duplicate keys, and little nesting. Internal to config. Pure functions and values.
#pragma once

#include "config/config.h"

#include <string>
#include <string_view>
#include <vector>

namespace mgt::config {

struct Node {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  Origin origin;
  std::string text;            // of a scalar
  bool quoted = false;         // a scalar that can only be text
  std::vector<Node> children;  // of a list or a map, in the order of the text
  std::string key;             // of a map's child
  Origin key_origin;
};

// The child of a map; null when there is none.
const Node* find_child(const Node& map, std::string_view key);

// `base` says where the text comes from, `key` the dotted key that it is the value of ("" for a file). A text without
// content is a null node.
Node parse_yaml(std::string_view text, const Origin& base, const std::string& key = "");

}  // namespace mgt::config
