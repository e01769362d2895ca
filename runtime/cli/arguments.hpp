#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "line/commands.hpp"

namespace portwave::cli {

/// A command line as understood: a command, or the exit code when there is nothing left to do.
struct CommandLine {
  std::optional<Command> command;
  int exit_code = kOk;
};

/// Reads the arguments (without the program's name). Help and version go to `out`; defects
/// with the line goes to `err`, with the nearest verb or option.
CommandLine parse_arguments(const std::vector<std::string>& arguments, std::ostream& out,
                            std::ostream& err);

}  // namespace portwave::cli
