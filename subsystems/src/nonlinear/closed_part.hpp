#pragma once

#include <vector>

#include <Eigen/Core>

#include "core/port_closure.hpp"
#include "core/port_memory.hpp"
#include "nonlinear/stage_factors.hpp"
#include "nonlinear/structure_slopes.hpp"
#include "portwave/subsystems/matrices/decompositions.hpp"

namespace portwave {

/// What steps of several stages know of a part at their start x.
struct StageStart {
  Eigen::MatrixXd hessian;  ///< ∇²H
  Eigen::MatrixXd turning;  ///< ∂((J − R)z)/∂x at z = ∇H(x); 0 where the structure is constant
};

/// What a discrete gradient is made of beside its arguments: a part that hides a state x in its ∇̄H, the
/// first of its unknowns, says here what roundings of that move, and how its structure comes from x and
/// the unknowns δ of its stages, which follow.
class HiddenTerms {
 public:
  virtual ~HiddenTerms() = default;
  /// The structure of stage i is taken at X(cᵢ) = x + Σⱼ reachᵢⱼ δⱼ, and no stage sees that of another.
  virtual int stage_count() const = 0;
  virtual double stage_reach(int i, int j) const = 0;
  /// Whether ∇̄H and the structure depend on x⁺ − x = Σⱼ √bⱼδⱼ alone; stage_reach is then ½√bⱼ.
  virtual bool takes_whole_step() const = 0;
  /// Whether it depends on a state of X.
  virtual bool stages_depend_on(int state) const = 0;
  /// That over a step from x by Δ with one state of every X(cᵢ) moved by `by`.
  virtual void moved_structure(const double* start, const double* increment, int state, double by,
                               double step_s, Structure& out) const = 0;
  /// Adds to `size` (n doubles) the terms of ∇̄H that the last discrete_gradient_jacobian has seen.
  virtual void add_to_gradient(const double* x, double* size) const = 0;
  /// Ã (s×s): at the start, the gradients gᵢ of the stages have ∂gᵢ/∂δⱼ = Ãᵢⱼ ∇²H.
  virtual const Eigen::MatrixXd& coupling() const = 0;
  /// ∇̄H by the fewest points that give the order of the step; false: there are none fewer.
  virtual bool has_coarse_gradient() const = 0;
  virtual void coarse_gradient(const double* x, const double* x_next, double* g) const = 0;
  /// That of x, which counts as what the last discrete_gradient_jacobian has seen. Null where it is not finite. A
  /// function of x: that of the last x is kept.
  virtual const StageStart* start(const double* x) const = 0;
  /// There has been none: so that what comes of a state does not depend on what went before it.
  virtual void forget_terms() const = 0;
  /// Of ∇̄HᵀΔx, in the same way.
  virtual double of_energy(const double* x, const double* gradient) const = 0;
  /// So many of the first unknowns stay 0. Elimination with pivots leaves round-off in them, which
  /// beside no terms at all is infinitely much.
  virtual int still() const = 0;
  /// As CancellingGradients has it.
  virtual bool gradients_cancel() const { return false; }
  /// Whether the last ∇̄H was corrected for its balance: the derivative at the start then lacks the slope of that.
  virtual bool was_corrected() const { return false; }
};

/// A discrete gradient that is damped (StageRule): ∇̄HᵀΔx = H(x⁺) − H(x) + what it dissipates.
class NumericalDissipation {
 public:
  virtual ~NumericalDissipation() = default;
  /// [J], ≥ 0, of a step from x by Δx (n doubles each).
  virtual double numerical_dissipation(const double* x, const double* dx) const = 0;
};

/// The implicit step of one part as a system of equations in Δx = x⁺ − x, its ports closed by the
/// wave relation αu + βy = s a:
///   F(Δx) = Δx − h[(J − R)∇̄H + (G − P)u] = 0,
///   u_p = M⁻¹(s a − β((G + P)_pᵀ∇̄H + D_px u_x)),  M = diag(α) + diag(β) D_pp,  D = S + N,
/// u_p being the inputs at the ports and u_x the external ones. Δx is the unknown rather than x⁺,
/// so that a short step does not drown in the round-off of x. For descriptor parts EΔx takes the
/// place of the first Δx. After `prepare` nothing here allocates, as far as the part does not.
class ClosedPart {
 public:
  /// `hidden` and `damped` may be null.
  explicit ClosedPart(const Subsystem& part, const HiddenTerms* hidden = nullptr,
                      const NumericalDissipation* damped = nullptr);

  int size() const { return n_; }
  bool is_descriptor() const { return E_ != nullptr; }

  /// Errors: ConfigError when M is singular.
  void prepare(double step_s, const double* impedance);
  /// Ports whose inputs are given: what is called a is then u_p.
  void prepare_open(double step_s);
  /// `input` may be null: no external input.
  void freeze(const double* x, const double* input);

  /// Δx of a step at the rate of its start, with inputs of 0 at the ports: where a part would go that
  /// is left alone.
  void free_increment(Eigen::VectorXd& dx);

  /// Takes ∂∇̄H/∂x⁺ at x⁺ = x + Δx, for `evaluate` and `assemble_jacobian`.
  void linearise(const Eigen::VectorXd& dx);
  /// Sets residual() and magnitude() at Δx; returns max |F_i|/w_i, infinite when not finite.
  double evaluate(const double* a, const Eigen::VectorXd& dx);
  /// The same where nothing was linearised: magnitude() leaves out what roundings of x move.
  double evaluate_plainly(const double* a, const Eigen::VectorXd& dx);
  /// The same with ∇̄H as given: asks the part for nothing if its structure is constant.
  double evaluate_plainly(const double* a, const Eigen::VectorXd& dx, const double* gradient);
  bool was_corrected() const { return hidden_ != nullptr && hidden_->was_corrected(); }
  bool has_coarse_gradient() const { return hidden_ != nullptr && hidden_->has_coarse_gradient(); }
  /// The same with HiddenTerms::coarse_gradient.
  double evaluate_coarsely(const double* a, const Eigen::VectorXd& dx);
  /// max |F_i|/w_i of the last evaluation, which was at Δx and gave `size`, with the terms that the discrete
  /// gradient has beside its own: small where nothing but their rounding is left, as of a part that is as good as
  /// at rest.
  double beside_gradient_terms(const double* a, const Eigen::VectorXd& dx, double size);
  /// Of F, at the last `evaluate`: what its structure changes by where x and x⁺ change by their own sizes. `slopes` is
  /// scratch, n × n. Spoils the result of `evaluate`.
  void structure_terms(const double* a, const Eigen::VectorXd& dx, Eigen::MatrixXd& slopes,
                       Eigen::VectorXd& out);
  const Eigen::VectorXd& residual() const { return F_; }
  /// w: the sum of the magnitudes of the terms of F. εw is the round-off of F. A rounding of x or
  /// x⁺ moves ∇̄H by ε|∂∇̄H|(|x| + |x⁺|), which counts as a term of ∇̄H.
  const Eigen::VectorXd& magnitude() const { return w_; }
  const Eigen::VectorXd& gradient() const { return g_; }
  /// Over the step of the last evaluation.
  const Structure& structure() const { return structure_; }
  /// |∂∇̄Hᵢ/∂x⁺ᵢ| of the last `linearise`: Σ stiffnessᵢ Δxᵢ² is an energy, whatever the units of x.
  void stiffness(Eigen::VectorXd& out) const;
  /// ∂F/∂Δx at the Δx of the last `linearise` and `evaluate`. Spoils the result of `evaluate`.
  void assemble_jacobian(const double* a, const Eigen::VectorXd& dx, Eigen::MatrixXd& jacobian);

  /// HiddenTerms::start of the frozen x; null also where laws of ports make the derivative depend on waves.
  const StageStart* stage_start() const;
  /// ∂F/∂Δx at Δx = 0 of the unknowns that move, but for what u has to do with structures that change. Depends on
  /// x alone. After an `evaluate` at 0.
  void start_derivative(const StageStart& start, StageDerivative& out) const;
  /// −∂F/∂a of one scalar port, at the structure of the last `evaluate`.
  void wave_column(int port, Eigen::VectorXd& out);
  /// How b moves with the wave at that port, if ∇̄H moves by `gradient`: into column `port` of a row-major D.
  void wave_response(int port, const Eigen::VectorXd& gradient, double* D);
  double step_s() const { return step_s_; }
  /// The frozen x.
  const Eigen::VectorXd& start() const { return x_; }
  /// Of all calls of `prepare`.
  int preparation() const { return preparation_; }

  /// From now on the structure is that over a step by `from` and, by this share, that by `to`, at every Δx: the law at a
  /// jump between the two, where a state slides along it (Filippov). Passive like both.
  void slide(const Eigen::VectorXd& from, const Eigen::VectorXd& to, double share);
  /// From now on the equations are F(Δx) = Δx − share·h[…] with the same wave relation: those of the step at 1.
  void shorten(double share) { h_ = share * step_s_; }
  /// Again that over each step.
  void slide_no_more() { slides_ = false; }
  bool has_constant_structure() const { return part_.constant_structure(); }

  /// From the last `evaluate`: whether u is finite, b, and the committed step.
  bool inputs_are_finite() const { return u_.allFinite(); }
  void outgoing(const double* a, double* b) const;
  /// y at the ports and the magnitudes of its terms. Precondition: `prepare_open`.
  void outputs(double* y, double* magnitudes);
  StepEnergy commit(const Eigen::VectorXd& dx, double* x_next);

 private:
  void close_port_laws();
  void solve_port_laws();
  PortLawValue port_law(int port, double u) const;
  void make_room();
  void close_ports(const Structure& structure);
  void close_loop(const Structure& structure);
  double close(const double* a, const Eigen::VectorXd& dx);
  void set_magnitude(const double* a, const Eigen::VectorXd& dx);
  bool gradients_cancel() const { return hidden_ != nullptr && hidden_->gradients_cancel(); }
  double admit_gradient_terms(const double* a, const Eigen::VectorXd& dx, double size);
  double stored_change(const double* x_next, double numerical_J);
  void add_slopes(const double* a, const Eigen::VectorXd& dx, Eigen::MatrixXd& jacobian);
  void add_structure_slopes(const double* a, const Eigen::VectorXd& dx, Eigen::MatrixXd& jacobian);
  void add_stage_slopes(const double* a, const Eigen::VectorXd& dx, Eigen::MatrixXd& jacobian);
  void move_end(int j, double value, const double* a, Eigen::VectorXd& v);

  const Subsystem& part_;
  const HiddenTerms* hidden_;
  const NumericalDissipation* damped_;
  const PortMemory* memory_;       ///< null: the laws of its ports depend on no state
  const StructureSlopes* slopes_;  ///< null: by differences
  int n_;                          ///< states
  int p_;                          ///< scalar ports
  int m_;                          ///< scalar ports and external inputs
  bool has_laws_;
  bool feeds_through_;  ///< S or N may have entries
  double step_s_ = 0.0;
  double h_ = 0.0;  ///< step_s_, or a share of it
  int preparation_ = 0;
  std::vector<PortClosure> closures_;
  const SparseMatrix* E_;      ///< null: the identity
  Structure structure_;        ///< over the step of the last `evaluate`
  Structure probe_structure_;  ///< scratch
  bool slides_ = false;
  Eigen::MatrixXd input_map_;  ///< M⁻¹
  Eigen::MatrixXd closed_;  ///< ∂(F's rate)/∂∇̄H: (J − R) − (G − P)_p M⁻¹β(G + P)_pᵀ
  std::vector<double> typical_;  ///< sizes of the states where the structure depends on them

  Eigen::VectorXd x_, external_;  ///< frozen; of the m entries of external_ the first p are unused

  // Scratch. Names in _size hold magnitudes of terms.
  Eigen::VectorXd x_next_, probe_, slope_, g_, g_size_, v_, v_size_, F_, w_, row_, column_;
  Eigen::VectorXd u_, u_size_, y_, y_size_, rhs_;
  std::vector<PortLawValue> laws_;  ///< φ at the inputs of the last evaluation
  Eigen::MatrixXd M_, identity_, turning_;

  DenseLu M_lu_;
  std::vector<Eigen::Triplet<double>> entries_;  ///< ∂∇̄H/∂x⁺

  template <bool kMagnitudes>
  void rate(const Structure& structure, const Eigen::VectorXd& g, const double* a,
            Eigen::VectorXd& u, Eigen::VectorXd& y, Eigen::VectorXd& v);
};

/// max |F_i|/(w_i + kLeastTerms) with 0/0 = 0; infinity when something is not finite.
double scaled_size(const Eigen::VectorXd& F, const Eigen::VectorXd& w);

}  // namespace portwave
