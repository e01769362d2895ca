#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// What an FMU shows of a scenario. Names are those of scenario files.
struct FmuExportOptions {
  /// External inputs "part.input". An input that the scenario drives is the importer's then; its value at the
  /// start is the start value. Empty: all that are "settable" and that no controller drives.
  std::vector<std::string> inputs;
  /// Quantities as in "outputs": "part.state", "part.port.effort", …, whole parts and patterns; and the
  /// energies "energy.stored", ".supplied", ".dissipated", ".mismatch", ".tank". Empty: what the scenario
  /// observes.
  std::vector<std::string> outputs;
  /// Numbers of parts that may change in a run, "part.mass_kg": tunable parameters.
  std::vector<std::string> parameters;
  /// Ports "part.port" that are free, fixed or joined to nothing: power ports of the FMU. It takes the effort
  /// of a free one and the flow of a fixed one, of others what the part takes; "part.port=effort" and
  /// "part.port=flow" say it. Only ports of one component.
  std::vector<std::string> ports;
  int fmi = 2;       ///< version of FMI: 2 or 3
  std::string name;  ///< of the model; empty: that of the scenario
  /// The folder with portwave_fmu.so, which holds the engine; empty: where an installed program finds it.
  std::filesystem::path library;
};

/// A scenario as text.
struct ScenarioText {
  std::string text;
  std::string file;  ///< names it in errors
  std::filesystem::path folder;
  std::vector<Override> overrides = {};
};

struct FmuExport {
  std::size_t inputs = 0, outputs = 0, parameters = 0;
  std::vector<std::string> notes;  ///< what a user should know of it
};

/// Writes an FMU for co-simulation (FMI 2.0 or 3.0) that steps a scenario, with the engine inside: it needs no
/// portwave where it runs, but the same kind of machine, and a C and C++ library of Linux at least as new. Tables
/// and matrices of the scenario are in it. Two equal exports are equal byte by byte.
///
/// Before the file appears the FMU is started once in this process.
/// Errors  ScenarioError for defects of the scenario; ConfigError with all others, `where` being "/inputs/0",
///         "/outputs/2", "/ports/0", "/parameters/1", "/fmi", "/name", "/library", "/out" or a place in the
///         scenario: unknown names, with the nearest ones; names that cannot be printed; parameters that decide
///         how a part is built; ports that are joined; FMUs and plugins in the scenario; files that it does not
///         name from its folder down; portwave built without FMI; a file that cannot be written, or that goes
///         into the FMU.
FmuExport export_fmu(const ScenarioText& scenario, const FmuExportOptions& options,
                     const std::filesystem::path& out);

/// The folder with portwave_fmu.so beside a program or library: `beside`/portwave_fmu, or in ../lib of it;
/// empty where there is none.
std::filesystem::path find_fmu_library(const std::filesystem::path& beside);

}  // namespace portwave
