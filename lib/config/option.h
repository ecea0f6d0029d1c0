// What may stand in a config file, as data: each option is declared once, and that one place gives the YAML reader, the
// range check, --set, `config show`, the JSON Schema and the option table of the documentation.
// Values, built once at start and never changed; any thread may read them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace mgt::config {

class Config;

// `devices:` as the user wrote it: auto, a count, or a list of names (numbers stand for GPUs: 0 is "cuda:0").
struct DeviceRequest {
  bool automatic = false;
  int64_t count = 0;                    // when neither automatic nor named
  std::vector<std::string> names = {};  // "cuda:0", "cpu:1", "cpu"; without duplicates
  bool operator==(const DeviceRequest&) const = default;
};

// monostate: the option has no value (it is optional and was not given).
using Value = std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<int64_t>,
                           std::vector<double>, DeviceRequest>;

enum class Kind { boolean, integer, number, text, integers, numbers, devices };

// Bounds that every number of the option keeps (each element of a list). `above` and `below` are exclusive.
struct Bounds {
  std::optional<double> at_least = {};
  std::optional<double> at_most = {};
  std::optional<double> above = {};
  std::optional<double> below = {};
};

struct Option {
  std::string key;
  Kind kind = Kind::text;
  Value fallback;    // monostate: no default
  std::string help;  // one line, for schema and documentation
  Bounds bounds = {};
  std::vector<std::string> choices = {};   // for texts: what is allowed; empty: anything
  std::optional<std::size_t> length = {};  // for lists: the exact number of elements
  std::vector<Value> examples = {};        // other values worth trying: shown in the schema, walked by `verify --all`
};

// Options of the common kinds; `{}` as fallback: no default.
template <typename Type>
Option option_of(Kind kind, std::string key, const std::optional<Type>& fallback, std::string help, Bounds bounds,
                 const std::vector<Type>& examples) {
  return {.key = std::move(key),
          .kind = kind,
          .fallback = fallback ? Value(*fallback) : Value(),
          .help = std::move(help),
          .bounds = bounds,
          .examples = {examples.begin(), examples.end()}};
}

inline Option boolean(std::string key, bool fallback, std::string help) {
  return {.key = std::move(key), .kind = Kind::boolean, .fallback = fallback, .help = std::move(help)};
}

inline Option integer(std::string key, std::optional<int64_t> fallback, std::string help, Bounds bounds = {},
                      const std::vector<int64_t>& examples = {}) {
  return option_of(Kind::integer, std::move(key), fallback, std::move(help), bounds, examples);
}

inline Option number(std::string key, std::optional<double> fallback, std::string help, Bounds bounds = {},
                     const std::vector<double>& examples = {}) {
  return option_of(Kind::number, std::move(key), fallback, std::move(help), bounds, examples);
}

inline Option text(std::string key, const std::optional<std::string>& fallback, std::string help,
                   std::vector<std::string> choices = {}) {
  Option option = option_of(Kind::text, std::move(key), fallback, std::move(help), {}, {});
  option.choices = std::move(choices);
  return option;
}

// One thing that `name:` in a section may say, with the options that only it has: a model, a strategy, ...
struct Variant {
  std::string name;
  std::string summary;  // one line
  std::vector<Option> options;
  // Checks across keys; throws ConfigError by `Config::error_at`. May be empty.
  std::function<void(const Config&)> check = {};
};

// A section of the file, such as `optimizer`. A scalar stands for its main key: `strategy: ddp` is `{name: ddp}`.
struct SectionSpec {
  std::string key;
  std::string summary;
  std::string main_key;                // "name" where there are variants; else the key that a scalar sets; may be ""
  std::vector<Option> options;         // of every variant; does not list `name`
  std::vector<Variant> variants = {};  // empty: no `name`
  std::string fallback = {};           // the variant taken when the section is absent
};

struct Schema {
  std::vector<Option> top;  // keys that are not sections
  std::vector<SectionSpec> sections;
};

}  // namespace mgt::config
