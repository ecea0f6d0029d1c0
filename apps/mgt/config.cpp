// `mgt config`: what a config resolves to, whether it is right, and everything that may stand in one.
#include "config/reader.h"
#include "config/writer.h"
#include "config_arguments.h"
#include "core/log.h"
#include "core/text.h"
#include "launch/placement.h"
#include "launch/rank.h"
#include "program.h"
#include "strategy/entry.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <memory>

namespace mgt {
namespace {

struct ShowOptions {
  ConfigArguments config;
  bool no_origins = false;
  bool schedule = false;
};

struct CheckOptions {
  std::vector<std::string> names;
  ConfigArguments overrides;  // of each
};

ExitCode show_schedule(const config::Config& config) {
  const strategy::Entry& entry = strategy::entry_of(config);
  if (!entry.draw_schedule) {
    config.error_at("strategy.name",
                    entry.variant.name + " has no schedule; --schedule draws that of pipeline or hybrid");
  }
  for (const std::string& warning : launch::check(config)) log::warning(warning);
  const launch::Placement placement = launch::decide(config, launch::this_machine(config)).placement;
  const int64_t stages = entry.stages(config, static_cast<int64_t>(placement.devices.size()));
  std::cout << entry.draw_schedule(config, stages, placement.batch.pieces) << std::flush;
  return ExitCode::done;
}

ExitCode show(const Program& program, const ShowOptions& options) {
  const config::Config config = read_config(program, options.config);
  if (options.schedule) return show_schedule(config);
  std::cout << config::to_yaml(launch::schema(), config, !options.no_origins) << std::flush;
  return ExitCode::done;
}

ExitCode check(const Program& program, const CheckOptions& options) {
  ExitCode code = ExitCode::done;
  ConfigArguments config = options.overrides;
  for (const std::string& name : options.names) {
    config.name = name;
    try {
      for (const std::string& warning : launch::check(read_config(program, config))) log::warning(warning);
      std::cout << name << ": ok" << std::endl;
    } catch (const ConfigError& error) {
      std::cerr << "mgt: error: " << error.what() << std::endl;
      code = error.code();
    }
  }
  return code;
}

void list_row(int indentation, std::size_t width, const std::string& name, const std::string& text) {
  std::cout << std::string(static_cast<std::size_t>(indentation), ' ') << std::left
            << std::setw(static_cast<int>(width)) << name << "  " << text << "\n";
}

template <typename Items, typename Name>
std::size_t widest(const Items& items, const Name& name) {
  std::size_t width = 0;
  for (const auto& item : items) width = std::max(width, name(item).size());
  return width;
}

void list_section(const config::SectionSpec& section) {
  std::cout << section.key << ": " << section.summary << "\n";
  const std::size_t width = widest(section.variants, [](const config::Variant& variant) { return variant.name; });
  for (const config::Variant& variant : section.variants) {
    list_row(2, width, variant.name, variant.summary);
    const std::size_t inner = widest(variant.options, [](const config::Option& option) { return option.key; });
    for (const config::Option& option : variant.options) list_row(6, inner, option.key, option.help);
  }
  std::cout << "\n";
}

// The first line of a shipped config says what it is.
std::string description(const FileSystem& files, const std::string& path) {
  const std::string text = config::read_file(files, path).text;
  const std::string line = text.substr(0, text.find('\n'));
  return line.rfind("# ", 0) == 0 ? line.substr(2) : "";
}

void list_shipped(const FileSystem& files) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(shipped_configs(files))) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::cout << "shipped configs, in " << shipped_configs(files) << "\n";
  const std::size_t width = widest(paths, [](const std::filesystem::path& path) { return path.stem().string(); });
  for (const auto& path : paths) list_row(2, width, path.stem().string(), description(files, path.string()));
}

ExitCode list(const Program& program) {
  for (const config::SectionSpec& section : launch::schema().sections) {
    if (!section.variants.empty()) list_section(section);
  }
  list_shipped(program.files);
  std::cout << std::flush;
  return ExitCode::done;
}

ExitCode print(const std::string& text) {
  std::cout << text << (text.ends_with('\n') ? "" : "\n") << std::flush;
  return ExitCode::done;
}

void add_show(CLI::App& parent, Program& program) {
  CLI::App* command = parent.add_subcommand("show", "Print the whole resolved config with the origin of each value");
  const auto options = std::make_shared<ShowOptions>();
  command->add_option("NAME,--config", options->config.name, "A YAML file, or one of the shipped configs")->required();
  options->config.add_overrides(*command);
  command->add_flag("--schedule", options->schedule, "Draw in what order each stage of a pipeline takes its pieces");
  command->add_flag("--no-origins", options->no_origins, "The values alone");
  command->callback([options, &program] { program.action = [options, &program] { return show(program, *options); }; });
}

void add_check(CLI::App& parent, Program& program) {
  CLI::App* command = parent.add_subcommand("check", "Say of each config whether it is right");
  const auto options = std::make_shared<CheckOptions>();
  command->add_option("NAME,--config", options->names, "YAML files, or shipped configs")->required();
  options->overrides.add_overrides(*command);
  command->callback([options, &program] { program.action = [options, &program] { return check(program, *options); }; });
}

}  // namespace

void add_config(CLI::App& app, Program& program) {
  CLI::App* command = app.add_subcommand("config", "Show and check configs, and what may stand in them");
  command->require_subcommand(0, 1);
  add_show(*command, program);
  add_check(*command, program);
  command->add_subcommand("list", "Models, data sets, strategies, optimizers and shipped configs")
      ->callback([&program] { program.action = [&program] { return list(program); }; });
  command->add_subcommand("schema", "JSON Schema of a config, for editors")->callback([&program] {
    program.action = [] { return print(config::json_schema(launch::schema())); };
  });
  command->add_subcommand("options", "Every option as a Markdown table")->callback([&program] {
    program.action = [] { return print(config::option_table(launch::schema())); };
  });
}

}  // namespace mgt
