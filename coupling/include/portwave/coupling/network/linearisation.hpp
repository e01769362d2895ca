#pragma once

#include <optional>
#include <string>
#include <vector>

#include <Eigen/Core>

#include "portwave/coupling/system/system.hpp"
#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace PORTWAVE_EXPORT portwave {

/// The point at which a system is linearised.
struct OperatingPoint {
  std::vector<double> state = {};  ///< of all parts, in order; empty: the initial states
  std::vector<double> input = {};  ///< of the settable inputs, by slot; empty: as they begin
  /// By scalar port: start of the search for efforts and flows, and their values where states do not
  /// determine them; empty: zeros.
  std::vector<double> effort = {}, flow = {};
  double time_s = 0.0;  ///< of inputs that are functions of time
};

/// A scalar that a linearisation observes.
struct LinearOutput {
  enum class Kind { state, effort, flow };
  Kind kind = Kind::state;
  int index = 0;  ///< among all states of the system, or a scalar port
};

/// A whole system near a point (x₀, u₀), in continuous time:
///   E ẋ = rate + A (x − x₀) + B (u − u₀),   y = output + C (x − x₀) + D (u − u₀).
///
/// E is the identity but for descriptor parts, and x are states of the parts. If parts are joined
/// rigidly (a motor and its load, two masses) some states follow from others: those are left out of x, and
/// recovered by `recover`. If there is no such form (a source that prescribes a state, forces that are not
/// determined, descriptor parts joined rigidly) x consists of all states, then all efforts, then all flows,
/// whose rows of E are zero.
///
/// States that can only move together, as the angles of two shafts that turn as one, stay states of
/// their own, with an eigenvalue 0 that no input reaches.
struct Linearisation {
  SparseMatrix E, A, B, C, D;
  Eigen::VectorXd state, input, output;  ///< x₀, u₀, y₀
  Eigen::VectorXd rate;                  ///< E ẋ at (x₀, u₀); at rest zero
  SparseMatrix recover;      ///< the changes of all states of all parts, in order, from those of x
  bool is_explicit = false;  ///< E is the identity
  std::vector<std::string>
      state_names;  ///< "part.state"; then "part.port.effort", "part.port.flow"
  std::vector<std::string> input_names;  ///< settable inputs by slot, "part.input"
};

/// Linearises the equations of the parts, not a step: without step size, budget or waves. External
/// inputs that cannot be set stay as they are at that time. Derivatives are those that parts give,
/// and central differences where they give none (structure that depends on the state), good to some
/// nine digits. Cost: a sparse elimination of the ports that depend on one another algebraically; a
/// chain of n blocks takes O(n).
/// Errors: ConfigError for opaque parts and for states, inputs and outputs of a wrong number, not finite,
/// or outside the domain of a part; std::runtime_error if efforts and flows cannot be found.
Linearisation linearised(const System& system, const OperatingPoint& at = {},
                         const std::vector<LinearOutput>& outputs = {});

/// Efforts and flows of all scalar ports.
struct PortValues {
  std::vector<double> effort, flow;
};

/// Those at a point, from the equations of the parts and of the junctions alone, at O(n) for a chain of n
/// parts. If parts are joined rigidly they are those that keep the parts together, with inputs changing as
/// just after `time_s`. Empty if states and inputs do not determine them (a constraint to which no moving
/// part responds, inconsistent states at a rigid joint, opaque and descriptor parts).
/// Errors: exceptions of inputs.
std::optional<PortValues> port_values(const System& system, const OperatingPoint& at);

}  // namespace portwave
