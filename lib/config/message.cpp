#include "config/message.h"

#include "config/yaml_text.h"
#include "core/error.h"
#include "core/text.h"

#include <algorithm>

namespace mgt::config {
namespace {

constexpr std::size_t kPlaceLimit = 300;
constexpr std::size_t kKeyLimit = 120;

}  // namespace

std::string printable(std::string_view text, std::size_t limit) {
  std::string result(text);
  const bool broken = !is_utf8(text);
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
