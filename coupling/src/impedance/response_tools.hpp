#pragma once

#include <cmath>
#include <span>
#include <vector>

#include <Eigen/Core>

#include "portwave/subsystems/core/subsystem.hpp"

namespace portwave {

/// ∂z/∂x at x; by differences where the part does not give it.
SparseMatrix hessian_at(const Subsystem& part, const double* x);

/// One entry per scalar port.
std::vector<Causality> scalar_causalities(const Signature& signature);

/// port_response, and for every port the sum of the magnitudes that its own response is the sum of.
Eigen::MatrixXd port_response(const Subsystem& part, double step_s, const double* x,
                              Eigen::VectorXd& terms);
/// The same of a part with stages, in the variables of staged_part.
Eigen::MatrixXd staged_port_response(const Subsystem& part, const StageRule& rule, double step_s,
                                     const double* x, Eigen::VectorXd& terms);
/// And of one with substeps. Precondition: no descriptor part.
Eigen::MatrixXd substepped_port_response(const Subsystem& part, const StageRule& rule, int substeps,
                                         double step_s, const double* x, Eigen::VectorXd& terms);

/// What a port's inputs and outputs are scaled by in units of the waves: √γ, or 1/√γ where it takes a flow.
inline double scale_of(double impedance, Causality causality) {
  const double root = std::sqrt(impedance);
  return causality == Causality::effort_in ? root : 1.0 / root;
}

/// visit(j, causality) for every scalar port.
template <class Visit>
void for_scalar_ports(const Signature& signature, const Visit& visit) {
  int j = 0;
  for (const Port& port : signature.ports) {
    for (int entry = 0; entry < port.dimension; ++entry) visit(j++, port.causality);
  }
}

/// The impedance of a scalar port whose output is `response` times its input.
double match_of(double response, Causality causality);

/// M̂ with ŷ = M̂û, û and ŷ being the inputs and outputs in units of the waves: e/√γ and √γ f.
Eigen::MatrixXd scaled_response(const Eigen::MatrixXd& response,
                                std::span<const Causality> causality,
                                std::span<const double> impedance);

/// The response of the ports `open` when y = −u/g at the ports `closed`, given 1/g ≥ 0 there: the
/// impedance or admittance of what closes them, by causality; 0 is an ideal end that holds y at
/// zero. (Ideal ends that hold u at zero need no closing.)
Eigen::MatrixXd closed_response(const Eigen::MatrixXd& response,
                                const std::vector<Eigen::Index>& open,
                                const std::vector<Eigen::Index>& closed,
                                const std::vector<double>& inverse);

/// 1/g of a port that is closed by an impedance.
inline double closing(double impedance, Causality causality) {
  return causality == Causality::effort_in ? 1.0 / impedance : impedance;
}

/// Whether a response with other ports closed, beside that with them open, is more than the
/// rounding of what cancels: a port that is rigid, or free, once they are has none.
inline bool is_resolved(double closed, double open) {
  return std::abs(closed) >= 1e-7 * std::abs(open);
}

inline bool is_impedance(double value) { return value > 0.0 && std::isfinite(value); }

}  // namespace portwave
