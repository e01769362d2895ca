#include "differential/parts.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <Eigen/Dense>

namespace portwave::differential {
namespace {

Matrix symmetric(const Matrix& m) { return 0.5 * (m + m.transpose()); }

void randomise_ports(Random& random, PartData& part) {
  for (std::size_t j = 0; j < part.effort_in.size(); ++j) part.effort_in[j] = random.chance(0.5);
}

Matrix beam_stiffness(double L, double EI) {
  Matrix K(4, 4);
  K << 12, 6 * L, -12, 6 * L, 6 * L, 4 * L * L, -6 * L, 2 * L * L, -12, -6 * L, 12, -6 * L, 6 * L,
      2 * L * L, -6 * L, 4 * L * L;
  return (EI / (L * L * L)) * K;
}

Matrix beam_mass(double L, double density) {
  Matrix M(4, 4);
  M << 156, 22 * L, 54, -13 * L, 22 * L, 4 * L * L, 13 * L, -3 * L * L, 54, 13 * L, 156, -22 * L,
      -13 * L, -3 * L * L, -22 * L, 4 * L * L;
  return (density * L / 420.0) * M;
}

}  // namespace

PartData random_part(Random& random, const PartSpec& spec) {
  const int n = spec.states, p = spec.ports;
  PartData part = PartData::zero(n, p, spec.drives);
  const int m = part.inputs();
  part.J = random.skew(n);
  const int rank = spec.singular_Q ? std::max(1, n - 1 - random.integer(0, 1)) : n;
  part.Q = random.semidefinite(n, rank);
  if (!spec.singular_Q) part.Q += 0.25 * Matrix::Identity(n, n);
  part.Q *= spec.stiffness;
  part.G = spec.gain * random.matrix(n, m);
  if (spec.damping > 0.0) {
    const int size = spec.feedthrough ? n + m : n;
    Matrix D = random.semidefinite(size, random.integer(1, size));
    if (spec.feedthrough) D.bottomRightCorner(m, m) += 0.25 * Matrix::Identity(m, m);
    D *= spec.damping;
    part.R = D.topLeftCorner(n, n);
    if (spec.feedthrough) {
      part.P = spec.gain * D.topRightCorner(n, m);
      part.S = spec.gain * spec.gain * D.bottomRightCorner(m, m);
      part.N = spec.gain * spec.gain * random.skew(m);
    }
  }
  randomise_ports(random, part);
  if (!spec.at_rest) part.start = 2.0 * random.matrix(n, 1).col(0);
  for (int k = 0; k < n; ++k) part.group[static_cast<std::size_t>(k)] = 0;
  return part;
}

PartData descriptor_part(Random& random, const PartSpec& spec, bool dense) {
  const int n = spec.states, p = spec.ports;
  PartData part = PartData::zero(n, p, spec.drives);
  part.descriptor = true;
  const int rank = random.integer(1, n);
  const Matrix X = [&]() -> Matrix {
    if (dense) {
      // Now and then of a rank that holds up to rounding only.
      const Matrix L = random.chance(0.3) ? random.matrix(n, rank) : random.grid(n, rank);
      Matrix full = symmetric(L * L.transpose());
      if (rank == n) full += 0.25 * Matrix::Identity(n, n);
      return full;
    }
    Matrix diagonal = Matrix::Zero(n, n);
    for (int k = 0; k < rank; ++k) diagonal(k, k) = random.logarithmic(0.1, 10.0);
    return diagonal;
  }();
  for (int k = 0; k < n; ++k) part.Q(k, k) = random.power_of_two(-0.5, 0.5);
  part.E = part.Q.inverse() * X / spec.stiffness;  // EᵀQ = X, Q being powers of two
  part.J = random.skew(n);
  part.G = spec.gain * random.matrix(n, part.inputs());
  // Index ≤ 1: the kernel of E is damped, or else (J − R) is regular on it.
  const bool lossless = spec.damping == 0.0 && (n - rank) % 2 == 0;
  if (!lossless) {
    const double damping = spec.damping > 0.0 ? spec.damping : 1.0;
    part.R = damping * (random.semidefinite(n, n) + 0.0625 * Matrix::Identity(n, n));
  }
  randomise_ports(random, part);
  if (!spec.at_rest) part.start = 2.0 * random.matrix(n, 1).col(0);
  return part;
}

PartData chain_block(const BlockSpec& spec) {
  const int m = spec.masses, n = 2 * m + (spec.spring > 0.0 ? 1 : 0);
  const int p = spec.right_port || spec.spring > 0.0 ? 2 : 1;
  PartData part = PartData::zero(n, p, spec.drives);
  for (int i = 0; i < m; ++i) {
    part.J(i, m + i) = 1.0;
    part.J(m + i, i) = -1.0;
    part.Q(m + i, m + i) = 1.0 / spec.mass;
    part.group[static_cast<std::size_t>(m + i)] = 1;
    if (i + 1 == m) continue;
    for (Matrix* M : {&part.Q, &part.R}) {
      const int o = M == &part.Q ? 0 : m;
      const double value = M == &part.Q ? spec.stiffness : spec.damper;
      (*M)(o + i, o + i) += value;
      (*M)(o + i + 1, o + i + 1) += value;
      (*M)(o + i, o + i + 1) -= value;
      (*M)(o + i + 1, o + i) -= value;
    }
  }
  part.G(m, 0) = 1.0;
  if (spec.spring > 0.0) {
    const int d = 2 * m;  // δ' = v_m + f, and −kδ on the last mass
    part.J(d, 2 * m - 1) = 1.0;
    part.J(2 * m - 1, d) = -1.0;
    part.Q(d, d) = spec.spring;
    part.G(d, 1) = 1.0;
    part.effort_in[1] = false;
  } else if (spec.right_port) {
    part.G(2 * m - 1, 1) = 1.0;
  }
  if (spec.drives > 0) part.G(m, p) = 1.0;
  return part;
}

PartData element_piece(const ElementSpec& spec) {
  const int dofs = spec.beam ? 2 : 1;
  const int N = dofs * (spec.elements + 1);
  Matrix K = Matrix::Zero(N, N), M = Matrix::Zero(N, N);
  const double L = spec.length;
  for (int e = 0; e < spec.elements; ++e) {
    Matrix Ke(2, 2), Me(2, 2);
    Ke << 1, -1, -1, 1;
    Ke *= spec.rigidity / L;
    Me << 2, 1, 1, 2;
    Me *= spec.density * L / 6.0;
    K.block(dofs * e, dofs * e, 2 * dofs, 2 * dofs) +=
        spec.beam ? beam_stiffness(L, spec.rigidity) : Ke;
    M.block(dofs * e, dofs * e, 2 * dofs, 2 * dofs) += spec.beam ? beam_mass(L, spec.density) : Me;
  }
  PartData part = PartData::zero(2 * N, 2 * dofs, 0);
  part.J.topRightCorner(N, N).setIdentity();
  part.J.bottomLeftCorner(N, N) = -Matrix::Identity(N, N);
  part.Q.topLeftCorner(N, N) = K;
  part.Q.bottomRightCorner(N, N) = symmetric(M.llt().solve(Matrix::Identity(N, N)));
  part.R.bottomRightCorner(N, N) = spec.damping * K;
  for (int d = 0; d < dofs; ++d) {
    part.G(N + d, d) = 1.0;
    part.G(2 * N - dofs + d, dofs + d) = 1.0;
  }
  for (int k = 0; k < 2 * N; ++k) {
    part.group[static_cast<std::size_t>(k)] = (k < N ? 0 : 2) + (k % dofs);
  }
  return part;
}

double fastest_rate(const PartData& part) {
  const Matrix A = (part.J - part.R) * part.Q;
  if (part.descriptor) {
    const Eigen::Index rank = part.E.fullPivLu().rank();
    return A.norm() /
           (part.E.norm() / std::sqrt(static_cast<double>(std::max<Eigen::Index>(rank, 1))));
  }
  const double rate = A.eigenvalues().cwiseAbs().maxCoeff();
  return rate > 1e-6 * A.norm() ? rate : A.norm();  // nilpotent: no rate of its own
}

}  // namespace portwave::differential
