#include "config_arguments.h"

#include "config/reader.h"
#include "core/text.h"
#include "launch/rank.h"

#include <CLI/CLI.hpp>

#include <filesystem>

namespace mgt {

void ConfigArguments::add_overrides(CLI::App& command) {
  command.add_option("--set", set, "Replace the value at a key of the config; may be given several times")
      ->type_name("KEY=VALUE")
      ->take_all()
      ->allow_extra_args(false);
  command.add_option("--devices", devices, "Short for --set devices=D: a count, a list such as [0,1], or auto")
      ->type_name("D");
}

config::Config read_config(const Program& program, const ConfigArguments& arguments) {
  std::vector<std::string> overrides = arguments.set;
  if (!arguments.devices.empty()) overrides.push_back("devices=" + arguments.devices);
  const std::string path = config::find_config(program.files, arguments.name, shipped_configs(program.files));
  return launch::with_batch_size(config::resolve(launch::schema(), config::read_file(program.files, path), overrides));
}

void check_run_folder(const FileSystem& files, const std::string& folder, const std::string& needed) {
  const auto has = [&](const std::string& name) {
    return files.kind(folder + "/" + name) == FileSystem::Kind::regular;
  };
  if (!has("config.yaml"))
    throw ConfigError(concat(folder, ": no run is there (it has no config.yaml); name the folder of a run"));
  if (!has(needed)) throw CheckpointError(concat(folder, ": the run there did not finish: it has no ", needed));
}

std::string shipped_configs(const FileSystem& files) {
  const std::filesystem::path prefix = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
  const std::string installed = (prefix / "share/mgt/configs").string();
  return files.kind(installed) == FileSystem::Kind::directory ? installed : MGT_SOURCE_CONFIGS;
}

}  // namespace mgt
