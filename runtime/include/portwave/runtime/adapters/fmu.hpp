#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "portwave/runtime/adapters/number_array.hpp"
#include "portwave/runtime/signals/block.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/component.hpp"

namespace PORTWAVE_EXPORT portwave {

/// A pair of variables of an FMU that carries power.
struct FmuPort {
  std::string name;  ///< empty: that of the terminal, or "effort_flow"
  std::string effort, flow;
  Causality input = Causality::effort_in;  ///< which of them the FMU takes; the other is its answer
  /// A variable whose rate the answer is, such as the position whose rate is a velocity: its increment is the
  /// mean of the answer over a step, exactly. Empty: the mean of the values at both ends of the step.
  std::string integral = {};
  std::optional<Domain> domain = {};  ///< none: as the units say
  /// Effort × flow is power out of the FMU, such as the force that a spring exerts on what stretches it.
  bool counts_outward = false;
};

/// A start value: a number, truth values counting as 0 and 1, a text, or the numbers of a whole array.
using FmuValue = std::variant<double, std::string, NumberArray>;

/// An FMU as a part: what scenario files say under "type": "fmu". Elements of arrays (FMI 3) have names such as
/// "A[1,2]": indices count from 1. A whole array among outputs stands for its elements, by rows.
struct FmuPartOptions {
  std::filesystem::path file = {};
  std::string name;  ///< of the instance, for what the FMU logs
  /// Empty: those that the FMU declares by terminals (FMI 3) or by OspModelDescription.xml.
  std::vector<FmuPort> ports;
  /// Start values, each in the variable's own unit. Structural parameters are set first, and say the sizes of arrays.
  std::map<std::string, FmuValue> start;
  std::vector<std::string> inputs;  ///< inputs beside the ports that will be driven
  /// What is shown as states of the part; none: its outputs that are numbers.
  std::optional<std::vector<std::string>> outputs;
  double start_s = 0.0;  ///< time of the run at its start
  double step_s =
      0.0;  ///< step of the run; 0: not known, and the default of the FMU serves the checks
  /// Whether steps are taken back and repeated, by get/setFMUState; none: where the FMU can. Without, what a step will
  /// answer is foretold, and each step is taken once.
  std::optional<bool> rollback = {};
  /// What it holds at the start, at most [J], where it has no source: giving more than that, and than it received,
  /// violates the certificate (HoldsEnergy). None: it may be a source, and what it gives is metered alone.
  std::optional<double> held_J = {};
  /// Each instance runs in a process of its own (program portwave-fmu-host), whose crash or hang is a fault of
  /// the run like others: the run stands at its last committed state, this process goes on.
  bool process = false;
  double time_limit_s =
      10.0;  ///< in a process: so long may a call of a function of the FMU take; > 0
};

struct FmuPart {
  std::shared_ptr<const Component> component;
  /// What it can give through its ports in its first step, by the affine model of that step [J]: for short
  /// steps the energy that lies behind its ports, which nobody else can tell.
  double available_J = 0.0;
  std::vector<std::string> notes;  ///< what a user should know of it
};

/// Loads an FMU for co-simulation (FMI 2.0 or 3.0) and makes a part of it that couples by waves: an opaque
/// component (Capabilities). Its states are the FMU's outputs, which nobody can set. Effort and flow are in SI units:
/// values are converted where the FMU says its units. Steps are taken back by get/setFMUState:
///   u held over a step, ȳ = mean answer of doStep;  e + γ f = √(2γ/h) a is solved for u by whole steps
/// on an affine model of them, ȳ ≈ ȳ₀ + Y(u − u₀), which is measured once by differences of whole steps, kept
/// up by Broyden's rank-one updates, and measured anew where it does not serve.
///
/// An FMU that cannot go back answers the inner iteration by a forecast: ȳ as a linear function of its inputs, its
/// answer at the beginning and its last steps, fitted to steps that instances of their own take before the run. It
/// steps once, when the waves are settled (FinalSteps); what the forecast missed is supplied to it in the ledger, and
/// told (defects_of).
///
/// Loading an FMU runs foreign code in this process, unless it gets a process of its own.
/// Errors  ConfigError with every defect, `where` being "/path", "/ports/0/effort", "/start/mass", "/process",
///         "/time_limit_s", "/held_J", …; that portwave was built without FMI.
/// Cost    in a step of an FMU that is linear, one doStep for an evaluation and one for the commit; where steps are
///         not taken back, one in all, and some tens before the run.
/// Thread-safety  Instances are of the batch; FMUs that may be instantiated once per process are locked.
FmuPart make_fmu_part(const FmuPartOptions& options);

/// An FMU without power ports in a signal graph: what "signals" of scenario files say under "kind": "fmu".
struct FmuBlockOptions {
  std::filesystem::path file = {};
  std::string name;
  std::vector<std::string> inputs;  ///< variables that the inputs of the block set
  std::vector<std::string>
      outputs;  ///< variables that its outputs read; empty: all outputs that are numbers
  std::map<std::string, FmuValue> start;  ///< as in FmuPartOptions
  double start_s = 0.0;
  bool process = false;  ///< as in FmuPartOptions
  double time_limit_s = 10.0;
};

/// At each of its samples the block shows the FMU's outputs, then sets its inputs and steps it to the next
/// sample: an input acts one sample later, as in every co-simulation by samples, and loops through the block
/// are not algebraic. One stepper uses it at a time.
/// Errors  as make_fmu_part, `where` being "/path", "/signals/u", "/outputs/0", "/start/mass".
block::Handle make_fmu_block(const FmuBlockOptions& options);

/// A variable's name as names of inputs and states may be: what they cannot hold becomes '_'.
std::string plain_fmu_name(std::string_view name);

/// False: portwave was built without FMI, and the functions above refuse.
bool has_fmi();

}  // namespace portwave
