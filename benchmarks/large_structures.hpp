#pragma once

#include <array>
#include <vector>

#include "portwave/subsystems/descriptor/second_order.hpp"

namespace portwave::bench {

/// A structure of one material with Rayleigh damping, D = 0.2 M + 1e-5 K, and a force on one coordinate.
inline SecondOrderForm structure(SparseMatrix M, SparseMatrix K, int driven) {
  SecondOrderForm form{.M = std::move(M), .D = {}, .K = std::move(K), .B = {}};
  form.D = SparseMatrix(0.2 * form.M + 1e-5 * form.K);
  form.B.resize(form.M.rows(), 1);
  form.B.insert(driven, 0) = 1.0;
  form.B.makeCompressed();
  return form;
}

/// A simply supported plate by finite differences, side × side inner nodes: K = L Lᵀ, 13 entries in
/// a row, L the five-point Laplacian. Not diagonally dominant. Lumped masses that vary by a fifth.
inline SecondOrderForm plate_form(int side) {
  const int n = side * side;
  std::vector<Eigen::Triplet<double>> L, M;
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const int i = y * side + x;
      L.emplace_back(i, i, 4.0);
      if (x > 0) L.emplace_back(i, i - 1, -1.0);
      if (x + 1 < side) L.emplace_back(i, i + 1, -1.0);
      if (y > 0) L.emplace_back(i, i - side, -1.0);
      if (y + 1 < side) L.emplace_back(i, i + side, -1.0);
      M.emplace_back(i, i, 1.0 + 0.05 * (i % 5));
    }
  }
  SparseMatrix laplacian(n, n), mass(n, n);
  laplacian.setFromTriplets(L.begin(), L.end());
  mass.setFromTriplets(M.begin(), M.end());
  const SparseMatrix K = 1e4 * SparseMatrix(laplacian * SparseMatrix(laplacian.transpose()));
  return structure(std::move(mass), K, n / 2 + side / 3);
}

/// A solid of side³ masses with three coordinates each, bars along edges and diagonals of faces, held
/// at the bottom by springs. Not diagonally dominant, 39 entries in a row and more.
inline SecondOrderForm solid_form(int side) {
  const int nodes = side * side * side, n = 3 * nodes;
  const auto node = [side](int x, int y, int z) { return (z * side + y) * side + x; };
  const std::array<std::array<int, 3>, 9> bars = {{{1, 0, 0},
                                                   {0, 1, 0},
                                                   {0, 0, 1},
                                                   {1, 1, 0},
                                                   {1, -1, 0},
                                                   {1, 0, 1},
                                                   {1, 0, -1},
                                                   {0, 1, 1},
                                                   {0, 1, -1}}};
  std::vector<Eigen::Triplet<double>> K, M;
  const auto is_inside = [side](int i) { return i >= 0 && i < side; };
  for (int z = 0; z < side; ++z) {
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) {
        const int a = node(x, y, z);
        for (int k = 0; k < 3; ++k) {
          M.emplace_back(3 * a + k, 3 * a + k, 1.0 + 0.05 * (a % 5));
          if (z == 0) K.emplace_back(3 * a + k, 3 * a + k, 2e4);
        }
        for (const auto& [dx, dy, dz] : bars) {
          if (!is_inside(x + dx) || !is_inside(y + dy) || !is_inside(z + dz)) continue;
          const int b = node(x + dx, y + dy, z + dz);
          const std::array<int, 3> along = {dx, dy, dz};
          const double stiffness = 1e4 / (dx * dx + dy * dy + dz * dz);
          for (std::size_t i = 0; i < 3; ++i) {
            for (std::size_t j = 0; j < 3; ++j) {
              const double value = stiffness * along[i] * along[j];
              if (value == 0.0) continue;
              const int p = static_cast<int>(i), q = static_cast<int>(j);
              K.emplace_back(3 * a + p, 3 * a + q, value);
              K.emplace_back(3 * b + p, 3 * b + q, value);
              K.emplace_back(3 * a + p, 3 * b + q, -value);
              K.emplace_back(3 * b + p, 3 * a + q, -value);
            }
          }
        }
      }
    }
  }
  SparseMatrix stiffness(n, n), mass(n, n);
  stiffness.setFromTriplets(K.begin(), K.end());
  mass.setFromTriplets(M.begin(), M.end());
  return structure(std::move(mass), std::move(stiffness), n / 2);
}

}  // namespace portwave::bench
