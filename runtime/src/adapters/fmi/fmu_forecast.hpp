#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <Eigen/Core>
#include <Eigen/Eigenvalues>

namespace portwave::fmi {

/// One step of an FMU as its ports saw it, in SI units. The inputs are those of its p ports, then q others.
struct PortStep {
  PortStep(std::size_t ports, std::size_t others)
      : inputs(static_cast<Eigen::Index>(ports + others)),
        begin(static_cast<Eigen::Index>(ports)),
        mean(begin.size()),
        end(begin.size()) {}

  Eigen::VectorXd inputs;  ///< held over the step
  Eigen::VectorXd begin;   ///< answers at its beginning, once the inputs of the ports are set
  Eigen::VectorXd mean;    ///< ȳ over the step
  Eigen::VectorXd end;     ///< answers at its end
};

/// ȳ ≈ y + S (inputs − at).
struct AffineAnswer {
  AffineAnswer(std::size_t ports, std::size_t others)
      : at(Eigen::VectorXd::Zero(static_cast<Eigen::Index>(ports + others))),
        y(Eigen::VectorXd::Zero(static_cast<Eigen::Index>(ports))),
        slopes(Eigen::MatrixXd::Zero(y.size(), at.size())) {}

  Eigen::VectorXd at, y;
  Eigen::MatrixXd slopes;
};

/// Foretells the mean answers of the next step from the steps before, whatever its inputs will be: for an FMU that
/// cannot go back, and so cannot be asked.
///
///   ȳₙ = y(tₙ) + Θ [y(tₙ), uₙ, uₙ₋₁, ȳₙ₋₁ − yₙ₋₁(end), yₙ₋₁(end) − yₙ₋₁(begin), …, uₙ₋ₗ, …, 1]
///
/// y(tₙ), the answer at the beginning, is what the FMU has shown, with what the ports feed through at once; all that
/// is multiplied is of the size of a step, or of an input. Of an FMU that is linear, with up to about 3 states per lag
/// and port, the sum is exact, however fast it decays or swings; of others the first term is right as steps shrink.
///
/// Θ is fitted by least squares to first steps, which instances of their own have taken, and stays. What it misses is
/// laid on the inputs of the ports, by secants from step to step; where that has lately proved better, these slopes are
/// added. The symmetric part of the slopes of the ports is kept positive semidefinite: what an answer gains from its
/// input, it takes from it.
class Forecast {
 public:
  Forecast(std::size_t ports, std::size_t others);

  /// Fits to steps, run by run from the start. `first`: what a first step answers; `through`: what inputs of the ports
  /// change at once.
  void fit(std::span<const std::vector<PortStep>> runs, const AffineAnswer& first,
           const Eigen::MatrixXd& through);
  /// Largest error of the fit, relative to the largest term that is fitted.
  double misfit() const { return misfit_; }
  std::size_t lags() const { return lags_; }

  /// The run begins.
  void begin();
  /// A step was taken; `through` as it is at its end.
  void take(const PortStep& step, const Eigen::MatrixXd& through);
  /// What the next one will answer.
  const AffineAnswer& next() const { return next_; }

  static constexpr std::size_t kMostLags = 3;
  /// Steps of each of three runs that `fit` should have.
  static std::size_t steps_to_fit(std::size_t ports, std::size_t others);

 private:
  std::size_t columns(std::size_t lags) const;
  /// All but y(tₙ) and uₙ into `row`; `past(l)` is the step l before.
  template <class Past>
  void fill(std::size_t lags, const Past& past, Eigen::Ref<Eigen::VectorXd> row) const;
  bool is_settled() const { return steps_ > 0 && steps_ >= lags_; }
  void learn(const PortStep& step);
  void foretell(const Eigen::MatrixXd& through);
  void keep_passive();

  std::size_t ports_, others_;
  AffineAnswer first_, next_;
  std::vector<Eigen::MatrixXd> thetas_;  // by lags
  std::size_t lags_ = 0;
  double misfit_ = 0.0;

  std::vector<PortStep> past_;  // the last ones, in a ring
  std::size_t steps_ = 0;
  Eigen::VectorXd row_, miss_, scaled_, largest_;
  Eigen::MatrixXd secant_;                // slopes beside Θ
  double plain_ = 0.0, by_secant_ = 0.0;  // squares of what both have missed lately
  double size_ = 0.0;                     // of answers so far
  Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen_;
};

/// h/4 yᵀ sym(Y)⁻¹ y over the directions in which a part takes energy: the most it can give in a step of ȳ = y + Y u.
double available_energy(const Eigen::MatrixXd& Y, const Eigen::VectorXd& y, double h);

}  // namespace portwave::fmi
