// portwave fmu

#include <ostream>
#include <string>

#include <fmt/format.h>

#include <portwave/runtime/export/fmu_export.hpp>
#include <portwave/runtime/output/recorder.hpp>
#include <portwave/subsystems/base/error.hpp>

#include "line/commands.hpp"

namespace portwave::cli {
namespace {

/// "/inputs/1" is an option, "/library" and all else a text of its own.
std::string line_of(const Issue& issue) {
  for (const char* const option :
       {"inputs", "outputs", "parameters", "ports", "fmi", "name", "out"}) {
    const std::string place = fmt::format("/{}", option);
    if (issue.where == place || issue.where.starts_with(place + "/")) {
      return fmt::format("portwave: --{}: {}\n", option, issue.what);
    }
  }
  const std::string place =
      issue.where.empty() || issue.where == "/library" ? "" : issue.where + ": ";
  return fmt::format("portwave: {}{}\n", place, issue.what);
}

std::string counted(std::size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

int run_command(const FmuArguments& arguments, std::ostream& /*out*/, std::ostream& err) {
  const std::filesystem::path file = arguments.scenario.file;
  const ScenarioText scenario = {.text = read_scenario_text(file),
                                 .file = file.string(),
                                 .folder = file.parent_path(),
                                 .overrides = arguments.scenario.overrides};
  const std::filesystem::path read[] = {file};
  refuse_to_overwrite(read, *arguments.out);
  try {
    const FmuExport made = export_fmu(scenario, arguments.options, *arguments.out);
    for (const std::string& note : made.notes) err << fmt::format("{}: {}\n", file.string(), note);
    err << fmt::format("written to {}: FMI {}.0, {}, {}, {}\n", arguments.out->string(),
                       arguments.options.fmi, counted(made.inputs, "input"),
                       counted(made.outputs, "output"), counted(made.parameters, "parameter"));
  } catch (const ScenarioError&) {
    throw;
  } catch (const ConfigError& error) {
    for (const Issue& issue : error.issues()) err << line_of(issue);
    return kBadInput;
  }
  return kOk;
}

}  // namespace portwave::cli
