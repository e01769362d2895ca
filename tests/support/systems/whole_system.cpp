#include "support/systems/whole_system.hpp"

#include <unsupported/Eigen/MatrixFunctions>

namespace portwave::testing {

Eigen::MatrixXd generator(const CondensedSystem& system) {
  const Eigen::MatrixXd JR(SparseMatrix(system.J_local() + system.J_coupling() - system.R()));
  const Eigen::MatrixXd A = JR * Eigen::MatrixXd(system.Q());
  return Eigen::MatrixXd(system.E()).partialPivLu().solve(A);
}

Eigen::VectorXd exact_state(const CondensedSystem& system, double time_s) {
  const Eigen::MatrixXd map = (time_s * generator(system)).exp();
  return map * system.initial_state();
}

double stored_energy(const CondensedSystem& system, const double* x) {
  const Eigen::Map<const Eigen::VectorXd> state(x, system.size());
  return 0.5 * (system.Q() * state).dot(system.E() * state);
}

}  // namespace portwave::testing
