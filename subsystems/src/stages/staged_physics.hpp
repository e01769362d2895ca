#pragma once

#include <cmath>
#include <optional>
#include <vector>

#include "core/stage_layout.hpp"
#include "nonlinear/closed_part.hpp"
#include "nonlinear/damped_physics.hpp"
#include "nonlinear/gradients_side_by_side.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/core/subsystem.hpp"

namespace portwave {

/// A step with s stages, written as a step of one stage of a larger part, so that the solver of
/// that serves: its states are (x, δ) with δᵢ = √bᵢ h ẋᵢ, of which x does not move and δ starts at
/// 0; its discrete gradient has gᵢ = √bᵢ ∇̄ᵢH beside δᵢ and 0 beside x, so that
///   δ⁺ = h[(J − R)g + (G − P)u],   gᵀδ⁺ = H(x⁺) − H(x),   x⁺ = x + Σᵢ √bᵢ δᵢ⁺.
/// Damped stages (StageRule) see gᵢ + δθ √bᵢP̂(cᵢ) K Σⱼ √bⱼP̂(cⱼ)δⱼ. The integrals of ∇̄ᵢH are taken by Gauss–Legendre
/// quadrature; where that is not exact, and leaves more of the balance than its rounding, gᵢ gets κδᵢ in units of
/// typical states, with the one κ that closes it. One thread at a time: it keeps scratch.
///
/// Quadrature does not see where ∇²H jumps. A part that is not smooth has the discrete gradient of one stage over the
/// whole step instead, gᵢ = √bᵢ ∇̄H(x, x⁺), damped as one stage is, and the structure of the whole step at all stages:
/// the balance is exact, and the mean effort of a contact never pulls. Its own order is that of one stage.
class StagedPhysics final : public Subsystem, public HiddenTerms, public NumericalDissipation {
 public:
  /// `part` must outlive it.
  StagedPhysics(const Subsystem& part, const StageRule& stages);

  const StageLayout& layout() const { return layout_; }
  /// x⁺ of (x, δ⁺).
  void final_state(const double* state, double* x_next) const;
  /// Lets δ⁺ lead where x⁺ is, where the part has stopped at a bound.
  void fit_increments(const double* x_next, double* state) const;

  std::vector<double> typical_state() const override { return typical_; }
  std::vector<double> default_state() const override;
  bool is_active() const override { return part_.is_active(); }
  double storage(const double* state) const override;
  void gradient(const double* state, double* g) const override {
    discrete_gradient(state, state, g);
  }
  /// `start` is (x, 0).
  void discrete_gradient(const double* start, const double* next, double* g) const override;
  void discrete_gradient_jacobian(const double* start, const double* next,
                                  std::vector<Eigen::Triplet<double>>& jacobian) const override;
  void add_gradient_terms(const double* start, const double* next, const double* g,
                          double* terms) const override;
  void add_to_gradient(const double* start, double* size) const override;
  const Eigen::MatrixXd& coupling() const override { return coupling_; }
  /// Side by side, fewer points take no less time.
  bool has_coarse_gradient() const override {
    return !coarse_nodes_.empty() && together_ == nullptr;
  }
  void coarse_gradient(const double* start, const double* next, double* g) const override;
  const StageStart* start(const double* x) const override;
  void forget_terms() const override;
  double of_energy(const double* start, const double* g) const override;
  int still() const override { return layout_.n; }
  bool gradients_cancel() const override { return cancels_; }
  bool was_corrected() const override { return correction_noise_ > 0.0; }
  double numerical_dissipation(const double* start, const double* increment) const override;
  int stage_count() const override { return layout_.stages; }
  double stage_reach(int i, int j) const override {
    return at_stages_[static_cast<std::size_t>(i)].reach[static_cast<std::size_t>(j)];
  }
  bool takes_whole_step() const override { return whole_ != nullptr; }
  bool stages_depend_on(int state) const override { return part_.structure_depends_on(state); }
  void moved_structure(const double* start, const double* increment, int state, double by,
                       double step_s, Structure& out) const override;
  /// ∂g/∂δ (s·n×s·n) and ∂g/∂x (s·n×n) of the rows beside δ at (x, δ). Serves `add_to_gradient` as
  /// discrete_gradient_jacobian does.
  void linearise(const double* state, Eigen::MatrixXd& of_delta, Eigen::MatrixXd& of_start) const;
  bool constant_structure() const override { return part_.constant_structure(); }
  const Structure& structure() const override { return structure_; }
  void structure_at(const double* mid, Structure& out) const override;
  void structure_over(const double* start, const double* increment, double step_s,
                      Structure& out) const override;
  bool has_port_laws() const override { return part_.has_port_laws(); }
  PortLawValue port_law(int scalar_port, double u) const override;
  bool has_vertical_laws() const override { return part_.has_vertical_laws(); }
  PortLawPoint port_law_point(int scalar_port, double k, double beta, double r,
                              const double* external) const override;

 private:
  /// Where the values of a stage's matrices stand in those of all stages.
  struct Places {
    std::vector<int> of[6];
  };

  struct Node {
    std::vector<double> weight;  ///< w lᵢ(τ)/√bᵢ, by stage
    std::vector<double> reach;   ///< ∫₀^τ lⱼ/√bⱼ, by stage
  };

  void state_at(const double* x, const double* delta, const std::vector<double>& reach,
                double* out) const;
  std::vector<double> reach_to(double tau) const;
  std::vector<Node> nodes_of(int points) const;
  /// What quadrature leaves of H(x⁺) − H(x), and |δ|² in units of typical states.
  struct Missing {
    double energy_J = 0.0, terms_J = 0.0, rounding_J = 0.0, length_squared = 0.0;

    bool vanishes() const {
      return !(std::abs(energy_J) > rounding_J) || !(length_squared > 1e-280);
    }
    /// κ: rises from 0 at the rounding to all that is missing at twice that, so that no step meets a jump.
    double factor() const;
  };

  void add_quadrature(const std::vector<Node>& nodes, const double* start, const double* next,
                      double* g) const;
  void add_damping(const double* start, const double* next, double* g) const;
  double storage_at(const double* x) const;
  bool is_converged() const;
  Missing missing(const double* start, const double* delta, const double* g) const;
  void correct(const double* start, const double* delta, double* g) const;
  void add_correction_terms(const double* delta, double* terms) const;
  void add_correction_slopes(const double* start, const double* next) const;
  void find_whole_step();
  void reach_the_middle();
  void whole_step(const double* delta, double* moved) const;
  void whole_gradient(const double* start, const double* next, double* g) const;
  void add_whole_terms(const double* start, const double* next, double* terms) const;
  void add_whole_slopes(const double* start, const double* next) const;
  void put_at_all_stages(Structure& out) const;
  void add_gradients_together(const double* start, const double* delta, double* g) const;
  void find_hessian_together(const double* x) const;
  void find_terms();
  void find_start(const double* x) const;
  bool is_known_start(const double* x) const;
  void find_turning(const double* x) const;
  bool is_start(const double* delta) const;
  void find_places();
  void put_nodes_together();
  void put_stage(int stage, Structure& out) const;
  void hessian_at(const double* x, std::vector<Eigen::Triplet<double>>& hessian) const;
  void add_damping_slopes(const double* x) const;

  const Subsystem& part_;
  const GradientsSideBySide* const together_;  ///< the part, if it takes gradients side by side
  StageRule stages_;
  StageLayout layout_;
  std::optional<DampedPhysics> damped_whole_;
  const Subsystem* whole_ = nullptr;  ///< the part over the whole step; null: quadrature
  Structure structure_;
  Structure stage_pattern_;  ///< of one stage, compressed
  std::vector<double> typical_, own_typical_;
  std::vector<Node> nodes_;
  /// Of nodes_, kLaneGroup of them side by side: the rows of a group are by stage.
  std::vector<double> lane_reach_, lane_weight_;
  std::vector<double>
      lane_tail_[2];  ///< by node: (2d + 1) P_d of the last two degrees d that nodes_ tell apart
  std::vector<Node> coarse_nodes_;   ///< empty: `nodes_` are no more
  std::vector<double> root_weight_;  ///< √bᵢ
  Eigen::MatrixXd coupling_;
  std::vector<Node> at_stages_;  ///< reach of X(cᵢ), or of the middle of the whole step
  std::vector<Places> places_;   ///< by stage
  bool has_terms_ = false;       ///< of gradients
  bool cancels_ = false;         ///< CancellingGradients
  bool is_corrected_ = false;    ///< the quadrature is not known to be exact

  // Scratch.
  mutable PositiveStiffness stiffness_;
  mutable Eigen::VectorXd top_;  ///< Σⱼ √bⱼP̂(cⱼ)δⱼ, and K times that
  mutable Structure stage_structure_;
  mutable std::vector<Eigen::Triplet<double>> stage_hessian_;
  mutable Eigen::MatrixXd of_delta_;           // ∂g/∂δ
  mutable std::vector<double> hessian_terms_;  // by stage, row and column: Σ |w lᵢ/√bᵢ| |∇²H|
  std::vector<double> size_weight_;            // by stage: Σ |w lᵢ/√bᵢ|
  mutable double tail_ = 0.0;                  // of the last gradients side by side
  mutable double correction_noise_ = 0.0;      // of the last gradient, over ε and |δ|
  // Where H was asked for last, and its value: a step begins where the last one has ended.
  mutable std::vector<double> stored_x_;
  mutable double stored_J_ = 0.0;
  // At the start x that was asked for last.
  mutable StageStart start_;
  mutable std::vector<double> start_x_;         // empty: none
  mutable std::vector<double> start_gradient_;  // ∇H there; of gradients side by side
  mutable std::vector<double> start_size_;      // |∇²H||x|
  mutable std::vector<double> start_terms_;     // of ∇H, beside its own; only if it has some
  mutable bool start_is_finite_ = false;
  mutable bool terms_are_of_start_ = false;  // and not in hessian_terms_
  mutable bool has_places_ = false;         // the structure under way has the pattern of structure_
  mutable bool has_hessian_terms_ = false;  // hessian_terms_ are not all 0
};

}  // namespace portwave
