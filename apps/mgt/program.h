// What the subcommands share, and how `main` finds them: each adds itself to the command line and, where it was given,
// leaves its action. Belongs to the main thread.
#pragma once

#include "core/error.h"
#include "core/file_system.h"

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace mgt {

struct Program {
  FileSystem& files;
  std::vector<std::string> arguments;     // as given, without the program's name
  std::function<ExitCode()> action = {};  // of the subcommand that was given
};

// ConfigError where what was written to stdout did not get there, as on a full disk. A reader that has gone is none.
void check_output();

// What this program is and what it was built from.
std::string mgt_version();
std::string libtorch_version();
std::string compiler();

void add_train(CLI::App& app, Program& program);
void add_eval(CLI::App& app, Program& program);
void add_verify(CLI::App& app, Program& program);
void add_config(CLI::App& app, Program& program);
void add_doctor(CLI::App& app, Program& program);

// `verify --replay DIR`: trains again as an earlier run did, and compares the weights after every epoch. Prints that both
// are identical; NumericsError says where they part and what has changed since.
ExitCode replay(const Program& program, const std::string& run_folder);

}  // namespace mgt
