#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "line/scenario_file.hpp"

namespace portwave::cli {

/// A line as read: the innermost verb, or the exit code if nothing is left to do.
struct LineRead {
  const CLI::App* verb = nullptr;
  int exit_code = kOk;
};

/// Reads the arguments (without the program's name) by the verbs of `app`, which note defects of values in
/// `defects`. Help and version go to `out`; all defects of the line go to `err`, with the nearest verb or
/// option.
LineRead read_line(CLI::App& app, std::vector<std::string>& defects,
                   const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

}  // namespace portwave::cli
