#pragma once

// Body of grid_loop_vector.cpp and grid_loop_scalar.cpp: V is four doubles or one.

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "grid_loop.hpp"

namespace portwave::bench {
namespace {

typedef double Four __attribute__((vector_size(32)));

template <class V>
V load(const double* p) {
  V value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
template <class V>
void store(double* p, V value) {
  std::memcpy(p, &value, sizeof value);
}
template <class V>
V magnitude(V x) {
  return x < 0.0 ? -x : x;
}
inline bool any_above(double a, double b) { return !(a <= b); }
inline bool any_above(Four a, Four b) {
  const auto above = ~(a <= b);
  return (above[0] | above[1] | above[2] | above[3]) != 0;
}

template <class V, bool kSeries>
class Grid final : public GridLoop {
 public:
  explicit Grid(const GridSetting& s)
      : rows_(s.rows), columns_(s.columns), h_(s.step_s), gamma_(s.impedance_Ns_per_m) {
    for (Field* field : {&q_, &v_, &east_, &south_, &c2_, &c1_, &c0_, &inverse_, &off_east_,
                         &off_south_, &d_, &r_, &ue_, &us_, &uw_, &un_}) {
      field->assign(rows_ * ld() + 8, 0.0);
    }
    for (Field* row : {&be_, &bw_, &bs_[0], &bs_[1], &bn_}) row->assign(ld() + 8, 0.0);
    for (std::size_t i = 0; i < rows_; ++i) {
      for (std::size_t j = 0; j < columns_; ++j) {
        const std::size_t node = i * columns_ + j, at = i * ld() + j;
        q_[at] = grid_position(node);
        v_[at] = grid_velocity(node);
        if (j + 1 < columns_) east_[at] = grid_position(node + 1) - q_[at];
        if (i + 1 < rows_) south_[at] = grid_position(node + columns_) - q_[at];
      }
    }
  }

  void step(int iterations) override {
    for (int k = 0; k <= iterations; ++k) {
      const bool commit = k == iterations;
      for (std::size_t i = 0; i < rows_; ++i) {
        if (k == 0) freeze_row(i);
        commit ? commit_row(i) : scatter_row(i);
        commit || k + 1 == iterations ? couple_row<true>(i) : couple_row<false>(i);
      }
    }
  }
  double position(std::size_t node) const override { return q_[at(node)]; }
  double velocity(std::size_t node) const override { return v_[at(node)]; }

 private:
  using Field = std::vector<double>;
  static constexpr std::size_t kWidth = sizeof(V) / sizeof(double);

  std::size_t ld() const { return columns_ + 4; }  // a guard behind each row
  std::size_t at(std::size_t node) const { return node / columns_ * ld() + node % columns_; }

  void freeze_row(std::size_t i) {
    for (std::size_t j = 0; j < columns_; j += kWidth) {
      const std::size_t p = i * ld() + j;
      const V q = load<V>(&q_[p]), v = load<V>(&v_[p]);
      const V east = load<V>(&east_[p]), south = load<V>(&south_[p]);
      const V w2 = k3_ * q * (h_ * h_), w1 = linear_ + 1.5 * k3_ * h_ * q * q;
      const V c2 = w2 + 3.0 * c3_ * v;
      const V c1 = inertia_ + w1 + (2.0 * w2 + 3.0 * c3_ * v) * v;
      const V c0 =
          ((c3_ * v + w2) * v + w1) * v + (k1_ + k3_ * q * q) * q - elongation_ * (east + south);
      const V inverse = 1.0 / c1;
      store<V>(&c2_[p], c2);
      store<V>(&c1_[p], c1);
      store<V>(&c0_[p], c0);
      store<V>(&inverse_[p], inverse);
      store<V>(&off_east_[p], wave_per_force_ * (kappa_ * v - k12_ * east));
      store<V>(&off_south_[p], wave_per_force_ * (kappa_ * v - k12_ * south));
      if constexpr (!kSeries) {
        store<V>(&d_[p], V{} + 0.0);
        store<V>(&r_[p], c0);
      }
    }
  }

  /// Increment of the mean velocity for the drive r.
  V solve(std::size_t p, V r) {
    V d, error;
    const V c2 = load<V>(&c2_[p]), c0 = load<V>(&c0_[p]);
    V inverse = load<V>(&inverse_[p]);
    if constexpr (kSeries) {
      // d = x − βx² + (2β² − γ)x³ − (5β³ − 5βγ)x⁴ + …
      const V x = (r - c0) * inverse, beta = c2 * inverse, gamma = c3_ * inverse;
      const V x2 = x * x, third = 2.0 * beta * beta - gamma;
      d = x + x2 * (third * x - beta);
      error = magnitude(5.0 * x2 * x2 * beta * third);
    } else {
      const V warm = load<V>(&d_[p]), warm_r = load<V>(&r_[p]), c1 = load<V>(&c1_[p]);
      const V left = ((c3_ * warm + c2) * warm + c1) * warm + (c0 - warm_r);
      const V bend = 3.0 * c3_ * warm + c2, slope = (bend + c2) * warm + c1;
      inverse += inverse * (1.0 - slope * inverse);
      const V linear = (r - (warm_r + left)) * inverse;
      const V curve = linear * linear * ((c3_ * linear + bend) * inverse);
      d = warm + (linear - curve);
      error = magnitude(curve * (2.0 * bend * linear + 3.0 * c3_ * linear * linear) * inverse);
    }
    if (any_above(error, 1e-16 * magnitude(d))) d = newton(p, r, d);
    if constexpr (!kSeries) {
      store<V>(&d_[p], d);
      store<V>(&r_[p], r);
      store<V>(&inverse_[p], inverse);
    }
    return d;
  }

  [[gnu::noinline]] V newton(std::size_t p, V r, V d) const {
    const V c2 = load<V>(&c2_[p]), c1 = load<V>(&c1_[p]), c0 = load<V>(&c0_[p]);
    for (int k = 0; k < 50; ++k) {
      const V change =
          (((c3_ * d + c2) * d + c1) * d + (c0 - r)) / ((3.0 * c3_ * d + 2.0 * c2) * d + c1);
      d -= change;
      if (!any_above(magnitude(change), 1e-15 * magnitude(d))) break;
    }
    return d;
  }

  /// b of row i into the row's buffers. Returns nothing else: the trial state is discarded.
  void scatter_row(std::size_t i) {
    for (std::size_t j = 0; j < columns_; j += kWidth) (void)scatter(i, j);
  }
  V scatter(std::size_t i, std::size_t j) {
    const std::size_t p = i * ld() + j;
    const V ue = load<V>(&ue_[p]), us = load<V>(&us_[p]), uw = load<V>(&uw_[p]),
            un = load<V>(&un_[p]);
    const V d = solve(p, rho_s_ * (ue + us) - s_ * (uw + un));
    const V w = load<V>(&v_[p]) + d;
    store<V>(&be_[j], through_ * ue - load<V>(&off_east_[p]) - wave_per_root_ * d);
    store<V>(&bs_[i % 2][j], through_ * us - load<V>(&off_south_[p]) - wave_per_root_ * d);
    store<V>(&bw_[j], uw + wave_per_velocity_ * w);
    store<V>(&bn_[j], un + wave_per_velocity_ * w);
    return d;
  }

  void commit_row(std::size_t i) {
    for (std::size_t j = 0; j < columns_; j += kWidth) {
      const std::size_t p = i * ld() + j;
      const V d = scatter(i, j), v = load<V>(&v_[p]), w = v + d;
      for (auto [field, u] : {std::pair{&east_, &ue_}, std::pair{&south_, &us_}}) {
        const V delta = load<V>(field->data() + p);
        const V free_end = (s_ * load<V>(u->data() + p) - k12_ * delta + kappa_ * w) * share_;
        store<V>(field->data() + p, delta + h_ * (free_end - w));
      }
      store<V>(&q_[p], load<V>(&q_[p]) + h_ * w);
      store<V>(&v_[p], v + 2.0 * d);
    }
  }

  /// The couplings inside row i and those to the row above. kExchange: a = Pb, else u += R(Pb − u).
  template <bool kExchange>
  void couple_row(std::size_t i) {
    double* ue = &ue_[i * ld()];
    double* uw = &uw_[i * ld()];
    double* un = &un_[i * ld()];
    const std::size_t last = columns_ - 1;
    const double first_u = uw[0], first_b = bw_[0], last_u = ue[last], last_b = be_[last];
    for (std::size_t j = 0; j < columns_; j += kWidth) {
      swap<kExchange>(ue + j, uw + j + 1, &be_[j], &bw_[j + 1]);
    }
    uw[0] = reflect<kExchange>(first_u, first_b);
    ue[last] = reflect<kExchange>(last_u, last_b);
    if (i > 0) {
      double* us = &us_[(i - 1) * ld()];
      for (std::size_t j = 0; j < columns_; j += kWidth) {
        swap<kExchange>(us + j, un + j, &bs_[(i - 1) % 2][j], &bn_[j]);
      }
    } else {
      for (std::size_t j = 0; j < columns_; ++j) un[j] = reflect<kExchange>(un[j], bn_[j]);
    }
    if (i + 1 == rows_) {
      double* us = &us_[i * ld()];
      for (std::size_t j = 0; j < columns_; ++j) us[j] = reflect<kExchange>(us[j], bs_[i % 2][j]);
    }
  }
  template <bool kExchange>
  static void swap(double* u1, double* u2, const double* b1, const double* b2) {
    const V one = load<V>(b1), two = load<V>(b2);
    if constexpr (kExchange) {
      store<V>(u1, two);
      store<V>(u2, one);
    } else {
      const V old1 = load<V>(u1), old2 = load<V>(u2), g1 = two - old1, g2 = one - old2;
      store<V>(u1, old1 + (2.0 * g1 + g2) * (1.0 / 3.0));
      store<V>(u2, old2 + (2.0 * g2 + g1) * (1.0 / 3.0));
    }
  }
  /// e = 0: P = −1.
  template <bool kExchange>
  static double reflect(double u, double b) {
    return kExchange ? -b : u - (b + u) * (1.0 / 3.0);
  }

  std::size_t rows_, columns_;
  double h_, gamma_;
  double k1_ = 100, k3_ = 8000, k12_ = 120, m_ = 8, c12_ = 0.05;
  double s_ = std::sqrt(2 * gamma_ / h_), kappa_ = 0.5 * h_ * k12_ + c12_;
  double share_ = 1 / (kappa_ + gamma_), rho_s_ = kappa_ * share_ * s_;
  double c3_ = 0.25 * k3_ * h_ * h_ * h_, inertia_ = 2 * m_ / h_;
  double linear_ = 0.5 * h_ * k1_ + 2 * gamma_ * kappa_ * share_ + 2 * gamma_;
  double through_ = 1 - 2 * gamma_ * share_, elongation_ = gamma_ * k12_ * share_;
  double wave_per_force_ = 2 * gamma_ / s_ * share_, wave_per_root_ = wave_per_force_ * kappa_;
  double wave_per_velocity_ = 2 * gamma_ / s_;

  Field q_, v_, east_, south_, c2_, c1_, c0_, inverse_, off_east_, off_south_, d_, r_;
  Field ue_, us_, uw_, un_;     // the iterate, then the waves of the commit
  Field be_, bw_, bs_[2], bn_;  // of one row; south: of the row above too
};

}  // namespace
}  // namespace portwave::bench
