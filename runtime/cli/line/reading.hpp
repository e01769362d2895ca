#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "line/scenario_file.hpp"

namespace portwave::cli {

/// A line as read: the innermost verb, or the exit code when there is nothing left to do.
struct LineRead {
  const CLI::App* verb = nullptr;
  int exit_code = kOk;
};

/// Reads the arguments (without the program's name) by the verbs of `app`; `defects`: of the values, as its
/// verbs note them. Help and version go to `out`; all that is wrong with the line goes to `err`, with
/// the nearest verb or option.
LineRead read_line(CLI::App& app, std::vector<std::string>& defects,
                   const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

}  // namespace portwave::cli
