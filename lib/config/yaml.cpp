#include "config/yaml.h"

#include "config/message.h"
#include "core/text.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <iomanip>
#include <optional>
#include <set>
#include <sstream>

namespace mgt::config {
namespace {

constexpr std::size_t kDeepest = 16;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// `base` with the place inside its file; a value of --set has no lines.
Origin origin_at(const Origin& base, int line, int column) {
  Origin origin = base;
  if (base.source == Origin::Source::file) {
    origin.line = line;
    origin.column = column;
  }
  return origin;
}

Origin origin_of(const Origin& base, const YAML::Mark& mark) {
  return mark.is_null() ? base : origin_at(base, mark.line + 1, mark.column + 1);
}

std::string hexadecimal(char byte) {
  std::ostringstream out;
  out << "0x" << std::hex << std::uppercase << std::setw(2) << std::setfill('0')
      << static_cast<unsigned>(static_cast<unsigned char>(byte));
  return out.str();
}

void check_line(std::string_view line, const Origin& base, int number) {
  const auto origin = [&](std::size_t index) { return origin_at(base, number, static_cast<int>(index) + 1); };
  const std::size_t broken = well_formed_length(line);
  if (broken < line.size()) {
    fail(origin(broken), "", concat("byte ", hexadecimal(line[broken]), " is not UTF-8; write the text as UTF-8"));
  }
  for (std::size_t index = 0; index < line.size(); ++index) {
    if (line[index] != '\t' && is_control(static_cast<unsigned char>(line[index]))) {
      fail(origin(index), "", concat("control character ", hexadecimal(line[index]), " in the text; remove it"));
    }
  }
  const std::size_t content = line.find_first_not_of(" \t");
  const std::size_t tab = line.find('\t');
  if (content != std::string_view::npos && line[content] != '#' && tab < content) {
    fail(origin(tab), "", "a tab as indentation; indent with spaces");
  }
}

// ConfigError when the text is no UTF-8, holds a control character, or a line is indented with a tab.
void check_text(std::string_view text, const Origin& base) {
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (end != std::string_view::npos && !line.empty() && line.back() == '\r') line.remove_suffix(1);
    check_line(line, base, number);
  }
}

// Builds the tree from the parser's events. The parser reports a list or map before it descends into it, so refusing
// the event also bounds the parser's own recursion.
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const Origin& base) : base_(base) {}

  Node take_root() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (started_) refuse(mark, "a second document or stray text starts here; one file is one document, without '---'");
    started_ = true;
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(make(Node::Kind::null, mark, "", anchor)); }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, "aliases (*name) are not supported; write the value out");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    // The parser gives quoted scalars the tag "!".
    const bool was_quoted = tag == "!";
    Node node = make(Node::Kind::scalar, mark, was_quoted ? "" : tag, anchor);
    if (std::any_of(value.begin(), value.end(), is_control)) {
      refuse(mark, in_quotes(value) + " holds a line break or control character; write it on one line");
    }
    node.text = value;
    node.quoted = was_quoted;
    add(std::move(node));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(make(Node::Kind::list, mark, tag, anchor), mark);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(make(Node::Kind::map, mark, tag, anchor), mark);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Node node;
    std::optional<Node> key = {};  // in a map: read, and waiting for its value
  };

  [[noreturn]] void refuse(const YAML::Mark& mark, const std::string& message) const {
    fail(origin_of(base_, mark), "", message);
  }

  Node make(Node::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) const {
    if (anchor != YAML::NullAnchor) refuse(mark, "anchors (&name) are not supported; write the value out");
    // "?" is the parser's word for a node without a tag.
    if (!tag.empty() && tag != "?")
      refuse(mark, "tags such as !!str are not supported; remove the tag " + in_quotes(tag));
    Node node;
    node.kind = kind;
    node.origin = origin_of(base_, mark);
    return node;
  }

  void open(Node node, const YAML::Mark& mark) {
    if (open_.size() == kDeepest) refuse(mark, concat("nested deeper than ", kDeepest, " levels; remove brackets"));
    open_.push_back({std::move(node)});
  }

  void close() {
    Node node = std::move(open_.back().node);
    open_.pop_back();
    add(std::move(node));
  }

  void add(Node node) {
    if (open_.empty()) {
      root_ = std::move(node);
    } else if (open_.back().node.kind == Node::Kind::list) {
      open_.back().node.children.push_back(std::move(node));
    } else if (!open_.back().key) {
      if (node.kind != Node::Kind::scalar) fail(node.origin, "", "a key must be a word, not a list, map or nothing");
      open_.back().key = std::move(node);
    } else {
      add_to_map(open_.back(), std::move(node));
    }
  }

  static void add_to_map(Open& map, Node node) {
    node.key = std::move(map.key->text);
    node.key_origin = std::move(map.key->origin);
    map.key.reset();
    // The parser places a missing value at whatever follows it.
    if (node.kind == Node::Kind::null) node.origin = node.key_origin;
    map.node.children.push_back(std::move(node));
  }

  Origin base_;
  std::vector<Open> open_;
  Node root_;
  bool started_ = false;
};

void check_keys(const Node& node, const std::string& path) {
  std::set<std::string_view> seen;
  for (const Node& child : node.children) {
    const bool in_map = node.kind == Node::Kind::map;
    const std::string key = in_map ? dotted(path, child.key) : path;
    if (in_map && child.key == "<<") {
      fail(child.key_origin, key, "merge keys (<<) are not supported; write the keys out");
    }
    if (in_map && !seen.insert(child.key).second) {
      const int first = find_child(node, child.key)->key_origin.line;
      fail(child.key_origin, key,
           concat("the key stands here twice", first > 0 ? concat(" (first on line ", first, ")") : "", "; keep one"));
    }
    check_keys(child, key);
  }
}

}  // namespace

const Node* find_child(const Node& map, std::string_view key) {
  const auto found =
      std::find_if(map.children.begin(), map.children.end(), [key](const Node& child) { return child.key == key; });
  return found == map.children.end() ? nullptr : &*found;
}

Node parse_yaml(std::string_view text, const Origin& base, const std::string& key) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  check_text(text, base);
  std::istringstream stream{std::string(text)};
  TreeBuilder builder(base);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    fail(origin_of(base, error.mark), "",
         concat("not valid YAML: ", printable(error.msg, 200), "; check indentation, brackets and quotes"));
  }
  Node root = builder.take_root();
  check_keys(root, key);
  return root;
}

}  // namespace mgt::config
