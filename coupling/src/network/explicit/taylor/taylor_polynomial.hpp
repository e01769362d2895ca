#pragma once

#include <span>
#include <vector>

#include <Eigen/Core>

#include "network/explicit/taylor/taylor_island.hpp"

namespace portwave {

/// The Taylor series of a linear network, all islands at once: w₀ = x, wₖ₊₁ = h/(k+1)·(A(Qwₖ + cₖ) + B sₖ). Dead
/// states, which may be too fast for a series, are left out of it: nobody sees them.
class TaylorSeries {
 public:
  /// Both must outlive it.
  TaylorSeries(const LinearNetwork& network, const TaylorScheme& scheme);

  /// w₀, in a step from `start_s` on. Throws InputFault.
  void begin(const Eigen::VectorXd& x, double start_s, double step_s);
  /// From wₖ to wₖ₊₁.
  void next();
  int number() const { return number_; }  ///< k
  const Eigen::VectorXd& term() const { return w_; }
  /// By power, a row for each, and input.
  const Eigen::MatrixXd& powers() const { return powers_; }

 private:
  const LinearNetwork& network_;
  const TaylorScheme& scheme_;
  SparseMatrix rate_;
  Eigen::VectorXd steady_, w_, next_;
  Eigen::MatrixXd powers_;
  double step_s_ = 0.0;
  int number_ = 0;
};

/// States within a step: the polynomial of the series, its last power so that it meets the end of the step. A dead
/// state decays exponentially.
class TaylorPolynomial {
 public:
  TaylorPolynomial(const LinearNetwork& network, const TaylorScheme& scheme)
      : network_(network), order_(scheme.order), series_(network, scheme) {}

  void pass_through(std::span<const double> start, std::span<const double> end, double start_s,
                    double step_s);
  bool is_known() const { return terms_.cols() > 0; }
  void forget() { terms_.resize(0, 0); }
  void state(int first, double share, std::span<double> state) const;

 private:
  const LinearNetwork& network_;
  int order_;
  TaylorSeries series_;
  Eigen::MatrixXd terms_;  ///< by state and power
  std::vector<double> end_;
};

}  // namespace portwave
