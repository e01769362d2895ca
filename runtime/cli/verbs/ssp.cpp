// portwave ssp

#include <ostream>
#include <string>

#include <fmt/format.h>

#include <portwave/runtime/export/ssp_export.hpp>
#include <portwave/runtime/output/recorder.hpp>
#include <portwave/subsystems/base/error.hpp>

#include "line/commands.hpp"

namespace portwave::cli {

int run_command(const SspArguments& arguments, std::ostream& /*out*/, std::ostream& err) {
  const std::filesystem::path file = arguments.scenario.file;
  load_plugins(arguments.scenario.plugins);
  const ScenarioText scenario = {.text = read_scenario_text(file),
                                 .file = file.string(),
                                 .folder = file.parent_path(),
                                 .overrides = arguments.scenario.overrides};
  const std::filesystem::path read[] = {file};
  refuse_to_overwrite(read, *arguments.out);
  try {
    const SspExport made =
        export_ssp(scenario, arguments.scenario.plugins_of_scenario, *arguments.out);
    for (const std::string& note : made.notes) err << fmt::format("{}: {}\n", file.string(), note);
    err << fmt::format("written to {}: {} component{}, {} connection{}\n", arguments.out->string(),
                       made.components, made.components == 1 ? "" : "s", made.connections,
                       made.connections == 1 ? "" : "s");
  } catch (const ScenarioError&) {
    throw;
  } catch (const ConfigError& error) {
    throw ScenarioError(arguments.out->string(), error.issues());
  }
  return kOk;
}

}  // namespace portwave::cli
