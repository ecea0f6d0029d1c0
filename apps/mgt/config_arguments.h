// The arguments of every subcommand that reads a config, and the config that they name. Belongs to the main thread.
#pragma once

#include "config/config.h"
#include "program.h"

#include <string>
#include <vector>

namespace mgt {

struct ConfigArguments {
  std::string name;              // --config: a file, or one of the shipped
  std::vector<std::string> set;  // --set KEY=VALUE, in order
  std::string devices;           // --devices, short for the last --set; empty: not given

  void add_overrides(CLI::App& command);  // --set and --devices
};

// What the arguments resolve to; every error of the config is thrown here.
config::Config read_config(const Program& program, const ConfigArguments& arguments);

// Where the shipped configs lie: installed beside the program, else in the sources that it was built from.
std::string shipped_configs(const FileSystem& files);

// ConfigError: the folder holds no run. CheckpointError: one that ended before it left `needed`.
void check_run_folder(const FileSystem& files, const std::string& folder, const std::string& needed);

}  // namespace mgt
