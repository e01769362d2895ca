#include "stiff_ode.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

namespace portwave::bench {
namespace {

double drive(double frequency_Hz, double t) {
  return std::sin(2.0 * std::numbers::pi * frequency_Hz * t);
}

class RodOde final : public Ode {
 public:
  explicit RodOde(const RodParameters& p)
      : Ode(Layout::apart, true), p_(p), rate_(1.0 / (p.capacity_J_per_K * p.resistance_K_per_W)) {
    std::vector<double> state(p.cells);
    for (std::size_t i = 0; i < p.cells; ++i) state[i] = p.initial_K(i);
    start_at(state);
    for (int i = 0; i < static_cast<int>(p.cells); ++i) {
      places_.push_back({i, i});
      if (i > 0) places_.push_back({i, i - 1});
      if (i + 1 < static_cast<int>(p.cells)) places_.push_back({i, i + 1});
    }
  }

  void slope(double t, const double* x, double* __restrict x_dot) const override {
    const std::size_t last = p_.cells - 1;
    const double heat_W = p_.heat_W * (1.0 + drive(p_.heat_Hz, t));
    x_dot[0] = rate_ * (x[1] - x[0]) + heat_W / p_.capacity_J_per_K;
#pragma GCC ivdep
    for (std::size_t i = 1; i < last; ++i) {
      x_dot[i] = rate_ * (x[i - 1] - 2.0 * x[i] + x[i + 1]);
    }
    x_dot[last] = rate_ * (x[last - 1] - x[last]);
  }
  void jacobian(const double*, double* values) const override {
    for (std::size_t i = 0; i < p_.cells; ++i) {
      const bool first = i == 0, last = i + 1 == p_.cells;
      *values++ = rate_ * (first || last ? -1.0 : -2.0);
      if (!first) *values++ = rate_;
      if (!last) *values++ = rate_;
    }
  }

 private:
  RodParameters p_;
  double rate_;
};

/// The voltages of the nodes, then the currents of the coils.
class MeshOde final : public Ode {
 public:
  explicit MeshOde(const MeshParameters& p) : Ode(Layout::apart, true), p_(p) {
    const std::size_t n = p.nodes();
    std::vector<double> state(n + p.coils(), 0.0);
    for (std::size_t i = 0; i < n; ++i) {
      state[i] = p.initial_V(i);
      add(i, i, -p.leak_S / p.capacitance_F(i));
    }
    start_at(state);
    add(0, 0, -1.0 / (p.source_ohm * p.capacitance_F(0)));
    for (std::size_t a = 0; a + p.columns < n; ++a) {
      const std::size_t b = a + p.columns;
      const double g = 1.0 / p.south_ohm(a);
      for (const auto& [to, from] : {std::array{a, b}, std::array{b, a}}) {
        add(to, to, -g / p.capacitance_F(to));
        add(to, from, g / p.capacitance_F(to));
      }
    }
    for (std::size_t coil = 0; coil < p.coils(); ++coil) {
      const std::size_t west = coil / (p.columns - 1) * p.columns + coil % (p.columns - 1);
      const std::size_t east = west + 1, i = n + coil;
      const double l = 1.0 / p.inductance_H(coil);
      add(i, i, -p.coil_ohm(coil) * l);
      add(i, west, l);
      add(i, east, -l);
      add(west, i, -1.0 / p.capacitance_F(west));
      add(east, i, 1.0 / p.capacitance_F(east));
    }
    compress();
  }

  void slope(double t, const double* x, double* __restrict x_dot) const override {
    for (std::size_t i = 0; i < size(); ++i) {
      double sum = 0.0;
      for (std::size_t k = rows_[i]; k < rows_[i + 1]; ++k) {
        sum += values_[k] * x[places_[k].column];
      }
      x_dot[i] = sum;
    }
    x_dot[0] += p_.drive_V * drive(p_.drive_Hz, t) / (p_.source_ohm * p_.capacitance_F(0));
  }
  void jacobian(const double*, double* values) const override {
    std::ranges::copy(values_, values);
  }

 private:
  void add(std::size_t row, std::size_t column, double value) {
    places_.push_back({static_cast<int>(row), static_cast<int>(column)});
    values_.push_back(value);
  }
  /// Row by row, one entry for each place.
  void compress() {
    std::vector<std::size_t> order(places_.size());
    for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
    std::ranges::sort(
        order, {}, [this](std::size_t k) { return std::pair(places_[k].row, places_[k].column); });
    std::vector<Place> places;
    std::vector<double> values;
    for (const std::size_t k : order) {
      const bool same = !places.empty() && places.back().row == places_[k].row &&
                        places.back().column == places_[k].column;
      if (same) {
        values.back() += values_[k];
      } else {
        places.push_back(places_[k]);
        values.push_back(values_[k]);
      }
    }
    places_ = std::move(places);
    values_ = std::move(values);
    rows_.assign(size() + 1, 0);
    for (const Place& place : places_) ++rows_[static_cast<std::size_t>(place.row) + 1];
    for (std::size_t i = 0; i < size(); ++i) rows_[i + 1] += rows_[i];
  }

  MeshParameters p_;
  std::vector<double> values_;
  std::vector<std::size_t> rows_;
};

}  // namespace

std::unique_ptr<Ode> rod_ode(const RodParameters& parameters) {
  return std::make_unique<RodOde>(parameters);
}
std::unique_ptr<Ode> mesh_ode(const MeshParameters& parameters) {
  return std::make_unique<MeshOde>(parameters);
}

}  // namespace portwave::bench
