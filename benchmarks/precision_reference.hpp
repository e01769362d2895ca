#pragma once

// Trusted solutions for the work–precision benchmark, from nothing but the right-hand side.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "peers/chain.hpp"
#include "peers/ode.hpp"

namespace portwave::bench {

/// ‖x − x*‖₂/‖x*‖₂.
inline double relative_error(const std::vector<double>& x, const std::vector<double>& expected) {
  double difference = 0.0, size = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    difference += std::pow(x[i] - expected[i], 2);
    size += std::pow(expected[i], 2);
  }
  const double error = std::sqrt(difference / size);
  return std::isfinite(error) ? error : HUGE_VAL;
}

/// Gragg's midpoint rule with its smoothing step: `parts` (even) steps over h, error in h² only.
template <class Real, class Slope>
std::vector<Real> gragg(const Slope& slope, Real t, Real h, int parts,
                        const std::vector<Real>& start) {
  const std::size_t n = start.size();
  const Real tau = h / parts;
  std::vector<Real> before = start, now(n), x_dot(n);
  slope(t, before.data(), x_dot.data());
  for (std::size_t i = 0; i < n; ++i) now[i] = before[i] + tau * x_dot[i];
  for (int k = 1; k < parts; ++k) {
    slope(t + k * tau, now.data(), x_dot.data());
    for (std::size_t i = 0; i < n; ++i) before[i] += 2 * tau * x_dot[i];
    before.swap(now);
  }
  slope(t + h, now.data(), x_dot.data());
  for (std::size_t i = 0; i < n; ++i) now[i] = (before[i] + now[i] + tau * x_dot[i]) / 2;
  return now;
}

/// x(end) by extrapolation of Gragg's rule to order 12, from x = x(0) in `steps` steps.
template <class Real, class Slope>
std::vector<Real> extrapolated(const Slope& slope, std::vector<Real> x, Real end, int steps) {
  constexpr int kColumns = 6;
  const Real h = end / steps;
  std::array<std::vector<Real>, kColumns> column;
  for (int step = 0; step < steps; ++step) {
    for (int j = 0; j < kColumns; ++j) {
      column[j] = gragg(slope, step * h, h, 2 * (j + 1), x);
      for (int k = j; k-- > 0;) {  // Aitken–Neville in h²
        const Real ratio = static_cast<Real>(j + 1) / static_cast<Real>(k + 1);
        const Real share = 1 / (ratio * ratio - 1);
        for (std::size_t i = 0; i < x.size(); ++i) {
          column[k][i] = column[k + 1][i] + (column[k + 1][i] - column[k][i]) * share;
        }
      }
    }
    x = column[0];
  }
  return x;
}

/// The same of an Ode, in the physical order.
inline std::vector<double> extrapolated(const Ode& ode, double end_s, int steps) {
  const auto slope = [&ode](double t, const double* x, double* x_dot) { ode.slope(t, x, x_dot); };
  return ode.physical(extrapolated(slope, ode.start(), end_s, steps).data());
}

/// The pair with more digits, since it amplifies rounding a thousandfold. Shares no line with
/// `pair_ode`.
inline std::vector<double> pair_in_more_digits(const PairParameters& p, double end_s, int steps) {
  using Real = long double;
  const auto slope = [&p](Real, const Real* x, Real* x_dot) {  // (q₁, q₂, v₁, v₂)
    const Real coupling =
        p.coupling_stiffness_N_per_m * (x[1] - x[0]) + p.coupling_damping_Ns_per_m * (x[3] - x[2]);
    x_dot[0] = x[2];
    x_dot[1] = x[3];
    x_dot[2] =
        (coupling - p.stiffness_N_per_m * x[0] - p.cubic_stiffness_N_per_m3 * x[0] * x[0] * x[0]) /
        p.duffing_mass_kg;
    x_dot[3] = (-coupling - p.linear_stiffness_N_per_m * x[1]) / p.linear_mass_kg;
  };
  const std::vector<Real> end =
      extrapolated(slope, std::vector<Real>{p.initial_m, 0, 0, 0}, static_cast<Real>(end_s), steps);
  std::vector<double> state;
  for (const Real value : end) state.push_back(static_cast<double>(value));
  return state;
}

/// The chain by the Taylor series of its exact flow, the time cut into pieces of at most ω h = 0.5:
/// 30 terms reach round-off. Shares no line with `chain_ode`.
inline std::vector<double> chain_series(const Chain& chain, double end_s, int pieces) {
  const std::size_t n = chain.masses();
  std::vector<double> x = chain.q;
  x.insert(x.end(), chain.v.begin(), chain.v.end());
  std::vector<double> term, next(2 * n);
  for (int piece = 0; piece < pieces; ++piece) {
    term = x;
    for (int order = 1; order <= 30; ++order) {
      const double scale = end_s / pieces / order;
      for (std::size_t i = 0; i < n; ++i) {
        const Block& block = chain.block_of(i);
        double force = -block.damping_Ns_per_m * term[n + i];
        if (i > 0) force -= chain.spring_after(i - 1) * (term[i] - term[i - 1]);
        if (i + 1 < n) force += chain.spring_after(i) * (term[i + 1] - term[i]);
        next[i] = scale * term[n + i];
        next[n + i] = scale * force / block.mass_kg;
      }
      term.swap(next);
      for (std::size_t i = 0; i < 2 * n; ++i) x[i] += term[i];
    }
  }
  return x;
}

}  // namespace portwave::bench
