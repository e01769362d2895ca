// portwave: steps coupled port-Hamiltonian systems from scenario files. See --help.

#include <ostream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "arguments.hpp"
#include "line/commands.hpp"
#include "line/program.hpp"

namespace portwave::cli {
namespace {

AskedFor asked_for(const std::vector<std::string>& arguments, std::ostream& out,
                   std::ostream& err) {
  CommandLine line = parse_arguments(arguments, out, err);
  if (!line.command) return {.command = {}, .exit_code = line.exit_code};
  const bool is_run = std::holds_alternative<RunArguments>(*line.command);
  return {.command =
              [command = std::move(*line.command)](std::ostream& data, std::ostream& talk) {
                return std::visit([&](const auto& own) { return run_command(own, data, talk); },
                                  command);
              },
          .on_all_ranks = is_run};
}

}  // namespace
}  // namespace portwave::cli

int main(int argc, char** argv) {
  return portwave::cli::run_program("portwave", {argv + 1, argv + argc}, portwave::cli::asked_for);
}
