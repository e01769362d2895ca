#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "portwave/runtime/export/fmu_export.hpp"
#include "portwave/runtime/scenario/plugins.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

struct SspExport {
  std::size_t components = 0, connections = 0;
  std::vector<std::string> notes;  ///< what other tools do not learn from it
};

/// Writes a scenario whose parts are FMUs as a package of a system structure (SSP 1.0): the FMUs, a description
/// with their connections, and a parameter set for each with start values. Couplings of two ports become
/// connections there and back; what connections cannot say (method, step size, tank, ports, ends that are free)
/// stands in annotations, from which portwave makes the same scenario again.
/// Errors  ScenarioError for defects of the scenario, and with a place in it: parts that are no FMUs; couplings of
///         more than two ports, or of two that take the same; blocks that are neither FMUs, gains nor functions
///         of time. ConfigError where the file cannot be written.
SspExport export_ssp(const ScenarioText& scenario, Plugins permission,
                     const std::filesystem::path& out);

}  // namespace portwave
