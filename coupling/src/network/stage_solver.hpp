#pragma once

#include "network/linear_solver.hpp"
#include "portwave/coupling/network/collocation.hpp"

namespace portwave {

/// One Runge–Kutta step of d/dt(Ex) = A x + g, by increments Dᵢ = Xᵢ − xⁿ:
///   (A⁻¹/h ⊗ E − I ⊗ A) D = g + 1 ⊗ A xⁿ,   xⁿ⁺¹ = xⁿ + Σᵢ wᵢDᵢ,   w = bᵀA⁻¹.
/// With a singular E the method must be stiffly accurate: then xⁿ⁺¹ is the last stage.
class StageSolver {
 public:
  /// Errors: false when the step is singular.
  bool prepare(const Tableau& tableau, double step_s, const SparseMatrix& E, const SparseMatrix& A);

  int stages() const { return stages_; }
  int size() const { return n_; }
  /// Doubles of scratch that `step` needs.
  int scratch_size() const { return 3 * stages_ * n_; }
  /// x: xⁿ in, xⁿ⁺¹ out. stage_values: in, g stage by stage; out, X.
  void step(double* x, double* stage_values, double* scratch) const;
  /// The same for kLaneGroup at once, arrays [..][state][lane]; after `prepare_lanes`.
  void prepare_lanes();
  void step_lanes(double* x, double* stage_values, double* scratch) const;
  double operations() const { return solver_.operations() + static_cast<double>(A_.nonZeros()); }

 private:
  int n_ = 0;
  int stages_ = 1;
  bool scalar_ = false;          ///< one state, one stage, and A ≠ 0
  std::vector<double> weights_;  ///< w
  SparseMatrix A_;
  LinearSolver solver_;
  LaneMatrix A_lanes_;
};

}  // namespace portwave
