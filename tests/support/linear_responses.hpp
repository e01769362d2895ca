#pragma once

#include <complex>

#include <Eigen/Dense>

#include "portwave/subsystems/core/subsystem.hpp"

namespace portwave::testing {

/// H(s) = (G + P)ᵀQ(sE − (J − R)Q)⁻¹(G − P) + S + N of a linear part, over its ports and inputs.
inline Eigen::MatrixXcd transfer_function(const Subsystem& part, std::complex<double> s) {
  const Structure& structure = part.structure();
  const LinearForm form = part.linear_form();
  const Eigen::MatrixXd Q(*form.Q);
  const Eigen::MatrixXd E =
      form.E == nullptr ? Eigen::MatrixXd::Identity(Q.rows(), Q.cols()) : Eigen::MatrixXd(*form.E);
  const Eigen::MatrixXd A = Eigen::MatrixXd(structure.J - structure.R) * Q;
  const Eigen::MatrixXd input(structure.G - structure.P);
  const Eigen::MatrixXd output = Eigen::MatrixXd(structure.G + structure.P).transpose() * Q;
  const Eigen::MatrixXd through(structure.S + structure.N);
  const Eigen::MatrixXcd pencil = s * E.cast<std::complex<double>>() - A;
  return output * pencil.partialPivLu().solve(input.cast<std::complex<double>>()) + through;
}

/// The eigenvalues of E⁻¹(J − R)Q: how the part moves when its inputs are zero. E regular.
inline Eigen::VectorXcd eigenvalues(const Subsystem& part) {
  const LinearForm form = part.linear_form();
  Eigen::MatrixXd A = Eigen::MatrixXd(part.structure().J - part.structure().R) * *form.Q;
  if (form.E != nullptr) A = Eigen::MatrixXd(*form.E).partialPivLu().solve(A).eval();
  return Eigen::EigenSolver<Eigen::MatrixXd>(A, false).eigenvalues();
}

}  // namespace portwave::testing
