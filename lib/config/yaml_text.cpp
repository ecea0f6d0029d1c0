#include "config/yaml_text.h"

#include "config/message.h"
#include "core/text.h"

#include <iomanip>
#include <sstream>

namespace mgt::config {
namespace {

// Length of the well-formed character at the front of `text` (Unicode Standard, table 3-7); 0 when there is none.
std::size_t character_length(std::string_view text) {
  const auto byte = [text](std::size_t index) -> unsigned {
    return index < text.size() ? static_cast<unsigned char>(text[index]) : 0;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  const unsigned lowest = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned highest = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (byte(1) < lowest || byte(1) > highest) return 0;
  for (std::size_t index = 2; index < length; ++index) {
    if (!is_continuation(static_cast<unsigned char>(byte(index)))) return 0;
  }
  return length;
}

// The length of the longest well-formed front of `text`.
std::size_t well_formed_length(std::string_view text) {
  std::size_t position = 0;
  while (position < text.size()) {
    const std::size_t length = character_length(text.substr(position));
    if (length == 0) break;
    position += length;
  }
  return position;
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

}  // namespace

bool is_utf8(std::string_view text) { return well_formed_length(text) == text.size(); }
bool is_control(unsigned char byte) { return byte < 0x20 || byte == 0x7F; }
bool is_continuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

Origin origin_at(const Origin& base, int line, int column) {
  Origin origin = base;
  if (base.source == Origin::Source::file) {
    origin.line = line;
    origin.column = column;
  }
  return origin;
}

void check_text(std::string_view text, const Origin& base) {
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (end != std::string_view::npos && !line.empty() && line.back() == '\r') line.remove_suffix(1);
    check_line(line, base, number);
  }
}

}  // namespace mgt::config
