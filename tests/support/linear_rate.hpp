#pragma once

// Spectral radii of the linearised inner iterations, by dense matrices.

#include <cstddef>
#include <span>
#include <vector>

#include <Eigen/Dense>

#include "portwave/coupling/impedance/tuning.hpp"
#include "portwave/coupling/system/interconnection.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/subsystems/base/aligned.hpp"

namespace portwave::testing {

/// P and D over the scalar ports of a small system.
struct WaveMatrices {
  Eigen::MatrixXd P, D;
};

inline WaveMatrices wave_matrices(const PortResponses& responses,
                                  std::span<const double> impedance) {
  const System& system = responses.system();
  const auto n = static_cast<Eigen::Index>(impedance.size());
  WaveMatrices out{Eigen::MatrixXd::Zero(n, n), Eigen::MatrixXd::Zero(n, n)};
  const Interconnection coupling(system.junctions(), impedance);
  AlignedVector b(impedance.size(), 0.0), a(impedance.size(), 0.0);
  for (Eigen::Index j = 0; j < n; ++j) {
    b[static_cast<std::size_t>(j)] = 1.0;
    coupling.exchange(b.data(), a.data());
    out.P.col(j) = Eigen::Map<const Eigen::VectorXd>(a.data(), n);
    b[static_cast<std::size_t>(j)] = 0.0;
  }
  for (int part = 0; part < static_cast<int>(system.parts().size()); ++part) {
    const Eigen::MatrixXd& response = responses.of(part);
    const int first = system.first_scalar_port(part);
    out.D.block(first, first, response.rows(), response.rows()) = scattering_matrix(
        response, system.parts()[static_cast<std::size_t>(part)].component->signature(),
        impedance.subspan(static_cast<std::size_t>(first),
                          static_cast<std::size_t>(response.rows())));
  }
  return out;
}

inline double spectral_radius(const Eigen::MatrixXd& matrix) {
  return Eigen::EigenSolver<Eigen::MatrixXd>(matrix, false).eigenvalues().cwiseAbs().maxCoeff();
}

/// Of u ← u + θ(PDu − u).
inline double peaceman_rachford_rate(const WaveMatrices& m, double relaxation = 1.0) {
  const auto I = Eigen::MatrixXd::Identity(m.P.rows(), m.P.cols());
  return spectral_radius((1.0 - relaxation) * I + relaxation * m.P * m.D);
}

/// Of u ← u + λ((2I − P)⁻¹(2D − I)u − Du).
inline double douglas_rachford_rate(const WaveMatrices& m, double relaxation = 1.0) {
  const Eigen::MatrixXd I = Eigen::MatrixXd::Identity(m.P.rows(), m.P.cols());
  return spectral_radius(I +
                         relaxation * ((2.0 * I - m.P).partialPivLu().solve(2.0 * m.D - I) - m.D));
}

}  // namespace portwave::testing
