#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapters/fmi/file/fmu_variables.hpp"
#include "adapters/fmi/fmu_program.hpp"
#include "portwave/runtime/adapters/fmu.hpp"
#include "portwave/subsystems/base/error.hpp"

namespace portwave::fmi {

/// A port of an FMU, its variables found. Value in SI units = factor · value of the FMU.
struct PortVariables {
  std::string name;
  Causality causality = Causality::effort_in;
  Domain domain = Domain::generic;
  const Variable* input = nullptr;
  const Variable* output = nullptr;
  const Variable* integral = nullptr;  ///< null: none
  double input_factor = 1.0;
  double output_factor = 1.0;  ///< also of the integral, whose unit it takes times a second
};

/// All that instances of a part have in common. Pointers lead into the FMU's description, and into `variables`.
struct PartSetup {
  std::shared_ptr<const Fmu> fmu;
  std::shared_ptr<FmuVariables> variables;
  std::string name;
  std::vector<StartValue> start;
  double start_s = 0.0;
  Isolation isolation;
  std::optional<double> held_J;  ///< as FmuPartOptions
  std::vector<PortVariables> ports;
  std::vector<const Variable*> inputs;   ///< beside the ports
  std::vector<const Variable*> outputs;  ///< shown as states
  std::vector<std::string> notes;

  std::unique_ptr<Program> start_program() const;
  /// What instances look after.
  Shown shown() const;
  /// Whether means of answers come from within steps: answers that have no integral, of FMUs that tell values there,
  /// or whose steps may have events.
  bool watches() const;
};

/// Opens a file, and loads its library unless that will run in a process of its own; `where` of issues becomes
/// "/path". Errors: ConfigError.
std::shared_ptr<const Fmu> open_fmu(const std::filesystem::path& file, const Isolation& isolation);
/// Why states of an FMU cannot be had as bytes; empty: they can.
std::string why_no_state_bytes(const Fmu& fmu);
/// Errors: ConfigError for a limit that is none.
Isolation isolation_of(bool in_a_process, double time_limit_s);
/// The variables with start values, arrays as a whole. Notes what cannot be set.
std::vector<StartValue> find_start_values(FmuVariables& variables,
                                          const std::map<std::string, FmuValue>& start,
                                          Issues& issues);
/// A variable, or an element of an array, that is a number, of a role; null, and noted at `where`, if there is none.
const Variable* find_number(FmuVariables& variables, const std::string& name,
                            std::optional<Role> role, const std::string& where, Issues& issues);
/// What may be driven in a run: an input, or a tunable parameter; as find_number.
const Variable* find_driven(FmuVariables& variables, const std::string& name,
                            const std::string& where, Issues& issues);
/// Names of outputs found, or all outputs that are numbers; arrays stand for their elements.
std::vector<const Variable*> find_outputs(FmuVariables& variables,
                                          const std::optional<std::vector<std::string>>& names,
                                          Issues& issues);
/// Notes clocks that nobody can tick, and variables that wait for such.
void check_clocks(const PartSetup& setup, Issues& issues);
/// Errors: ConfigError with every defect.
PartSetup find_variables(const FmuPartOptions& options);

}  // namespace portwave::fmi
