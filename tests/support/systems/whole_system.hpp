#pragma once

#include <Eigen/Dense>

#include <portwave/coupling/network/condensed.hpp>

namespace portwave::testing {

/// E⁻¹(J − R)Q of the whole, dense; E regular.
Eigen::MatrixXd generator(const CondensedSystem& system);
/// x(t) = exp(A t) x(0), without inputs.
Eigen::VectorXd exact_state(const CondensedSystem& system, double time_s);
/// H(x) = ½xᵀQᵀEx.
double stored_energy(const CondensedSystem& system, const double* x);

}  // namespace portwave::testing
