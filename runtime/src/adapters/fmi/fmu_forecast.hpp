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
/// Θ is fitted by least squares to first steps, which instances of their own have taken, and stays. An FMU that misses
/// it in its first step, or later so that differences from the step before would have missed less, is *bent*: from then
/// on the sum holds for differences from the step before. Far from where Θ was fitted, as of friction that slides or
/// a contact that is closed, the sum itself is off by all that the answer does not follow; its changes are not.
///
/// What either misses is laid on the inputs of the ports, or on their changes, by secants from step to step; where that
/// has lately proved better, these slopes are added. The symmetric part of the slopes of the ports is kept positive semidefinite: what an answer gains from its
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
  /// Whether steps and what inputs change at once are those of a linear system.
  bool is_linear() const;
  std::size_t lags() const { return lags_; }

  /// The run begins.
  void begin();
  /// A step was taken; `through` as it is at its end. `least`: smaller answers move nothing that the ports join.
  void take(const PortStep& step, const Eigen::MatrixXd& through, double least);
  /// What the next one will answer.
  const AffineAnswer& next() const { return next_; }

  static constexpr std::size_t kMostLags = 3;
  static constexpr double kUseless = 0.1;  ///< one beyond is a fit to nothing, and not used
  static constexpr double kLinear = 1e-6;  ///< a misfit up to this is that of a linear system
  /// Steps of each of three runs that `fit` should have.
  static std::size_t steps_to_fit(std::size_t ports, std::size_t others);

 private:
  std::size_t columns(std::size_t lags) const;
  /// All but y(tₙ) and uₙ into `row`; `past(l)` is the step l before.
  template <class Past>
  void fill(std::size_t lags, const Past& past, Eigen::Ref<Eigen::VectorXd> row) const;
  /// Secants from step to step for what is missed, and squares of what is missed without and with them.
  struct Misses {
    explicit Misses(std::size_t ports);
    void begin();
    /// `missed` spoiled; moves below `least` tell nothing.
    void learn(Eigen::VectorXd& missed, const Eigen::VectorXd& moved, double least);
    bool is_better_by_secant() const;
    double least() const { return is_better_by_secant() ? by_secant : plain; }

    Eigen::MatrixXd secant;
    Eigen::VectorXd largest, scaled;
    double plain = 0.0, by_secant = 0.0;
  };

  bool is_settled() const { return steps_ > 0 && steps_ >= lags_; }
  const PortStep& past(std::size_t lag) const { return past_[(steps_ - lag) % kKept]; }
  void learn(const PortStep& step);
  void tell_by_differences(const Eigen::VectorXd& begin, const Eigen::VectorXd& inputs);
  void foretell(const Eigen::MatrixXd& through);
  void keep_passive();

  std::size_t ports_, others_;
  AffineAnswer first_, next_;
  std::vector<Eigen::MatrixXd> thetas_;  // by lags
  std::size_t lags_ = 0;
  double misfit_ = 0.0;
  double bend_ = 0.0;  ///< as misfit_, of what inputs change at once

  static constexpr std::size_t kKept = kMostLags + 1;
  std::vector<PortStep> past_;  // the last ones, in a ring
  std::size_t steps_ = 0;
  bool bent_ = false;
  Eigen::VectorXd row_, before_, told_, miss_, moved_;
  Misses plainly_, by_differences_;
  double size_ = 0.0;  // of answers so far
  Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen_;
};

/// h/4 yᵀ sym(Y)⁻¹ y over the directions in which a part takes energy: the most it can give in a step of ȳ = y + Y u.
double available_energy(const Eigen::MatrixXd& Y, const Eigen::VectorXd& y, double h);
/// The least response of a port to what it is given, relative to the largest: negative where the part gives energy for
/// it, as a passive one never does.
double least_response(const Eigen::MatrixXd& Y);

}  // namespace portwave::fmi
