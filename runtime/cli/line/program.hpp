#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "line/scenario_file.hpp"

namespace portwave::cli {

/// The request of a command line: a command, or the exit code if nothing is left to do.
struct AskedFor {
  /// Writes data to `out` and messages to `err`, and returns the exit code. Empty: nothing is left to do. Bad
  /// input and failures are thrown: ConfigError, StepError, std::runtime_error.
  std::function<int(std::ostream& out, std::ostream& err)> command;
  bool on_all_ranks = false;  ///< else on the first alone
  int exit_code = kOk;
};

/// Reads the arguments (without the program's name); help goes to `out`, defects go to `err`.
using ReadLine = std::function<AskedFor(const std::vector<std::string>& arguments,
                                        std::ostream& out, std::ostream& err)>;

/// The whole of a program: joins the ranks that it was started with, reads its line, executes the command,
/// and turns exceptions into messages that begin with `name`. Returns the exit code.
int run_program(const std::string& name, const std::vector<std::string>& arguments,
                const ReadLine& read);

}  // namespace portwave::cli
