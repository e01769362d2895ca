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

}  // namespace portwave
