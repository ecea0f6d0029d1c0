// A resolved configuration: every option has its value and knows where it came from. Built once from file, --set and
// environment, then read-only; any thread may read it.
#pragma once

#include "config/option.h"
#include "core/error.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace mgt::config {

struct Origin {
  enum class Source { fallback, file, set, derived };
  Source source = Source::fallback;
  std::string file;  // as the user named it (of a default too); or the text after --set; or the keys it follows from
  int line = 0;      // 1-based, 0 where there is none
  int column = 0;

  std::string text() const;   // "default", "lenet.yaml:3:5", "--set optimizer.lr=0.1"
  std::string place() const;  // for the front of a message: as text(), but a default is said to be in its file
};

struct Setting {
  Value value;
  Origin origin;
};

// The settings of one section, by key. `name` is among them where the section has variants.
class Section {
 public:
  Section(std::string key, std::map<std::string, Setting> settings)
      : key_(std::move(key)), settings_(std::move(settings)) {}

  const std::map<std::string, Setting>& settings() const { return settings_; }
  bool has(const std::string& key) const;                // declared and with a value
  const Setting& setting(const std::string& key) const;  // InternalError when it is not declared
  const Origin& origin(const std::string& key) const { return setting(key).origin; }

  // The value as its type; InternalError when the option was not declared as that type, or has no value.
  bool boolean(const std::string& key) const { return value_as<bool>(key); }
  int64_t integer(const std::string& key) const { return value_as<int64_t>(key); }
  double number(const std::string& key) const;  // integers count as numbers
  const std::string& text(const std::string& key) const { return value_as<std::string>(key); }
  const std::vector<int64_t>& integers(const std::string& key) const { return value_as<std::vector<int64_t>>(key); }
  const std::vector<double>& numbers(const std::string& key) const { return value_as<std::vector<double>>(key); }
  const DeviceRequest& devices(const std::string& key) const { return value_as<DeviceRequest>(key); }

 private:
  template <typename Type>
  const Type& value_as(const std::string& key) const {
    const Type* value = std::get_if<Type>(&setting(key).value);
    require(value != nullptr, key_ + "." + key + " has a value of the type that is asked for");
    return *value;
  }

  std::string key_;  // "" for the top level
  std::map<std::string, Setting> settings_;
};

class Config {
 public:
  Config(Section top, std::map<std::string, Section> sections) : top_(std::move(top)), sections_(std::move(sections)) {}

  const Section& top() const { return top_; }
  const Section& section(const std::string& key) const;  // InternalError when the schema has none
  const std::map<std::string, Section>& sections() const { return sections_; }

  // The same with another value at a key of the top.
  Config with(const std::string& key, Value value, Origin origin) const;

  // The setting at a dotted key such as "optimizer.lr" or "batch_size".
  const Setting& at(const std::string& dotted_key) const;

  // "lenet.yaml:19:3: optimizer.lr: MESSAGE", with the place that the value came from.
  [[noreturn]] void error_at(const std::string& dotted_key, const std::string& message) const;

 private:
  Section top_;
  std::map<std::string, Section> sections_;
};

}  // namespace mgt::config
