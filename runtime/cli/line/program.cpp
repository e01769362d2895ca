#include "line/program.hpp"

#include <cerrno>
#include <csignal>
#include <exception>
#include <iostream>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <unistd.h>

#include <portwave/runtime/step/stepper.hpp>
#include <portwave/subsystems/base/error.hpp>

#include "line/ranks.hpp"
#include "live/interrupt.hpp"

namespace portwave::cli {
namespace {

int report_no_memory(const std::string& name, std::ostream& err) {
  err << name << ": not enough memory: this command needs more than there is.\n";
  return kFailed;
}

/// Executes a command and turns its exceptions into text and an exit code.
int execute(const std::string& name, const AskedFor& asked, std::ostream& out, std::ostream& err) {
  try {
    return asked.command(out, err);
  } catch (const ScenarioError& error) {
    err << error.report();
    return kBadInput;
  } catch (const ConfigError& error) {
    err << name << ": " << error.what() << '\n';
    return kBadInput;
  } catch (const StepError& error) {
    err << name << ": " << error.what();
    if (!error.circumstances().empty()) err << "\n  " << error.circumstances();
    err << "\nThe run ended there; no files were written.\n";
    return kFailed;
  } catch (const std::bad_alloc&) {
    return report_no_memory(name, err);
  } catch (const std::length_error&) {
    return report_no_memory(name, err);
  } catch (const std::exception& error) {
    err << name << ": " << error.what() << '\n';
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

int run_on_rank(const std::string& name, const std::vector<std::string>& arguments,
                const ReadLine& read) {
  std::ostringstream out;
  std::ostream silent(nullptr);
  std::ostream& err = is_first_rank() ? std::cerr : silent;
  const AskedFor asked = read(arguments, out, err);
  const bool takes_part = is_first_rank() || asked.on_all_ranks;
  const int exit_code =
      asked.command && takes_part ? execute(name, asked, out, err) : asked.exit_code;
  if (asked.command && !asked.on_all_ranks && ranks() != nullptr) {
    ranks()->rest();  // others than the first wait for its command
  }
  if (!is_first_rank()) return exit_code;
  if (const int error = write_to_stdout(out.view()); error != 0) {
    std::cerr << name << ": cannot write to stdout: " << std::generic_category().message(error)
              << '\n';
    return kFailed;
  }
  return exit_code;
}

}  // namespace

int run_program(const std::string& name, const std::vector<std::string>& arguments,
                const ReadLine& read) {
  // A pipe that breaks and a file that may not grow are seen in the result of the write.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  end_tidily_on_signals();
  try {
    ranks() = join_ranks();
  } catch (const std::exception& error) {
    std::cerr << name << ": " << error.what() << '\n';
    return kFailed;
  }
  const int exit_code = run_on_rank(name, arguments, read);
  if (ranks() != nullptr) ranks()->end(exit_code);
  ranks().reset();
  return exit_code;
}

}  // namespace portwave::cli
