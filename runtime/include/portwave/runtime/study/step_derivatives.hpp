#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <Eigen/Core>

#include "portwave/runtime/scenario/part_recipes.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace PORTWAVE_EXPORT portwave {

struct StepSolver;

/// The derivatives of a step x⁺(x, u, θ) that was made: of all states, in order, by the states before it, the
/// settable inputs, by slot, and the parameters that were asked for. With S: (x, u, θ, a) ↦ (b, x⁺) of the parts
/// and a = P b of the junctions, at the fixed point
///   dx⁺ = Xₓdx + Xᵤdu + X_θdθ + Xₐ(I − P Bₐ)⁻¹P(Bₓdx + Bᵤdu + B_θdθ).
/// Several threads may use it.
class StepDerivatives {
 public:
  struct Cotangents {
    Eigen::VectorXd state, input, parameter;
  };

  /// dx⁺ for changes of the right lengths. Cost: one solve with sparse factors.
  Eigen::VectorXd tangent(const Eigen::VectorXd& state, const Eigen::VectorXd& input,
                          const Eigen::VectorXd& parameter) const;
  /// The gradients of λᵀx⁺. Cost: the same.
  Cotangents adjoint(const Eigen::VectorXd& next) const;
  Eigen::MatrixXd by_state() const;
  Eigen::MatrixXd by_input() const;
  Eigen::MatrixXd by_parameter() const;

  int states() const { return static_cast<int>(Xx.rows()); }
  int inputs() const { return static_cast<int>(Xu.cols()); }
  int parameters() const { return static_cast<int>(Xp.cols()); }

  // Set by StepDifferentiator.
  SparseMatrix Xx, Xu, Xp, Xa, Bx, Bu, Bp, P;
  std::shared_ptr<const StepSolver> solver;
};

/// Steps a stepper and differentiates each step that it makes, by the implicit function theorem.
///
/// The step is solved once more here, to round-off, from the waves that it left: derivatives of a step whose
/// iteration was cut short, that the guard changed, that was taken in pieces, or before which states jumped, would be
/// those of another one, and are refused. Parts with affine port maps are differentiated exactly. Others by differences
/// of sixth order of their own step, long enough for some ten digits, and judged by those of fourth order: at a kink
/// these disagree, which is refused by the name of the part.
/// Cost: at the first step, and for each step of parts that are not affine, 6(n + m + p) port solves of each
/// part; a sparse LU of the waves for each step.
/// Errors: std::invalid_argument for what has no such derivatives, naming it: methods without waves, signal graphs,
/// steps that choose their size, cut parts, slices, foreign programs; parameters that are 0.
class StepDifferentiator {
 public:
  /// `stepper`, which steps `scenario`, must outlive it; its parts must not be exchanged meanwhile.
  /// `step_s`: of the stepper. Errors: also those of find_parameter.
  StepDifferentiator(Stepper& stepper, const Scenario& scenario, double step_s,
                     std::span<const std::string> parameters = {});
  ~StepDifferentiator();
  StepDifferentiator(const StepDifferentiator&) = delete;
  StepDifferentiator& operator=(const StepDifferentiator&) = delete;

  /// Makes one step. Errors: StepError; std::runtime_error, the step having been made, where it has no derivatives,
  /// naming the part.
  StepDerivatives step(StepReport* report = nullptr);

 private:
  class Own;
  std::unique_ptr<Own> own_;
};

}  // namespace portwave
