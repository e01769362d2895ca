#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "line/commands.hpp"

namespace portwave::cli {

/// A command line as read: a command, or the exit code if nothing is left to do.
struct CommandLine {
  std::optional<Command> command;
  int exit_code = kOk;
};

/// Reads the arguments (without the program's name). Help and version go to `out`; all defects of the line
/// go to `err`, with the nearest verb or option.
CommandLine parse_arguments(const std::vector<std::string>& arguments, std::ostream& out,
                            std::ostream& err);

}  // namespace portwave::cli
