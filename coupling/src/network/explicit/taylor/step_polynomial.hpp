#pragma once

#include <span>
#include <vector>

#include <Eigen/Core>

#include "network/explicit/network_form.hpp"

namespace portwave {

/// States within a step of a network: the polynomial through some states of it, their rates and the rates of those.
/// A dead state decays exponentially from one to the next.
class StepPolynomial {
 public:
  /// The network must outlive it.
  explicit StepPolynomial(const NetworkForm& network);

  /// A state of the whole at a share of the step.
  struct Node {
    double place = 0.0;
    std::span<const double> x;
  };
  /// `nodes`: from the start to the end of the step, both included.
  void pass_through(std::span<const Node> nodes, double start_s, double step_s);
  /// Whether it passes through these states at its ends, as far as the states from `first` on are concerned.
  bool ends_at(std::span<const double> start, std::span<const double> end, int first,
               int size) const;
  void state(int first, double share, std::span<double> state) const;

  /// z = ∇H(x), s = the inputs there, and ẋ if asked for, at a share of a step.
  void look_at(const double* x, double start_s, double step_s, double share, bool with_rate);
  const Eigen::VectorXd& z() const { return z_; }
  const Eigen::VectorXd& s() const { return s_; }
  const Eigen::VectorXd& rate() const { return rate_; }

 private:
  static constexpr int kMostNodes = 3;
  /// x, hẋ, ½h²ẍ at a place.
  struct Known {
    double place = 0.0;
    Eigen::VectorXd x, slope, bend;
  };
  void find_bend(Known& node, double start_s, double step_s);
  double decayed(Eigen::Index state, double share) const;

  const NetworkForm& network_;
  std::vector<Known> nodes_;
  Eigen::VectorXd z_, s_, rate_, there_;
};

}  // namespace portwave
