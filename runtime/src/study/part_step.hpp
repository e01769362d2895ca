#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <optional>

#include <Eigen/Core>

#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"

namespace portwave {

/// One part's step as a function of (a, x, ū), solved in a record of its own.
class PartStep {
 public:
  PartStep(const StepBatch& batch)
      : batch_(batch),
        n(batch.state_size()),
        w(batch.wave_size()),
        q(batch.input_size()),
        record_(batch.record_size(), 0.0),
        next_(batch.record_size(), 0.0),
        a_(at(w), 0.0),
        b_(at(w), 0.0),
        input_(at(q), 0.0) {}

  /// (b, x⁺) of z = (a, x, ū); empty where the step has no solution.
  std::optional<Eigen::VectorXd> operator()(const Eigen::VectorXd& z) {
    std::copy_n(z.data(), w, a_.data());
    std::copy_n(z.data() + w + n, q, input_.data());
    batch_.set_state(0, z.data() + w, record_.data());
    batch_.freeze({0, 1}, record_.data(), q > 0 ? input_.data() : nullptr);
    const LaneStatus status =
        batch_.advance({0, 1}, record_.data(), a_.data(), next_.data(), b_.data(), {});
    Eigen::VectorXd out(w + n);
    std::copy_n(b_.data(), w, out.data());
    batch_.get_state(0, next_.data(), out.data() + w);
    if (!status.ok() || !out.allFinite()) return std::nullopt;
    return out;
  }

  const StepBatch& batch_;
  const int n, w, q;

 private:
  AlignedVector record_, next_, a_, b_, input_;
};

/// dF/ds at 0 by differences of sixth order, F(s) with `weights` that make its entries comparable. Begins with
/// `step`, and takes shorter ones until those of fourth order agree. Empty at a kink: beside it these disagree, and
/// right at it, where they are means of both sides, what F bends, |F(s) + F(−s) − 2F(0)|/s, does not shrink with s.
inline std::optional<Eigen::VectorXd> derivative(
    const std::function<std::optional<Eigen::VectorXd>(double)>& F, double step,
    const Eigen::VectorXd& weights) {
  constexpr double kAgree = 1e-8, kPoor = 1e-6;
  const auto here = F(0.0);
  if (!here) return std::nullopt;
  std::optional<Eigen::VectorXd> best;
  double best_error = kPoor;
  for (int attempt = 0; attempt < 7; ++attempt, step *= 0.2) {
    std::array<Eigen::VectorXd, 3> d;
    std::array<double, 3> bend = {};
    bool sound = true;
    for (int k = 0; k < 3 && sound; ++k) {
      const double s = step * (k + 1);
      const auto ahead = F(s), back = F(-s);
      sound = ahead && back;
      if (!sound) continue;
      d[at(k)] = (*ahead - *back) / (2.0 * s);
      bend[at(k)] = ((*ahead + *back) - 2.0 * *here).cwiseProduct(weights).norm() / s;
    }
    if (!sound) continue;
    const Eigen::VectorXd fourth = (4.0 * d[0] - d[1]) / 3.0;
    const Eigen::VectorXd sixth = 1.5 * d[0] - 0.6 * d[1] + 0.1 * d[2];
    const double size = sixth.cwiseProduct(weights).norm();
    const double error = (sixth - fourth).cwiseProduct(weights).norm();
    // Of a smooth F, a third and no more.
    if (bend[0] > kPoor * size && bend[0] > 0.8 * bend[2]) continue;
    if (error <= best_error * size || size == 0.0) {
      best = sixth;
      best_error = size == 0.0 ? 0.0 : error / size;
    }
    if (best && best_error <= kAgree) return best;
  }
  return best;
}

}  // namespace portwave
