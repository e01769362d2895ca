// portwave: steps coupled port-Hamiltonian systems from scenario files. See --help.

#include <cerrno>
#include <csignal>
#include <exception>
#include <iostream>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <variant>
#include <vector>

#include "arguments.hpp"
#include "line/commands.hpp"
#include "live/interrupt.hpp"
#include "verbs/ranks.hpp"

namespace portwave::cli {
namespace {

int report_no_memory(std::ostream& err) {
  err << "portwave: not enough memory: this command needs more than there is.\n";
  return kFailed;
}

/// Runs a command and turns its exceptions into text and an exit code.
int execute(const Command& command, std::ostream& out, std::ostream& err) {
  try {
    return std::visit([&](const auto& arguments) { return run_command(arguments, out, err); },
                      command);
  } catch (const ScenarioError& error) {
    err << error.report();
    return kBadInput;
  } catch (const ConfigError& error) {
    err << "portwave: " << error.what() << '\n';
    return kBadInput;
  } catch (const StepError& error) {
    err << "portwave: " << error.what();
    if (!error.circumstances().empty()) err << "\n  " << error.circumstances();
    err << "\nThe run ended there; no files were written.\n";
    return kFailed;
  } catch (const std::bad_alloc&) {
    return report_no_memory(err);
  } catch (const std::length_error&) {
    return report_no_memory(err);
  } catch (const std::exception& error) {
    err << "portwave: " << error.what() << '\n';
    return kFailed;
  }
}

/// Writes all of the text to stdout. A reader that went away has had enough: that is no error.
int write_to_stdout(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDOUT_FILENO, text.data(), text.size());
    if (count >= 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EPIPE) {
      return 0;
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

/// All other commands run in one process only.
bool is_of_all_ranks(const Command& command) {
  const auto* const scaling = std::get_if<StudyScalingArguments>(&command);
  return std::holds_alternative<RunArguments>(command) ||
         (scaling != nullptr && !scaling->ranks.empty());
}

int run_program(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  std::ostream silent(nullptr);
  std::ostream& err = is_first_rank() ? std::cerr : silent;
  CommandLine line = parse_arguments(arguments, out, err);
  const bool takes_part = is_first_rank() || (line.command && is_of_all_ranks(*line.command));
  const int exit_code =
      line.command && takes_part ? execute(*line.command, out, err) : line.exit_code;
  if (!is_first_rank()) return exit_code;
  if (const int error = write_to_stdout(out.view()); error != 0) {
    std::cerr << "portwave: cannot write to stdout: " << std::generic_category().message(error)
              << '\n';
    return kFailed;
  }
  return exit_code;
}

int run_on_all_ranks(const std::vector<std::string>& arguments) {
  try {
    ranks() = join_ranks();
  } catch (const std::exception& error) {
    std::cerr << "portwave: " << error.what() << '\n';
    return kFailed;
  }
  const int exit_code = run_program(arguments);
  if (ranks() != nullptr) ranks()->end(exit_code);
  ranks().reset();
  return exit_code;
}

}  // namespace
}  // namespace portwave::cli

int main(int argc, char** argv) {
  // A pipe that breaks and a file that may not grow are seen in the result of the write.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  portwave::cli::end_tidily_on_signals();
  return portwave::cli::run_on_all_ranks({argv + 1, argv + argc});
}
