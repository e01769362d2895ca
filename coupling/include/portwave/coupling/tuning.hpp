#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <Eigen/Core>

#include "portwave/coupling/method.hpp"
#include "portwave/coupling/system.hpp"

namespace portwave {

/// The response of a part's scalar ports over one step, linearised at a state: ȳ = M ū + const, u and y
/// being the inputs and outputs of the ports by their causality, all other inputs held. Exact for
/// linear parts. `x` null: the part's default state. Throws ConfigError when the implicit step is
/// singular.
Eigen::MatrixXd port_response(const Subsystem& part, double step_s, const double* x = nullptr);

/// The impedance that each scalar port of a part presents to one step, the part's other ports without
/// input: 1/M_jj where the port takes an effort, M_jj where it takes a flow. Not positive and finite
/// where there is none.
std::vector<double> matched_impedances(const Subsystem& part, double step_s);

/// D of a part with the given response: b = b⁰ + D a for the impedances γ of its ports (values > 0).
Eigen::MatrixXd scattering_matrix(const Eigen::MatrixXd& response, const Signature& signature,
                                  std::span<const double> impedance);

/// Port responses of all parts of a system. Equal linear parts (those that share a subsystem) are
/// computed once.
class PortResponses {
 public:
  /// At the initial states. The system must outlive it.
  PortResponses(const System& system, double step_s);

  const System& system() const { return system_; }
  double step_s() const { return step_s_; }
  const Eigen::MatrixXd& of(int part) const;
  /// Linearises the nonlinear parts again; `state_of` gives the state of a part in signature order.
  void linearise(const std::function<std::span<const double>(int part)>& state_of);
  /// Whether `linearise` can change anything.
  bool depends_on_state() const { return !nonlinear_.empty(); }

 private:
  const System& system_;
  double step_s_;
  std::vector<int> index_;                  // by part
  std::vector<Eigen::MatrixXd> responses_;  // distinct ones
  std::vector<int> nonlinear_;              // parts
};

/// Impedances by scalar port, or why there are none.
struct TunedImpedance {
  std::vector<double> by_port;  ///< empty: not possible
  std::string problem;          ///< then why
};

/// Tunes by one of the rules `fne` to `adapted`. Deterministic: it depends on the responses alone.
///   fne      needs sym(Y) to control Y: where sym(Y) is singular and skew(Y) is not, there is none;
///   matched  ports without a positive finite match take that of the port they are joined to, or 1;
///   leaf     for connections; ports of other junctions take their match;
///   adapted  on trees of parts and junctions; an edge that closes a loop takes `leaf`.
TunedImpedance tune_impedance(const PortResponses& responses, ImpedanceKind kind);

/// What the linearised iteration promises.
struct PredictedRate {
  double contraction = 0.0;  ///< mean factor per evaluation towards 1e-10, of the gap |P b̂ − u|
  int evaluations = 0;       ///< to reduce the gap by 1e-10; the limit if it is not reached
  bool converges = false;    ///< it is reached within the limit
};

/// Runs u ← update(P, D, u) of the linearised parts from a fixed start.
PredictedRate predict_rate(const PortResponses& responses, std::span<const double> impedance,
                           MethodKind kind, double relaxation, int limit = 100);

/// One combination that `choose_method` looked at.
struct MethodCandidate {
  MethodKind kind;
  double relaxation;
  ImpedanceKind impedance;
  PredictedRate rate;
};

/// What `MethodKind::automatic` and `ImpedanceKind::automatic` come to.
struct MethodChoice {
  CouplingMethod
      method;  ///< with kind, relaxation, impedance_kind, impedance by port, acceleration
  PredictedRate rate;
  std::vector<MethodCandidate> candidates;
  std::string reason;  ///< one sentence, for people
};

/// Resolves the automatic choices of `method`; what is not automatic stays as it is, except that
/// `impedance` is by port afterwards. Errors: ConfigError ("/method/impedance") when a rule that was
/// asked for by name has no solution.
MethodChoice choose_method(const PortResponses& responses, const CouplingMethod& method);

}  // namespace portwave
