#pragma once

#include <cstddef>
#include <vector>

#include "midpoint.hpp"

namespace portwave::bench {

struct Entry {
  int row;
  int column;
  double value;
};

/// Entries of 1 − hA/2 for x = (q₁, v₁, q₂, v₂, …): three diagonals below, one above.
inline std::vector<Entry> whole_state_matrix(const Chain& chain, double h) {
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < chain.masses(); ++i) {
    const Block& block = chain.block_of(i);
    const double left = i > 0 ? chain.spring_after(i - 1) : 0.0;
    const double right = chain.spring_after(i);
    const double scale = 0.5 * h / block.mass_kg;
    const int q = static_cast<int>(2 * i), v = q + 1;
    entries.push_back({q, q, 1.0});
    entries.push_back({q, v, -0.5 * h});
    entries.push_back({v, v, 1.0 + scale * block.damping_Ns_per_m});
    entries.push_back({v, q, scale * (left + right)});
    if (i > 0) entries.push_back({v, q - 2, -scale * left});
    if (i + 1 < chain.masses()) entries.push_back({v, q + 2, -scale * right});
  }
  return entries;
}

/// x = (q₁, v₁, q₂, v₂, …).
inline std::vector<double> whole_state(const Chain& chain) {
  std::vector<double> x;
  for (std::size_t i = 0; i < chain.masses(); ++i) {
    x.push_back(chain.q[i]);
    x.push_back(chain.v[i]);
  }
  return x;
}

inline void read_whole_state(const double* x, std::span<double> q, std::span<double> v) {
  for (std::size_t i = 0; i < q.size(); ++i) {
    q[i] = x[2 * i];
    v[i] = x[2 * i + 1];
  }
}

}  // namespace portwave::bench
