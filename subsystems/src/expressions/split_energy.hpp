#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <Eigen/Core>

#include "portwave/subsystems/base/expression_graph.hpp"
#include "portwave/subsystems/base/expression_tape.hpp"

namespace portwave {

/// An energy of n states split into what is quadratic and what is not:
///   H(x) = ½xᵀQx + cᵀx + w V(y),   y = the r states by which ∇²H changes, or H has kinks.
/// Its discrete gradient is that of the two: ∇̄H = Q(x + x⁺)/2 + c + w V̄(y, y⁺), where V̄ is the mean of ∇V along the
/// step: for sums of functions of one state each in closed form (divided_difference), else by Gauss quadrature, which
/// is exact for polynomials of degree ≤ kMostPolynomialDegree and corrected along the step where the rest is more
/// than round-off, so that V̄ᵀ(y⁺ − y) = V(y⁺) − V(y).
/// Threads: immutable.
class SplitEnergy {
 public:
  /// Splits the energy, a node of the graph.
  SplitEnergy(const ExpressionGraph& graph, ExpressionGraph::Node energy);

  const Eigen::MatrixXd& Q() const { return Q_; }
  const Eigen::VectorXd& c() const { return c_; }
  /// w, 1 unless set: parts that have their own share one V.
  double weight() const { return weight_; }
  void set_weight(double weight) { weight_ = weight; }
  /// The numbers of the states y, increasing.
  const std::vector<int>& bent() const { return bent_; }
  /// V̄ is exact: in closed form, or a polynomial of a degree for which quadrature is.
  bool is_exact() const { return is_exact_; }

  /// Below, value k of lane l is at [k·lanes + l]. V at y.
  template <int lanes>
  void value(const double* y, double* V, double* scratch) const {
    value_.run<lanes>(y, V, scratch);
  }
  /// ∇V and the lower half of ∇²V by columns, of y.
  TapeProgram slopes_program() const { return slopes_.program(); }
  TapeProgram value_program() const { return value_.program(); }
  /// With one bent state and an exact V̄: V̄(y, y + δ) = t₁ + t₂δ + … + t_d δ^{d−1}. d, and t₁ to t_d of y; 0: not so.
  int taylor_degree() const { return taylor_.results(); }
  TapeProgram taylor_program() const { return taylor_.program(); }
  /// Of (y, δ): V̄, its derivatives by δ and the sizes of its terms; r of each. Without results where V̄ has no
  /// closed form.
  const ExpressionTape& closed_mean() const { return closed_mean_; }
  int slope_count() const { return slopes_.results(); }
  /// Doubles of scratch that `mean` takes.
  std::size_t scratch_size(int lanes) const;

  /// V̄ (r) and ∂V̄/∂y⁺ (r×r by columns) of steps from y by δ; V_before: V(y), used where it is not exact.
  /// `noise` (r, or null): what roundings of y and y⁺ move in V̄, as multiples of ε, and the terms of V̄.
  template <int lanes>
  void mean(const double* y, const double* delta, const double* V_before, double* mean,
            double* jacobian, double* noise, double* scratch) const;

 private:
  template <int lanes>
  void take_closed_mean(const double* y, const double* delta, double* mean, double* jacobian,
                        double* noise, double* scratch) const;
  template <int lanes>
  void correct(const double* y, const double* delta, const double* V_before, double* mean,
               double* jacobian, double* noise, double* scratch) const;

  Eigen::MatrixXd Q_;
  Eigen::VectorXd c_;
  std::vector<int> bent_;
  ExpressionTape value_, slopes_, taylor_, closed_mean_;
  // See ExpressionGraph::magnitude.
  ExpressionTape terms_;            ///< of ∇V
  ExpressionTape value_and_terms_;  ///< V and its terms
  std::vector<double> nodes_, weights_;
  double weight_ = 1.0;
  bool is_exact_ = true;
};

}  // namespace portwave
