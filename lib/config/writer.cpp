#include "config/writer.h"

#include "config/message.h"
#include "config/schema_lookup.h"
#include "config/value_text.h"

#include <algorithm>

namespace mgt::config {
namespace {

struct Line {
  std::string text;
  std::string comment = {};
};

void add_setting(const Section& section, const std::string& key, const std::string& indentation,
                 std::vector<Line>& lines) {
  if (!section.has(key)) return;
  const Setting& setting = section.settings().at(key);
  lines.push_back({indentation + key + ": " + yaml_text(setting.value), setting.origin.text()});
}

void add_section(const SectionSpec& spec, const Section& section, std::vector<Line>& lines) {
  std::vector<Line> inner;
  const Variant* variant = nullptr;
  if (!spec.variants.empty()) {
    add_setting(section, "name", "  ", inner);
    variant = find_variant(spec, section.text("name"));
  }
  for (const Option& option : options_of(spec, variant)) add_setting(section, option.key, "  ", inner);
  if (inner.empty()) return;
  lines.push_back({spec.key + ":"});
  lines.insert(lines.end(), inner.begin(), inner.end());
}

// Characters, not bytes.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](unsigned char byte) { return !is_continuation(byte); }));
}

std::string joined(const std::vector<Line>& lines, bool with_comments) {
  constexpr std::size_t kWidest = 60;  // one long path does not push every comment away
  std::size_t column = 0;
  for (const Line& line : lines) column = std::max(column, std::min(width_of(line.text), kWidest));
  std::string text;
  for (const Line& line : lines) {
    text += line.text;
    if (with_comments && !line.comment.empty()) {
      text += std::string(column - std::min(width_of(line.text), column) + 2, ' ') + "# " + line.comment;
    }
    text += '\n';
  }
  return text;
}

}  // namespace

std::string to_yaml(const Schema& schema, const Config& config, bool with_origins) {
  std::vector<Line> lines;
  for (const Option& option : schema.top) add_setting(config.top(), option.key, "", lines);
  for (const SectionSpec& section : schema.sections) add_section(section, config.section(section.key), lines);
  return joined(lines, with_origins);
}

}  // namespace mgt::config
