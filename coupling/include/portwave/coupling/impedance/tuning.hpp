#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <Eigen/Core>

#include "portwave/coupling/method/method.hpp"
#include "portwave/coupling/method/method_choice.hpp"
#include "portwave/coupling/method/update_rule.hpp"
#include "portwave/coupling/system/system.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// The response of a part's scalar ports over one step, linearised at a state: ȳ = M ū + const, u
/// and y being the inputs and outputs of the ports by their causality, all other inputs held. Exact
/// for linear parts; for others the response to a small step, x⁺ ≈ x, with a state-dependent structure
/// held at x. `x` null: the part's default state. One LU of the implicit step, dense up to 64 states. Throws
/// ConfigError when the implicit step is singular.
Eigen::MatrixXd port_response(const Subsystem& part, double step_s, const double* x = nullptr);

/// The same for a component that shows no equations, starting at `x`, by steps of its own: from the
/// matrix of its port map if it is linear, else by central differences of some steps from the frozen state,
/// each taken back. The impedances used are moved to where the ports answer best. Empty if the component is
/// neither linear nor can be linearised, if a step fails, or if there is no response.
/// Cost     some tens of port solves for each scalar port, in a batch of its own.
std::optional<Eigen::MatrixXd> probed_response(const Component& component, double step_s,
                                               const double* x);

/// The impedance that each scalar port of a part presents to one step, the part's other ports
/// without input: 1/M_jj where the port takes an effort, M_jj where it takes a flow. Not positive
/// and finite where there is none.
std::vector<double> matched_impedances(const Subsystem& part, double step_s);

/// D of a part with the given response: b = b⁰ + D a for the impedances γ of its ports (values >
/// 0).
///   D = Σ(I + M̂)⁻¹(I − M̂), M̂_jl = s_j M_jl s_l; s_j = √γ_j, Σ_jj = 1 for effort-in ports, 1/√γ_j and −1
///   for flow-in ones.
Eigen::MatrixXd scattering_matrix(const Eigen::MatrixXd& response, const Signature& signature,
                                  std::span<const double> impedance);

/// Port responses of all parts of a system. Equal linear parts (those that share a component) are
/// computed once. Responses of opaque parts are probed.
class PortResponses {
 public:
  /// At the initial states. The system must outlive it.
  PortResponses(const System& system, double step_s);
  PortResponses(const System&& system, double step_s) = delete;

  const System& system() const { return system_; }
  double step_s() const { return step_s_; }
  /// Empty, or why a part has no response: tuning and prediction are then impossible.
  const std::string& problem() const { return problem_; }
  /// Not a number where there is none. Of parts that are condensed to many ports it is formed when it is
  /// asked for: then one thread at a time may ask.
  const Eigen::MatrixXd& of(int part) const;
  /// Whether some part takes its steps condensed to its ports: its matches are estimates by the response of
  /// each port while the others rest.
  bool has_condensed_parts() const { return has_condensed_parts_; }
  /// The value to which a port is matched: its own response M_jj, but at least a thousandth of the terms
  /// of which it is the sum. If a step is long against all motions of a lossless part the terms cancel, and
  /// step maps for an impedance matched to the remainder would be too ill-conditioned to be passive. It is
  /// also at least a thousandth of the usual response, that at the typical state, where the action of a port
  /// depends on the state (G does): a stretched arm does not move lengthwise, and a port matched to that
  /// would ask for forces beyond all measure.
  double matched(int part, Eigen::Index port) const;
  /// The sum of the magnitudes of the terms of M_jj.
  double terms(int part, Eigen::Index port) const;
  /// Linearises the nonlinear parts again, except opaque ones, whose response stays that at the start;
  /// `state_of` gives the state of a part in signature order.
  void linearise(const std::function<std::span<const double>(int part)>& state_of);
  /// A part has another component than before (exchange_component). Errors: ConfigError where that has no
  /// response, nothing having changed.
  void component_changed(int part);
  /// Whether `linearise` can change anything.
  bool depends_on_state() const { return !nonlinear_.empty(); }

 private:
  void add_probed(const Part& part);
  void add_terms(const Eigen::VectorXd& terms);
  void add_condensed(const Part& part);
  Eigen::VectorXd usual_of(const Part& part, Eigen::Index size) const;
  Eigen::MatrixXd response_of(const Part& part, const double* x, Eigen::VectorXd& terms) const;

  const System& system_;
  double step_s_;
  std::vector<int> index_;                          // by part
  std::vector<int> users_;                          // of each response: parts
  mutable std::vector<Eigen::MatrixXd> responses_;  // distinct ones
  std::vector<Eigen::VectorXd> estimates_;  // of the diagonals of those that are not formed yet
  bool has_condensed_parts_ = false;
  std::vector<std::size_t> first_term_;  // of each of them
  std::vector<double> terms_;            // of their diagonals
  /// Their diagonals at the typical state; none where G is constant.
  std::vector<Eigen::VectorXd> usual_;
  std::vector<int> nonlinear_;  // parts whose response follows their state
  std::string problem_;
};

/// Impedances by scalar port, or why there are none.
struct TunedImpedance {
  std::vector<double> by_port;  ///< empty: not possible
  std::string problem;          ///< then why
};

/// Tunes by one of the rules `fne` to `adapted`. Deterministic: it depends on the responses alone.
///   matched  ports without a positive finite match take the impedance that they see on the other side
///            of their junction, or else the mean of their island and domain, or 1;
///   fne      each part's matched values times its own largest factor with sym(M̂) ⪰ FᵀF (Fû the flows),
///            which is sym(Ŷ) ⪰ ŶᵀŶ for any causality. There is none if some inputs take no power but
///            move flows: `problem` names the part;
///   leaf     both ports of a two-port junction take the match of the side with the smaller
///            Σ_l |M_jl|²/(M_jj M_ll), l ≠ j, as it is seen across the junction; ties go to the linear
///            part, then to the lower port. Ports of larger junctions take their match. The stages of a
///            port take matches that leave nothing after as many reflections. The ideal ends
///            of a part are matched together, the other ports closed by their impedances: two ends on
///            one rigid body would otherwise reflect a third of what they share;
///   adapted  on trees of parts and junctions (edges: scalar ports) each edge takes the impedance of
///            the subtree below it, ideal ends absorbed; the root is a node in the middle, a nonlinear
///            part if one is near. An edge that closes a loop takes its `leaf` value first. A linear
///            tree is then solved in as many evaluations as its longest path has nodes, or fewer;
///   across   as `matched`, but a nonlinear part's port takes what it sees across a junction whose other ports
///            are those of linear parts with matches of their own. The interface equation then hardly depends
///            on how the nonlinear part responds.
/// Cost     a few LUs of the size of each part's ports; 0.2 s at most for 1e5 parts of two ports.
TunedImpedance tune_impedance(const PortResponses& responses, ImpedanceKind kind);
/// Each island by a rule of its own.
TunedImpedance tune_impedance(const PortResponses& responses,
                              std::span<const ImpedanceKind> by_island);

/// Runs the iteration on the linearised parts, S(u) = b⁰ + D u, twice: from u = 0 with b⁰ fixed and
/// irregular, and with another b⁰ from the waves that two previous steps have left. The worse run
/// counts, and the worst island of a system. The residual is that of the stopping test, |P b̂ −
/// u|/max(|u|, |b̂|). b⁰ holds waves that the parts can emit: modes of PD that no motion of the parts
/// excites do not count (two free ends on one rigid body have one of eigenvalue −1, at any
/// impedances), nor do waves that are not unique. `acceleration`: number of earlier evaluations that Anderson
/// acceleration uses. `update` is run as it is; without a rule it is the interface equation.
/// Cost: two products with D and P per evaluation: 3 ms for 1e5 parts of two ports. The interface
/// equation factorises I − PD of each island; it has no rate where that would take more than 1 GiB.
PredictedRate predict_rate(const PortResponses& responses, std::span<const double> impedance,
                           const InnerUpdate& update, int limit = 100, int acceleration = 0);
/// The same by island. `wanted`, if not empty: the islands to predict; the rates of others are meaningless.
std::vector<PredictedRate> predict_rates(const PortResponses& responses,
                                         std::span<const double> impedance,
                                         const InnerUpdate& update, int limit = 100,
                                         int acceleration = 0, std::span<const char> wanted = {});

/// The update of a kind of wave coupling, as `predict_rate` takes it.
inline InnerUpdate predictable_update(WaveUpdate kind, double relaxation) {
  return kind == WaveUpdate::interface ? InnerUpdate{}
                                       : InnerUpdate{update_rule_of(kind), relaxation};
}
inline PredictedRate predict_rate(const PortResponses& responses, std::span<const double> impedance,
                                  WaveUpdate kind, double relaxation, int limit = 100,
                                  int acceleration = 0) {
  return predict_rate(responses, impedance, predictable_update(kind, relaxation), limit,
                      acceleration);
}

/// A limit that keeps the prediction for a system of that size short: about a second for all candidates of
/// `choose_method`.
int prediction_limit(const System& system);

/// Whether steps may end before they converge.
struct Anytime {
  bool is_on = false;
  /// Then: of Peaceman–Rachford on all islands; automatic: update and rules by prediction.
  ImpedanceKind rule = ImpedanceKind::automatic;
  bool solves = true;  ///< whether islands may solve their interface equations
};

/// Resolves the automatic choices of `method`; other choices stay as they are, except that `impedance` is
/// by port afterwards.
///
/// WaveUpdate::automatic takes for each island the cheapest by prediction of
///   plain       Peaceman–Rachford, θ = 1, with the rule of the fewest evaluations, where these are at
///               most 3 (8 with a nonlinear part: there the prediction is no promise);
///   interface   the interface equation, with `matched` impedances (`across` for nonlinear islands, but under
///               `anytime`), where its solve is not worth more
///               than 200 evaluations or nothing else converges, and its factors fit into 1 GiB. With
///               stages and a nonlinear part, whose batch says what an evaluation costs: where it is
///               less work than the plain evaluations, if these are at most 20.
/// The remaining islands, which do not take the interface equation, together decide on θ = 1, θ = ½ or
/// Douglas–Rachford (λ = 1), and on acceleration beyond 8 evaluations; if nothing converges within the limit,
/// θ = ½ with the first rule. Among equals the clearly smaller contraction wins, then the order matched,
/// leaf, adapted, fne. A rule that makes the step map of a part of an island worse conditioned than 1e4 is
/// taken there only if nothing else converges. With condensed parts (make_second_order_part) all islands take
/// the interface equation with `matched` impedances: nothing is predicted.
/// `anytime`: steps may end before the islands converge, or before there is time for a solve: islands that take
/// the interface equation then have a plain update as well, with the impedances that suit it, or those of a
/// rule that is given.
/// If a tolerance is given, `rescue_after` is set, too. ImpedanceKind::automatic alone compares
/// the rules for the given kind. The limit is 100 evaluations, 25 to 100 beyond 1e5 ports.
/// Errors: ConfigError ("/method/impedance") when a rule that was asked for by name has no
/// solution, given impedances are not finite and > 0, or a part has no response
/// (PortResponses::problem).
/// Cost: all candidates of 1e5 parts of two ports: 1 s.
MethodChoice choose_method(const PortResponses& responses, const WaveCoupling& method,
                           const Anytime& anytime = {});

}  // namespace portwave
