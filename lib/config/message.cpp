#include "config/message.h"

#include "core/error.h"
#include "core/text.h"

#include <algorithm>

namespace mgt::config {
namespace {

constexpr std::size_t kPlaceLimit = 300;
constexpr std::size_t kKeyLimit = 120;

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

}  // namespace

bool is_control(unsigned char byte) { return byte < 0x20 || byte == 0x7F; }
bool is_continuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

std::size_t well_formed_length(std::string_view text) {
  std::size_t position = 0;
  while (position < text.size()) {
    const std::size_t length = character_length(text.substr(position));
    if (length == 0) break;
    position += length;
  }
  return position;
}

std::string printable(std::string_view text, std::size_t limit) {
  std::string result(text);
  const bool broken = well_formed_length(text) < text.size();
  std::replace_if(
      result.begin(), result.end(),
      [broken](unsigned char byte) { return is_control(byte) || (broken && byte >= 0x80); }, '?');
  if (result.size() <= limit) return result;
  while (limit > 0 && is_continuation(result[limit])) --limit;
  return shortened(result, limit);
}

std::string in_quotes(std::string_view text) { return "'" + printable(text) + "'"; }

void fail(const Origin& origin, std::string_view key, const std::string& message) {
  std::string line = printable(origin.place(), kPlaceLimit) + ": ";
  if (!key.empty()) line += printable(key, kKeyLimit) + ": ";
  throw ConfigError(line + message);
}

std::string dotted(std::string_view section, std::string_view key) {
  return section.empty() ? std::string(key) : concat(section, ".", key);
}

}  // namespace mgt::config
