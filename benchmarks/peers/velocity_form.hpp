#pragma once

// What every velocity peer does around its solver, mass by mass.

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "midpoint.hpp"

namespace portwave::bench {

/// Entries of the tridiagonal 2M/h + R + hK/2.
struct Tridiagonal {
  std::vector<double> diagonal;
  std::vector<double> off_diagonal;  ///< between mass i and i + 1; one entry fewer
};

inline Tridiagonal velocity_matrix(const Chain& chain, double h) {
  Tridiagonal matrix;
  for (std::size_t i = 0; i < chain.masses(); ++i) {
    const Block& block = chain.block_of(i);
    const double springs = chain.spring_after(i) + (i > 0 ? chain.spring_after(i - 1) : 0.0);
    matrix.diagonal.push_back(2.0 * block.mass_kg / h + block.damping_Ns_per_m + 0.5 * h * springs);
    if (i + 1 < chain.masses()) matrix.off_diagonal.push_back(-0.5 * h * chain.spring_after(i));
  }
  return matrix;
}

/// State, right-hand side and update; a peer puts its solver between the two.
class VelocityForm {
 public:
  VelocityForm(const Chain& chain, double h) : h_(h), q_(chain.q), v_(chain.v) {
    for (std::size_t i = 0; i < chain.masses(); ++i) {
      momentum_.push_back(2.0 * chain.block_of(i).mass_kg / h);
      spring_.push_back(chain.spring_after(i));
    }
  }

  /// rhs = 2M v/h − K q.
  void right_hand_side(double* __restrict rhs) const {
    const std::size_t n = q_.size();
    const double* q = q_.data();
    const double* v = v_.data();
    const double* c = momentum_.data();
    const double* k = spring_.data();
    rhs[0] = c[0] * v[0] + k[0] * (q[1] - q[0]);
    for (std::size_t i = 1; i + 1 < n; ++i) {
      rhs[i] = c[i] * v[i] + k[i] * (q[i + 1] - q[i]) - k[i - 1] * (q[i] - q[i - 1]);
    }
    rhs[n - 1] = c[n - 1] * v[n - 1] - k[n - 2] * (q[n - 1] - q[n - 2]);
  }
  void update(const double* __restrict w) {
    double* __restrict q = q_.data();
    double* __restrict v = v_.data();
    for (std::size_t i = 0; i < q_.size(); ++i) {
      q[i] += h_ * w[i];
      v[i] = 2.0 * w[i] - v[i];
    }
  }
  void read(std::span<double> q, std::span<double> v) const {
    std::copy(q_.begin(), q_.end(), q.begin());
    std::copy(v_.begin(), v_.end(), v.begin());
  }

 private:
  double h_;
  std::vector<double> q_, v_, momentum_, spring_;
};

}  // namespace portwave::bench
