#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace portwave::exported {

/// One variable of an exported FMU. Its value reference is its place in ExportedModel::variables.
struct Variable {
  enum class Kind {
    time,       ///< the simulated time
    input,      ///< a settable input of the system
    parameter,  ///< a number of a part (set_parameter)
    quantity,   ///< what recorders observe, such as "A.q1" or "A.coupling.flow"
    integral,  ///< the time integral of an effort or a flow since the start, by its means over the steps
    energy,  ///< of the ledger
  };
  Kind kind = Kind::quantity;
  std::string name = {};
  std::string path = {};  ///< what it is in the scenario; of an energy: "stored", "supplied", …
  std::string unit = {};  ///< empty: none
  double start = 0.0;     ///< of inputs and parameters
  int integral = -1;  ///< of a quantity: the variable that is its time integral; −1: there is none
  std::string about = {};  ///< for people

  bool is_settable() const { return kind == Kind::input || kind == Kind::parameter; }
};

/// A pair of variables that carries power, by their places. `kind` is the domain of the port.
struct PowerPort {
  std::string name;
  std::string domain;
  int effort = -1, flow = -1;
};

/// A scenario with what an FMU of it shows: the contents of resources/model.json and resources/scenario.json.
struct ExportedModel {
  std::string name;
  std::string scenario;  ///< text; files that it names lie beside it
  std::vector<Variable> variables;
  std::vector<PowerPort> ports;
  /// False: communication steps are whole numbers of macro-steps.
  bool takes_any_step = true;
  double step_s = 0.0;  ///< the macro-step; the largest one where steps choose their size

  /// The text of resources/model.json.
  std::string interface_text() const;
  /// By which a description, the resources and a library know one another.
  std::string token() const;
  /// Errors: ConfigError.
  static ExportedModel read(std::string_view interface_text, std::string scenario);
};

/// The words for energies of the ledger, and what they mean.
struct EnergyName {
  std::string_view word, about;
};
const std::vector<EnergyName>& energy_names();

}  // namespace portwave::exported
