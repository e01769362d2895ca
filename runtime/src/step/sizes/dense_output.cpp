// States within a step that was accepted.

#include <cmath>
#include <cstddef>
#include <exception>
#include <vector>

#include "portwave/subsystems/base/index.hpp"
#include "step/sizes/step_error.hpp"

namespace portwave {
namespace {

/// Of states that the states of their part alone move, as positions are by velocities, the value at θ between the ends
/// of a step, by the slopes that they have there. A single stage knows but the chord. Calls set(state, value).
template <class Set>
void between_ends(const Subsystem& physics, const double* from, const double* to, double step_s,
                  double theta, const Set& set) {
  const Structure& s = physics.structure();
  const auto n = at(physics.signature().state_size());
  std::vector<char> is_moved_alone(n, 1);
  for (const SparseMatrix* const M : {&s.G, &s.P}) {
    for (Eigen::Index j = 0; j < M->outerSize(); ++j) {
      for (SparseMatrix::InnerIterator it(*M, j); it; ++it) {
        is_moved_alone[static_cast<std::size_t>(it.row())] = 0;
      }
    }
  }
  Eigen::VectorXd gradient(static_cast<Eigen::Index>(n));
  physics.gradient(from, gradient.data());
  const Eigen::VectorXd first = step_s * (s.J * gradient - s.R * gradient);
  physics.gradient(to, gradient.data());
  const Eigen::VectorXd last = step_s * (s.J * gradient - s.R * gradient);
  const double t = theta, t2 = t * t, t3 = t2 * t;
  for (std::size_t i = 0; i < n; ++i) {
    if (is_moved_alone[i] == 0) continue;
    const auto k = static_cast<Eigen::Index>(i);
    set(i, (2.0 * t3 - 3.0 * t2 + 1.0) * from[i] + (t3 - 2.0 * t2 + t) * first[k] +
               (3.0 * t2 - 2.0 * t3) * to[i] + (t3 - t2) * last[k]);
  }
}

}  // namespace

void StepErrorEstimate::state_at(int part, const double* x, double theta, double* out) const {
  const int n = waves_.batch(waves_.slot(part).batch).batch->state_size();
  if (!has_before_) {
    for (int i = 0; i < n; ++i) out[i] = polynomial(steps_[1], part, i, x[i], theta);
    const Subsystem* const physics = waves_.system().parts()[at(part)].port_hamiltonian();
    if (stages_.count > 1 || physics == nullptr || !physics->constant_structure() ||
        physics->linear_form().E != nullptr) {
      return;
    }
    std::vector<double> from(at(n));
    for (int i = 0; i < n; ++i) from[at(i)] = polynomial(steps_[1], part, i, x[i], 0.0);
    try {
      between_ends(*physics, from.data(), x, steps_[1].step_s, theta,
                   [out](std::size_t i, double value) { out[i] = value; });
    } catch (const std::exception&) {  // of a callback, outside its domain: the chord
    }
    return;
  }
  form_dense_weights(theta);
  for (int i = 0; i < n; ++i) {
    out[i] = x[i];
    for (int j = 0; j < stages_.count; ++j) {
      out[i] -= dense_.weights[at(j)] * steps_[1].increments[offset(part, j * n + i)];
      out[i] -=
          dense_.weights[at(stages_.count + j)] * steps_[2].increments[offset(part, j * n + i)];
    }
  }
}

double StepErrorEstimate::polynomial(const Step& step, int part, int state, double x,
                                     double theta) const {
  const int n = waves_.batch(waves_.slot(part).batch).batch->state_size();
  for (int j = 0; j < stages_.count; ++j) {
    const double to_come = stages_.b[at(j)] - stages_.integral(j, theta);
    x -= to_come / std::sqrt(stages_.b[at(j)]) * step.increments[offset(part, j * n + state)];
  }
  return x;
}

/// ∫ of the polynomial through 2s nodes that is 1 at one of them, by s points of Gauss.
double StepErrorEstimate::integral_of_lagrange(const std::array<double, 2 * kMostStages>& nodes,
                                               int node, double from, double to) const {
  const StageRule& gauss = gauss_stages(stages_.count);
  double sum = 0.0;
  for (int k = 0; k < stages_.count; ++k) {
    const double tau = from + (to - from) * gauss.c[at(k)];
    double product = gauss.b[at(k)] * (to - from);
    for (int j = 0; j < 2 * stages_.count; ++j) {
      if (j != node) product *= (tau - nodes[at(j)]) / (nodes[at(node)] - nodes[at(j)]);
    }
    sum += product;
  }
  return sum;
}

/// x(1) − x(θ) as a sum over the increments of the last step and the one before. With D the polynomial
/// through all of their rates, ∫_θ^1 D is the first guess; what ∫_0^1 D has too much beside the sum
/// that led to x(1) is taken back along 3θ² − 2θ³, which leaves the slopes at both ends.
void StepErrorEstimate::form_dense_weights(double theta) const {
  const double h = steps_[1].step_s, before = steps_[2].step_s;
  if (dense_.theta == theta && dense_.last_s == h && dense_.before_s == before) return;
  dense_.theta = theta, dense_.last_s = h, dense_.before_s = before;
  const int s = stages_.count;
  std::array<double, 2 * kMostStages> nodes = {};
  for (int j = 0; j < s; ++j) {
    nodes[at(j)] = stages_.c[at(j)];
    nodes[at(s + j)] = (stages_.c[at(j)] - 1.0) * before / h;
  }
  const double share =
      1.0 - theta * theta * (3.0 - 2.0 * theta);  // of the end that is still to come
  for (int j = 0; j < 2 * s; ++j) {
    const double own = j < s ? stages_.b[at(j)] : 0.0;
    const double excess = integral_of_lagrange(nodes, j, 0.0, 1.0) - own;
    const double weight = integral_of_lagrange(nodes, j, theta, 1.0) - excess * share;
    const double per_rate = j < s ? 1.0 : h / before;  // increments are √b h ẋ of their own step
    dense_.weights[at(j)] = weight * per_rate / std::sqrt(stages_.b[at(j < s ? j : j - s)]);
  }
}

double StepErrorEstimate::taken_at(int part, int state, double x, double theta) const {
  return polynomial(steps_[0], part, state, x, theta);
}

}  // namespace portwave
