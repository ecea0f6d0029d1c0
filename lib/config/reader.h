// From YAML text to a Config: strict, with the place of everything that is wrong. Pure functions but for `read_file`.
#pragma once

#include "config/config.h"
#include "config/option.h"
#include "core/file_system.h"

#include <string>
#include <vector>

namespace mgt::config {

struct Source {
  std::string name;  // for messages: the path as the user gave it
  std::string text;
};

// The file, at most 64 KiB and UTF-8, BOM and CRLF allowed. ConfigError: missing, a directory, a pipe, too large.
Source read_file(const FileSystem& files, const std::string& path);

// `--config NAME`: NAME in the working directory, else NAME or NAME.yaml among the shipped configs of `shipped_folder`.
// ConfigError lists the shipped ones when there is no such file.
std::string find_config(const FileSystem& files, const std::string& name, const std::string& shipped_folder);

// Resolves `source` under `overrides` ("optimizer.lr=0.1", from --set, in order; the value is YAML and replaces what
// stands at that key; null takes the key back to its default). Runs every check of the schema and of the chosen
// variants. Errors: ConfigError with file:line:column, the dotted key, what is wrong, and the nearest or right key.
Config resolve(const Schema& schema, const Source& source, const std::vector<std::string>& overrides = {});

}  // namespace mgt::config
