#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "adapters/structures/power_bonds.hpp"
#include "adapters/structures/structure.hpp"

namespace portwave::structures {

struct ScenarioOptions {
  bool in_a_process = false;
  /// The path under which the scenario names the FMU of an element.
  std::function<std::string(const Element&)> path_of;
};

/// Steps of a run of which nothing is said.
inline constexpr double kUsualSteps = 1000.0;

/// The step size of a structure: what it says, else what its simulators or FMUs say, else a thousandth of the run.
/// Notes what is not said.
double step_of(Structure& structure);

/// The scenario: elements with bonds are parts, the others blocks of signals; connections that are no bonds are
/// signals, with gains and expressions for factors and sums.
Json scenario_of(Structure& structure, const std::vector<Bond>& bonds, double step_s,
                 const ScenarioOptions& options, Issues& issues);

}  // namespace portwave::structures
