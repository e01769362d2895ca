#include "matched_impedance.hpp"

#include <Eigen/SparseLU>

namespace portwave {

// With x⁺ = x + ξ and ∇̄H(x, x + ξ) ≈ ∇H(x) + Mξ, the step's response to inputs u is
//   (I/h − (J − R)M) ξ = (G − P) u,   y = (G + P)ᵀMξ + (S + N) u.
std::vector<double> matched_impedances(const Subsystem& part, double step_s) {
  const Structure& s = part.structure();
  const Eigen::Index n = s.states();
  const std::vector<double> x = part.default_state();
  std::vector<Eigen::Triplet<double>> entries;
  part.discrete_gradient_jacobian(x.data(), x.data(), entries);
  SparseMatrix M(n, n);
  M.setFromTriplets(entries.begin(), entries.end());
  SparseMatrix identity(n, n);
  identity.setIdentity();
  const SparseMatrix step = SparseMatrix(identity / step_s) - SparseMatrix(s.J - s.R) * M;
  Eigen::SparseLU<SparseMatrix> solver;
  solver.compute(step);

  const SparseMatrix in = s.G - s.P;
  const SparseMatrix out = s.G + s.P;
  const SparseMatrix through = s.S + s.N;
  std::vector<double> impedances;
  int input = 0;
  for (const Port& port : part.signature().ports) {
    for (int component = 0; component < port.dimension; ++component, ++input) {
      const Eigen::VectorXd column = in.col(input);
      const Eigen::VectorXd state = solver.solve(column);
      const double response =
          Eigen::VectorXd(out.col(input)).dot(M * state) + through.coeff(input, input);
      impedances.push_back(port.causality == Causality::flow_in ? response : 1.0 / response);
    }
  }
  return impedances;
}

}  // namespace portwave
