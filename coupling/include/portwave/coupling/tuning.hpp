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
/// linear parts; of others it is the response to a small step, x⁺ ≈ x, a structure that depends on
/// the state being held at x. `x` null: the part's default state. One LU of the implicit step, dense up
/// to 64 states. Throws ConfigError when the implicit step is singular.
Eigen::MatrixXd port_response(const Subsystem& part, double step_s, const double* x = nullptr);

/// The impedance that each scalar port of a part presents to one step, the part's other ports without
/// input: 1/M_jj where the port takes an effort, M_jj where it takes a flow. Not positive and finite
/// where there is none.
std::vector<double> matched_impedances(const Subsystem& part, double step_s);

/// D of a part with the given response: b = b⁰ + D a for the impedances γ of its ports (values > 0).
///   D = Σ(I + M̂)⁻¹(I − M̂), M̂_jl = s_j M_jl s_l; s_j = √γ_j, Σ_jj = 1 for effort-in ports, 1/√γ_j and −1
///   for flow-in ones.
Eigen::MatrixXd scattering_matrix(const Eigen::MatrixXd& response, const Signature& signature,
                                  std::span<const double> impedance);

/// Port responses of all parts of a system. Equal linear parts (those that share a subsystem) are
/// computed once.
class PortResponses {
 public:
  /// At the initial states. The system must outlive it.
  PortResponses(const System& system, double step_s);
  PortResponses(const System&& system, double step_s) = delete;

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
///   matched  ports without a positive finite match take the impedance that they see on the other side
///            of their junction, or 1;
///   fne      each part's matched values times its own largest factor with sym(M̂) ⪰ FᵀF (Fû the flows),
///            which is sym(Ŷ) ⪰ ŶᵀŶ for any causality. Where some inputs take no power but move flows
///            there is none: `problem` names the part;
///   leaf     both ports of a two-port junction take the match of the side with the smaller
///            Σ_l |M_jl|²/(M_jj M_ll), l ≠ j, as it is seen across the junction; ties go to the linear
///            part, then to the lower port. Ports of larger junctions take their match. The ideal ends
///            of a part are matched together, the other ports closed by their impedances: two ends on
///            one rigid body would otherwise reflect a third of what they share;
///   adapted  on trees of parts and junctions (edges: scalar ports) each edge takes the impedance of
///            the subtree below it, ideal ends absorbed; the root is a node in the middle, a nonlinear
///            part if one is near. An edge that closes a loop takes its `leaf` value first. A linear
///            tree is then solved in as many evaluations as its longest path has nodes, or fewer.
/// Cost     a few LUs of the size of each part's ports; 0.2 s at most for 1e5 parts of two ports.
TunedImpedance tune_impedance(const PortResponses& responses, ImpedanceKind kind);

/// What the linearised iteration promises.
struct PredictedRate {
  double contraction = 0.0;  ///< mean factor of the residual per evaluation, until it stopped
  int evaluations = 0;       ///< to reduce the residual by 1e-10; the limit if it is not reached
  bool converges = false;    ///< it is reached within the limit
};

/// Runs the iteration on the linearised parts, S(u) = b⁰ + D u, from u = 0 with b⁰ fixed and irregular.
/// The residual is that of the stopping test, |P b̂ − u|/max(|u|, |b̂|), the largest of all islands. b⁰
/// holds what the parts can emit: modes of PD that no motion of the parts excites do not count (two
/// free ends on one rigid body have one of eigenvalue −1, at any impedances), nor do waves that are not
/// unique.
/// `acceleration`: with Anderson acceleration from so many earlier evaluations.
/// Cost     one product with D and P per evaluation: 1.5 ms for 1e5 parts of two ports.
PredictedRate predict_rate(const PortResponses& responses, std::span<const double> impedance,
                           MethodKind kind, double relaxation, int limit = 100,
                           int acceleration = 0);

/// A limit that keeps the prediction for a system of that size short: about a second for all that
/// `choose_method` looks at.
int prediction_limit(const System& system);

/// One combination that `choose_method` looked at.
struct MethodCandidate {
  MethodKind kind;
  double relaxation;
  ImpedanceKind impedance;
  PredictedRate rate;
  int acceleration = 0;
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
/// `impedance` is by port afterwards.
///
/// MethodKind::automatic compares Peaceman–Rachford (θ = 1; θ = ½ where that fails) and
/// Douglas–Rachford (λ = 1) with every rule, or the one that is named; ImpedanceKind::automatic alone
/// compares the rules for the given kind. The fewest predicted evaluations win, then the clearly
/// smaller contraction, then the order PR before DR and matched, leaf, adapted, fne. Acceleration is
/// chosen where more than 8 evaluations are predicted. If nothing converges within the limit:
/// θ = ½ with the first rule. The limit is 100 evaluations, 25 to 100 beyond 1e5 ports.
/// Errors   ConfigError ("/method/impedance") when a rule that was asked for by name has no solution,
///          or given impedances are not finite and > 0.
/// Cost     all candidates of 1e5 parts of two ports: 1 s.
MethodChoice choose_method(const PortResponses& responses, const CouplingMethod& method);

}  // namespace portwave
