#pragma once

#include <cmath>
#include <vector>

#include <Eigen/Core>

#include "portwave/subsystems/core/subsystem.hpp"

namespace portwave {

/// How a scalar port's input u follows from its waves. With s = √(2γ/h):
///   effort-in:  u + γy = s a,  b = (2/s) u − a;     flow-in:  γu + y = s a,  b = a − (2γ/s) u.
struct PortClosure {
  double s;      ///< √(2γ/h)
  double alpha;  ///< αu + βy = s a
  double beta;
  double slope;  ///< b = slope·u + sign·a
  double sign;
  double impedance;  ///< γ
  bool effort_in;

  /// u from the waves, b − sign·a = slope·u without its cancellation.
  double input(double a, double b) const {
    return effort_in ? 0.5 * s * (a + b) : 0.5 * s / impedance * (a - b);
  }
};

/// The rows of b = σa + Mz for one port, given those of u and y as linear functions of z = (x, a,
/// ū): b = a − (2γ/s) f or b = −a + (2/s) e, the one whose own reflection is the smaller. The other
/// would hide it behind ±1, whose rounding, the same in every step, acts like a small spurious
/// damper. `own` is the place of the port's a in z. Returns σ.
template <class Row, class Scalar>
double outgoing_row(const PortClosure& port, const Row& u, const Row& y, Eigen::Index own,
                    Eigen::Matrix<Scalar, 1, Eigen::Dynamic>& row) {
  const auto& effort = port.effort_in ? u : y;
  const auto& flow = port.effort_in ? y : u;
  const Scalar per_flow = Scalar(-2) * Scalar(port.impedance) / Scalar(port.s);
  const Scalar per_effort = Scalar(2) / Scalar(port.s);
  const bool use_flow = std::abs(per_flow * flow[own]) <= std::abs(per_effort * effort[own]);
  row = use_flow ? (per_flow * flow).eval() : (per_effort * effort).eval();
  return use_flow ? 1.0 : -1.0;
}

/// One closure per scalar port of a part, in place of what is there.
inline void port_closures(const Signature& signature, double step_s, const double* impedance,
                          std::vector<PortClosure>& closures) {
  closures.clear();
  for (const Port& port : signature.ports) {
    for (int c = 0; c < port.dimension; ++c) {
      const double gamma = impedance[closures.size()];
      const double s = std::sqrt(2.0 * gamma / step_s);
      if (port.causality == Causality::effort_in) {
        closures.push_back({s, 1.0, gamma, 2.0 / s, -1.0, gamma, true});
      } else {
        closures.push_back({s, gamma, 1.0, -2.0 * gamma / s, 1.0, gamma, false});
      }
    }
  }
}

/// One closure per scalar port of a part.
inline std::vector<PortClosure> port_closures(const Signature& signature, double step_s,
                                              const double* impedance) {
  std::vector<PortClosure> closures;
  port_closures(signature, step_s, impedance, closures);
  return closures;
}

}  // namespace portwave
