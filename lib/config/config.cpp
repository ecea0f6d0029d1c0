#include "config/config.h"

#include "config/message.h"
#include "core/text.h"

namespace mgt::config {

std::string Origin::text() const {
  switch (source) {
    case Source::fallback:
      return "default";
    case Source::file:
      return line > 0 ? concat(file, ":", line, ":", column) : file;
    case Source::set:
      return "--set " + file;
    case Source::derived:
      return "from " + file;
  }
  return {};
}

std::string Origin::place() const { return source == Source::fallback && !file.empty() ? file : text(); }

const Setting& Section::setting(const std::string& key) const {
  const auto found = settings_.find(key);
  require(found != settings_.end(), "no option " + dotted(key_, key) + " is declared");
  return found->second;
}

bool Section::has(const std::string& key) const {
  const auto found = settings_.find(key);
  return found != settings_.end() && !std::holds_alternative<std::monostate>(found->second.value);
}

double Section::number(const std::string& key) const {
  const auto* integer = std::get_if<int64_t>(&setting(key).value);
  return integer != nullptr ? static_cast<double>(*integer) : value_as<double>(key);
}

const Section& Config::section(const std::string& key) const {
  const auto found = sections_.find(key);
  require(found != sections_.end(), "no section " + key + " is declared");
  return found->second;
}

Config Config::with(const std::string& key, Value value, Origin origin) const {
  std::map<std::string, Setting> settings = top_.settings();
  settings[key] = {std::move(value), std::move(origin)};
  return {Section("", std::move(settings)), sections_};
}

const Setting& Config::at(const std::string& dotted_key) const {
  const std::size_t dot = dotted_key.find('.');
  const Section& owner = dot == std::string::npos ? top_ : section(dotted_key.substr(0, dot));
  return owner.setting(dot == std::string::npos ? dotted_key : dotted_key.substr(dot + 1));
}

void Config::error_at(const std::string& dotted_key, const std::string& message) const {
  fail(at(dotted_key).origin, dotted_key, message);
}

}  // namespace mgt::config
