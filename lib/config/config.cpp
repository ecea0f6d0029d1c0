#include "config/config.h"

#include "config/message.h"
#include "core/error.h"
#include "core/text.h"

namespace mgt::config {
namespace {

template <typename Type>
const Type& value_as(const Setting& setting, const std::string& section, const std::string& key) {
  const Type* value = std::get_if<Type>(&setting.value);
  require(value != nullptr, dotted(section, key) + " has no value of the type that was asked for");
  return *value;
}

}  // namespace

std::string Origin::text() const {
  switch (source) {
    case Source::fallback:
      return "default";
    case Source::file:
      return line > 0 ? concat(file, ":", line, ":", column) : file;
    case Source::set:
      return "--set " + file;
    case Source::environment:
      return "environment " + file;
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

const Origin& Section::origin(const std::string& key) const { return setting(key).origin; }

bool Section::boolean(const std::string& key) const { return value_as<bool>(setting(key), key_, key); }

int64_t Section::integer(const std::string& key) const { return value_as<int64_t>(setting(key), key_, key); }

double Section::number(const std::string& key) const {
  const Setting& found = setting(key);
  if (const auto* integer = std::get_if<int64_t>(&found.value)) return static_cast<double>(*integer);
  return value_as<double>(found, key_, key);
}

const std::string& Section::text(const std::string& key) const {
  return value_as<std::string>(setting(key), key_, key);
}

const std::vector<int64_t>& Section::integers(const std::string& key) const {
  return value_as<std::vector<int64_t>>(setting(key), key_, key);
}

const std::vector<double>& Section::numbers(const std::string& key) const {
  return value_as<std::vector<double>>(setting(key), key_, key);
}

const std::vector<std::string>& Section::texts(const std::string& key) const {
  return value_as<std::vector<std::string>>(setting(key), key_, key);
}

const DeviceRequest& Section::devices(const std::string& key) const {
  return value_as<DeviceRequest>(setting(key), key_, key);
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
  const std::string key = dot == std::string::npos ? dotted_key : dotted_key.substr(dot + 1);
  const auto found = owner.settings().find(key);
  require(found != owner.settings().end(), "no option " + dotted_key + " is declared");
  return found->second;
}

void Config::error_at(const std::string& dotted_key, const std::string& message) const {
  fail(at(dotted_key).origin, dotted_key, message);
}

}  // namespace mgt::config
