#include "ode.hpp"

#include <cmath>
#include <numbers>
#include <type_traits>

#include "grid_loop.hpp"

namespace portwave::bench {

void Ode::start_at(const std::vector<double>& state) {
  const std::size_t half = state.size() / 2;
  start_.resize(state.size());
  double squares = 0.0;
  for (std::size_t i = 0; i < state.size(); ++i) {
    start_[layout_ == Layout::apart ? i : 2 * (i % half) + i / half] = state[i];
    squares += state[i] * state[i];
  }
  scale_ = std::sqrt(squares / static_cast<double>(state.size()));
}

namespace {

/// Positions (currents) at x[stride·i] and velocities (voltages) at x[second + stride·i]; a
/// constant stride, so that the compiler sees both layouts.
template <Layout kLayout>
struct Index {
  static constexpr std::size_t kStride = kLayout == Layout::apart ? 1 : 2;
  static constexpr std::size_t second(std::size_t n) { return kLayout == Layout::apart ? n : 1; }
  static int q(std::size_t i, std::size_t) { return static_cast<int>(kStride * i); }
  static int v(std::size_t i, std::size_t n) { return static_cast<int>(second(n) + kStride * i); }
};

template <template <Layout> class Made, class Parameters>
std::unique_ptr<Ode> made(const Parameters& parameters, Layout layout) {
  if (layout == Layout::apart) return std::make_unique<Made<Layout::apart>>(parameters);
  return std::make_unique<Made<Layout::interleaved>>(parameters);
}

/// The same number everywhere, where all blocks are equal: nothing to load.
struct Same {
  double value;
  double operator[](std::size_t) const { return value; }
};

/// v' = l (q₋ − q) + r (q₊ − q) − d v, with l, r, d the springs and the damper over the mass.
template <Layout kLayout>
class ChainOde final : public Ode {
 public:
  explicit ChainOde(const Chain& chain) : Ode(kLayout, true), n_(chain.masses()) {
    for (std::size_t i = 0; i < n_; ++i) {
      const Block& block = chain.block_of(i);
      left_.push_back(i > 0 ? chain.spring_after(i - 1) / block.mass_kg : 0.0);
      right_.push_back(chain.spring_after(i) / block.mass_kg);
      damping_.push_back(block.damping_Ns_per_m / block.mass_kg);
    }
    equal_ = true;
    for (std::size_t i = 1; i + 1 < n_; ++i) {
      equal_ =
          equal_ && left_[i] == left_[1] && right_[i] == left_[1] && damping_[i] == damping_[0];
    }
    equal_ = equal_ && right_[0] == left_[1] && left_[n_ - 1] == left_[1];
    std::vector<double> state = chain.q;
    state.insert(state.end(), chain.v.begin(), chain.v.end());
    start_at(state);
    for (std::size_t i = 0; i < n_; ++i) {
      const int q = Index<kLayout>::q(i, n_), v = Index<kLayout>::v(i, n_);
      places_.insert(places_.end(), {{q, q}, {q, v}, {v, q}, {v, v}});
      if (i > 0) places_.push_back({v, Index<kLayout>::q(i - 1, n_)});
      if (i + 1 < n_) places_.push_back({v, Index<kLayout>::q(i + 1, n_)});
    }
  }

  void slope(double, const double* x, double* x_dot) const override {
    if (equal_) {
      slope(x, x_dot, Same{left_[1]}, Same{left_[1]}, Same{damping_[0]});
    } else {
      slope(x, x_dot, left_.data(), right_.data(), damping_.data());
    }
  }
  void jacobian(const double*, double* values) const override {
    for (std::size_t i = 0; i < n_; ++i) {
      *values++ = 0.0;
      *values++ = 1.0;
      *values++ = -(left_[i] + right_[i]);
      *values++ = -damping_[i];
      if (i > 0) *values++ = left_[i];
      if (i + 1 < n_) *values++ = right_[i];
    }
  }

 private:
  template <class Numbers>
  void slope(const double* x, double* x_dot, Numbers left, Numbers right, Numbers damping) const {
    constexpr std::size_t kStride = Index<kLayout>::kStride;
    const double *q = x, *v = x + Index<kLayout>::second(n_);
    double* __restrict q_dot = x_dot;
    double* __restrict v_dot = x_dot + Index<kLayout>::second(n_);
    const std::size_t last = n_ - 1;
    v_dot[0] = right[0] * (q[kStride] - q[0]) - damping[0] * v[0];
    q_dot[0] = v[0];
#pragma GCC ivdep
    for (std::size_t i = 1; i < last; ++i) {
      const double here = q[kStride * i];
      q_dot[kStride * i] = v[kStride * i];
      v_dot[kStride * i] = left[i] * (q[kStride * (i - 1)] - here) +
                           right[i] * (q[kStride * (i + 1)] - here) - damping[i] * v[kStride * i];
    }
    v_dot[kStride * last] = left[last] * (q[kStride * (last - 1)] - q[kStride * last]) -
                            damping[last] * v[kStride * last];
    q_dot[kStride * last] = v[kStride * last];
  }

  std::size_t n_;
  bool equal_ = true;
  std::vector<double> left_, right_, damping_;
};

template <Layout kLayout>
class GridOde final : public Ode {
 public:
  explicit GridOde(const GridParameters& p)
      : Ode(kLayout, false),
        rows_(p.rows),
        columns_(p.columns),
        n_(p.rows * p.columns),
        k1_(p.stiffness_N_per_m / p.mass_kg),
        k3_(p.cubic_stiffness_N_per_m3 / p.mass_kg),
        k12_(p.coupling_stiffness_N_per_m / p.mass_kg),
        c12_(p.coupling_damping_Ns_per_m / p.mass_kg) {
    std::vector<double> state(2 * n_);
    for (std::size_t i = 0; i < n_; ++i) {
      state[i] = grid_position(i);
      state[n_ + i] = grid_velocity(i);
    }
    start_at(state);
    for (std::size_t i = 0; i < n_; ++i) {
      const int q = Index<kLayout>::q(i, n_), v = Index<kLayout>::v(i, n_);
      places_.insert(places_.end(), {{q, q}, {q, v}, {v, q}, {v, v}});
      for_neighbours(i, [&](std::size_t j) {
        places_.push_back({v, Index<kLayout>::q(j, n_)});
        places_.push_back({v, Index<kLayout>::v(j, n_)});
      });
    }
  }

  void slope(double, const double* x, double* x_dot) const override {
    constexpr std::size_t kStride = Index<kLayout>::kStride;
    const std::size_t row = kStride * columns_;
    for (std::size_t i = 0; i < rows_; ++i) {
      // A row beyond the end is the row itself: no force.
      const std::size_t here = i * row, north = i > 0 ? here - row : here,
                        south = i + 1 < rows_ ? here + row : here;
      row_slope(x, x_dot, here, north, south);
    }
  }
  void jacobian(const double* x, double* values) const override {
    for (std::size_t i = 0; i < n_; ++i) {
      const double q = x[Index<kLayout>::kStride * i];
      double* own = values;
      *values++ = 0.0;
      *values++ = 1.0;
      *values++ = -k1_ - 3.0 * k3_ * q * q;
      *values++ = 0.0;
      for_neighbours(i, [&](std::size_t) {
        own[2] -= k12_;
        own[3] -= c12_;
        *values++ = k12_;
        *values++ = c12_;
      });
    }
  }

 private:
  template <class Visit>
  void for_neighbours(std::size_t node, Visit visit) const {
    if (node >= columns_) visit(node - columns_);
    if (node % columns_ > 0) visit(node - 1);
    if (node % columns_ + 1 < columns_) visit(node + 1);
    if (node + columns_ < n_) visit(node + columns_);
  }

  void row_slope(const double* x, double* x_dot, std::size_t here, std::size_t north,
                 std::size_t south) const {
    constexpr std::size_t kStride = Index<kLayout>::kStride;
    const std::size_t second = Index<kLayout>::second(n_);
    const double *q = x + here, *qn = x + north, *qs = x + south;
    const double *v = q + second, *vn = qn + second, *vs = qs + second;
    double* __restrict q_dot = x_dot + here;
    double* __restrict v_dot = x_dot + here + second;
    const auto node = [&](std::size_t j, std::size_t west, std::size_t east) {
      const double qj = q[j], vj = v[j];
      q_dot[j] = vj;
      v_dot[j] = k12_ * (qn[j] + qs[j] + q[west] + q[east] - 4.0 * qj) +
                 c12_ * (vn[j] + vs[j] + v[west] + v[east] - 4.0 * vj) - (k1_ + k3_ * qj * qj) * qj;
    };
    const std::size_t last = kStride * (columns_ - 1);
    node(0, 0, kStride);
#pragma GCC ivdep
    for (std::size_t j = 1; j + 1 < columns_; ++j) {
      node(kStride * j, kStride * (j - 1), kStride * (j + 1));
    }
    node(last, last - kStride, last);
  }

  std::size_t rows_, columns_, n_;
  double k1_, k3_, k12_, c12_;
};

template <Layout kLayout>
class PairOde final : public Ode {
 public:
  explicit PairOde(const PairParameters& p) : Ode(kLayout, false), p_(p) {
    start_at({p.initial_m, 0.0, 0.0, 0.0});
    for (const int row : {kV1, kV2}) {
      for (const int column : {kQ1, kQ2, kV1, kV2}) places_.push_back({row, column});
    }
    places_.insert(places_.end(), {{kQ1, kV1}, {kQ2, kV2}, {kQ1, kQ1}, {kQ2, kQ2}});
  }

  void slope(double, const double* x, double* x_dot) const override {
    const double q1 = x[kQ1], v1 = x[kV1], q2 = x[kQ2], v2 = x[kV2];
    const double force =
        p_.coupling_stiffness_N_per_m * (q2 - q1) + p_.coupling_damping_Ns_per_m * (v2 - v1);
    x_dot[kQ1] = v1;
    x_dot[kQ2] = v2;
    x_dot[kV1] = (force - (p_.stiffness_N_per_m + p_.cubic_stiffness_N_per_m3 * q1 * q1) * q1) *
                 over_mass_1_;
    x_dot[kV2] = (-force - p_.linear_stiffness_N_per_m * q2) * over_mass_2_;
  }
  void jacobian(const double* x, double* values) const override {
    const double k = p_.coupling_stiffness_N_per_m, c = p_.coupling_damping_Ns_per_m;
    const double k1 = p_.stiffness_N_per_m + 3.0 * p_.cubic_stiffness_N_per_m3 * x[kQ1] * x[kQ1];
    for (const double value : {-k - k1, k, -c, c}) *values++ = value * over_mass_1_;
    for (const double value : {k, -k - p_.linear_stiffness_N_per_m, c, -c}) {
      *values++ = value * over_mass_2_;
    }
    for (const double value : {1.0, 1.0, 0.0, 0.0}) *values++ = value;
  }

 private:
  static constexpr int kQ1 = 0, kQ2 = kLayout == Layout::apart ? 1 : 2,
                       kV1 = kLayout == Layout::apart ? 2 : 1, kV2 = 3;
  PairParameters p_;
  double over_mass_1_ = 1.0 / p_.duffing_mass_kg, over_mass_2_ = 1.0 / p_.linear_mass_kg;
};

template <Layout kLayout>
class LineOde final : public Ode {
 public:
  explicit LineOde(const LineParameters& p) : Ode(kLayout, true), p_(p), n_(p.cells) {
    std::vector<double> state(2 * n_, 0.0);
    for (std::size_t i = 0; i < n_; ++i) state[n_ + i] = p.initial_V(i);
    start_at(state);
    for (std::size_t i = 0; i < n_; ++i) {
      const int current = Index<kLayout>::q(i, n_), voltage = Index<kLayout>::v(i, n_);
      places_.insert(
          places_.end(),
          {{current, current}, {current, voltage}, {voltage, current}, {voltage, voltage}});
      if (i > 0) places_.push_back({current, Index<kLayout>::v(i - 1, n_)});
      if (i + 1 < n_) places_.push_back({voltage, Index<kLayout>::q(i + 1, n_)});
    }
  }

  void slope(double t, const double* x, double* x_dot) const override {
    constexpr std::size_t kStride = Index<kLayout>::kStride;
    const double *current = x, *voltage = x + Index<kLayout>::second(n_);
    double* __restrict current_dot = x_dot;
    double* __restrict voltage_dot = x_dot + Index<kLayout>::second(n_);
    const double l = 1.0 / p_.inductance_H, c = 1.0 / p_.capacitance_F;
    const double r = p_.resistance_ohm * l, g = p_.conductance_S * c;
    const double drive = p_.drive_V * std::sin(2.0 * std::numbers::pi * p_.drive_Hz * t);
    const std::size_t last = kStride * (n_ - 1);
    current_dot[0] = l * (drive - voltage[0]) - r * current[0];
#pragma GCC ivdep
    for (std::size_t i = 1; i < n_; ++i) {
      current_dot[kStride * i] =
          l * (voltage[kStride * (i - 1)] - voltage[kStride * i]) - r * current[kStride * i];
    }
#pragma GCC ivdep
    for (std::size_t i = 0; i + 1 < n_; ++i) {
      voltage_dot[kStride * i] =
          c * (current[kStride * i] - current[kStride * (i + 1)]) - g * voltage[kStride * i];
    }
    voltage_dot[last] = c * (current[last] - p_.load_S * voltage[last]) - g * voltage[last];
  }
  void jacobian(const double*, double* values) const override {
    const double l = 1.0 / p_.inductance_H, c = 1.0 / p_.capacitance_F;
    for (std::size_t i = 0; i < n_; ++i) {
      *values++ = -p_.resistance_ohm * l;
      *values++ = -l;
      *values++ = c;
      *values++ = -(p_.conductance_S + (i + 1 < n_ ? 0.0 : p_.load_S)) * c;
      if (i > 0) *values++ = l;
      if (i + 1 < n_) *values++ = -c;
    }
  }

 private:
  LineParameters p_;
  std::size_t n_;
};

}  // namespace

std::unique_ptr<Ode> chain_ode(const Chain& chain, Layout layout) {
  return made<ChainOde>(chain, layout);
}
std::unique_ptr<Ode> grid_ode(const GridParameters& parameters, Layout layout) {
  return made<GridOde>(parameters, layout);
}
std::unique_ptr<Ode> pair_ode(const PairParameters& parameters, Layout layout) {
  return made<PairOde>(parameters, layout);
}
std::unique_ptr<Ode> line_ode(const LineParameters& parameters, Layout layout) {
  return made<LineOde>(parameters, layout);
}

}  // namespace portwave::bench
