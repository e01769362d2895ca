#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "adapters/fmi/standard/fmi_interface.hpp"
#include "portwave/subsystems/core/port.hpp"

namespace portwave::fmi {

/// Of an annotation of a variable by FMUs of portwave: its owner, and its element.
inline constexpr std::pair<std::string_view, const char*> kNoteOfMeans = {"org.portwave",
                                                                          "MeanOverStep"};

enum class Version { v2, v3 };

/// Types of variables. FMI 2 has float64 (Real), int32 (Integer, Enumeration), boolean and string.
enum class VariableType {
  float64,
  float32,
  int8,
  uint8,
  int16,
  uint16,
  int32,
  uint32,
  int64,
  uint64,
  boolean,
  text,   ///< strings
  clock,  ///< FMI 3; whether it has ticked counts as a number
  other,  ///< binaries
};

/// A type whose values are numbers here, truth values being 0 and 1.
inline bool is_number(VariableType type) { return type < VariableType::text; }

enum class Role {
  parameter,
  structural_parameter,
  calculated_parameter,
  input,
  output,
  local,
  independent
};

/// Another unit for values of a unit: shown = factor · value + offset, or factor / value.
struct DisplayUnit {
  std::string name;
  double factor = 1.0, offset = 0.0;
  bool is_inverse = false;

  double value_of(double shown) const {
    return is_inverse ? factor / shown : (shown - offset) / factor;
  }
  bool operator==(const DisplayUnit&) const = default;
};

/// A unit by the powers of kg, m, s, A, K, mol, cd and rad; value in SI = factor · value + offset.
struct Unit {
  static constexpr std::size_t kBases = 8;

  std::string name;
  std::array<int, kBases> powers = {};
  double factor = 1.0;
  double offset = 0.0;
  bool is_known = false;  ///< false: the description gives the name and nothing else
  std::vector<DisplayUnit> display_units = {};

  bool operator==(const Unit&) const = default;
};

/// The size of one dimension of an array: a number, or the value of a structural parameter.
struct Dimension {
  std::uint64_t size = 0;
  std::optional<Reference> parameter = {};
};

/// One bit for each clock, in the order of the description.
using ClockMask = std::uint64_t;

struct Variable {
  std::string name;
  Reference reference = 0;
  VariableType type = VariableType::float64;
  Role role = Role::local;
  bool is_constant = false;  ///< variability "constant"
  bool is_tunable = false;   ///< a parameter that may change between steps
  bool is_array = false;
  bool has_start = false;
  std::string start = {};  ///< as it is written
  std::string unit = {};   ///< empty: none
  /// The variable whose derivative it is: its place from 1 (FMI 2), its reference (FMI 3). None: not said.
  std::optional<std::uint32_t> derivative_of = {};
  bool is_mean =
      false;  ///< over the last step of the FMU, as FMUs of portwave note of what their ports answer
  bool is_discrete =
      false;  ///< its variability, given or by its type: set and changing in events only
  bool is_within = false;  ///< intermediateUpdate: its values are told within steps
  std::optional<double> least = {}, most = {};  ///< min and max, its own or of its type
  std::vector<Dimension> dimensions = {};
  ClockMask clocks = 0;  ///< at whose ticks it is set or changes; of a clock, its own bit
  // Of a variable that stands for an element of an array (FmuVariables): its place from 0, how many there are, and
  // the name of the array.
  std::size_t element = 0, elements = 0;
  std::string array = {};
};

/// A clock of FMI 3.
struct Clock {
  std::string name;
  Reference reference = 0;
  Role role = Role::input;
  std::string variability = {};  ///< of its interval: "constant", "fixed", "triggered", ...
  std::optional<double> interval_s = {};
  double shift_s = 0.0;

  bool is_periodic_input() const {
    return role == Role::input && (variability == "constant" || variability == "fixed");
  }
  bool is_triggered_output() const { return role == Role::output && variability == "triggered"; }
};

/// A pair of variables that the description declares to carry power.
struct DeclaredPort {
  std::string name, effort = {}, flow = {};
  bool counts_outward = false;  ///< effort × flow is power out of the FMU
  bool says_direction = false;  ///< terminals do, ports of OSP-IS do not
};

/// What modelDescription.xml says, as far as co-simulation needs it.
struct ModelDescription {
  Version version = Version::v2;
  std::string name;                       ///< of the model
  std::string token;                      ///< "guid" or "instantiationToken"
  std::string library;                    ///< "modelIdentifier": the stem of the binary
  std::string tool;                       ///< that generated it; empty: not said
  bool saves_state = false;               ///< canGetAndSetFMUState
  bool writes_state = false;              ///< canSerializeFMUState, of those that save it
  bool needs_tool = false;                ///< needsExecutionTool: it starts another program
  bool is_only_once = false;              ///< canBeInstantiatedOnlyOncePerProcess
  bool takes_any_step = true;             ///< canHandleVariableCommunicationStepSize
  bool has_event_mode = false;            ///< hasEventMode (FMI 3)
  bool might_return_early = false;        ///< mightReturnEarlyFromDoStep
  bool provides_intermediate = false;     ///< providesIntermediateUpdate
  std::optional<double> internal_step_s;  ///< fixedInternalStepSize
  std::optional<double> usual_step_s;     ///< of the default experiment
  std::optional<double> usual_stop_s;     ///< of the default experiment
  std::vector<Variable> variables;
  std::vector<Clock> clocks;
  std::map<std::string, std::size_t, std::less<>> aliases;  ///< other names of variables (FMI 3)
  std::map<std::string, Unit, std::less<>> units;

  /// By its name or another one; null: there is none of that name.
  const Variable* find(std::string_view wanted) const;
  /// The variable whose derivative this one is; null where that is not said.
  const Variable* integral_of(const Variable& variable) const;
  std::vector<std::string> names(bool (*wanted)(const Variable&)) const;
  /// The unit of a variable; null where nothing but a name, or nothing at all, is known.
  const Unit* unit_of(const Variable& variable) const;
};

/// Reads modelDescription.xml.
/// Errors: ConfigError with every defect and its line: no XML; FMI 1.0, or a version that is not known; no
/// co-simulation; missing attributes, values that are none; two variables or units of one name; types that the
/// version has not.
ModelDescription read_model_description(std::string_view xml);

/// The ports that terminalsAndIcons.xml declares: terminals with one variable of the kind "inflow" or
/// "outflow" and one of the kind "signal". Others are left out. Errors: ConfigError if it is no XML.
std::vector<DeclaredPort> read_terminals(std::string_view xml);
/// A port of OSP-IS, and what its variables of effort and flow are below.
struct OspPort {
  const char *port, *effort, *flow;
};
inline constexpr OspPort kOspPorts[] = {{"LinearMechanicalPort", "Force", "LinearVelocity"},
                                        {"AngularMechanicalPort", "Torque", "AngularVelocity"},
                                        {"ElectromagneticPort", "Voltage", "Current"},
                                        {"HydraulicPort", "Pressure", "VolumeFlowRate"}};
/// The ports that OspModelDescription.xml declares: those of translation, rotation, electricity and
/// hydraulics with one variable for each of effort and flow. Errors: as above.
std::vector<DeclaredPort> read_osp_ports(std::string_view xml);

/// The unit of effort and flow of a domain.
const Unit& effort_unit(Domain domain);
const Unit& flow_unit(Domain domain);
/// The domain whose units these are, up to factors; generic where there is none.
Domain domain_of(const Unit& effort, const Unit& flow);
/// True when the product of both is power.
bool make_power(const Unit& effort, const Unit& flow);

}  // namespace portwave::fmi
