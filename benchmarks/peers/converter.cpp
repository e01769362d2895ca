#include "converter.hpp"

#include <algorithm>
#include <cmath>

namespace portwave::bench {
namespace {

/// What both diodes of a cell give.
class Diodes {
 public:
  explicit Diodes(const ConverterParameters& p)
      : saturation_A_(p.saturation_A), reach_V_(p.reach_V()), leakage_S_(p.leakage_S) {}

  /// The node's voltage v where their current is `current_A` + `slope_S`·v. It falls as v rises, and is convex, so that
  /// Newton's method rises from the left of the solution to it; `guess` is put there first.
  double node_V(double winding_V, double current_A, double slope_S, double guess) const {
    double v = guess, step = reach_V_;
    while (!(excess(winding_V, v) >= current_A + slope_S * v)) {
      v -= step;
      step *= 2.0;
    }
    for (int i = 0; i < 1000; ++i) {
      const double forward = std::exp((winding_V - v) / reach_V_), back = std::exp(-v / reach_V_);
      const double value = saturation_A_ * (forward + back - 2.0) +
                           leakage_S_ * (winding_V - 2.0 * v) - current_A - slope_S * v;
      const double slope = saturation_A_ / reach_V_ * (forward + back) + 2.0 * leakage_S_ + slope_S;
      const double change = value / slope;
      v += change;
      if (std::abs(change) <= 1e-13 * (1.0 + std::abs(v))) break;
    }
    return v;
  }

 private:
  double excess(double winding_V, double v) const {
    return saturation_A_ * (std::expm1((winding_V - v) / reach_V_) + std::expm1(-v / reach_V_)) +
           leakage_S_ * (winding_V - 2.0 * v);
  }

  double saturation_A_, reach_V_, leakage_S_;
};

/// Of the winding, between its corners.
double winding_V(const ConverterParameters& p, std::size_t cell, double t) {
  double since = t - p.delay_s(cell);
  if (since < 0.0) return p.low_V;
  since -= p.period_s * std::floor(since / p.period_s);
  const double swing = p.high_V - p.low_V;
  if (since < p.edge_s) return p.low_V + swing * since / p.edge_s;
  if (since < p.edge_s + p.high_s) return p.high_V;
  if (since < 2.0 * p.edge_s + p.high_s) {
    return p.high_V - swing * (since - p.edge_s - p.high_s) / p.edge_s;
  }
  return p.low_V;
}

class Chain {
 public:
  explicit Chain(const ConverterParameters& p)
      : p_(p),
        diodes_(p),
        current_(p.cells, 0.0),
        voltage_(p.cells, 0.0),
        node_(p.cells, 0.0),
        current_rate_(p.cells),
        voltage_rate_(p.cells),
        current_base_(p.cells),
        voltage_base_(p.cells) {}

  void step(double t, double h) {
    const double gamma = 1.0 - std::sqrt(0.5), a = gamma * h;
    current_base_ = current_;
    voltage_base_ = voltage_;
    stage(t + a, a);
    const std::vector<double> start_A = current_base_, start_V = voltage_base_;
    for (std::size_t i = 0; i < p_.cells; ++i) {
      current_base_[i] = start_A[i] + (h - a) * current_rate_[i];
      voltage_base_[i] = start_V[i] + (h - a) * voltage_rate_[i];
    }
    stage(t + h, a);  // whose end is that of the step
  }
  std::vector<double> state() const {
    std::vector<double> out = current_;
    out.insert(out.end(), voltage_.begin(), voltage_.end());
    return out;
  }

 private:
  /// current = base + a·rate, and so on; cell after cell, until the outputs no longer move.
  void stage(double t, double a) {
    for (int pass = 0; pass < 50; ++pass) {
      double moved = 0.0;
      for (std::size_t i = 0; i < p_.cells; ++i) {
        const double slope_S = a / p_.inductance_H;
        node_[i] = diodes_.node_V(winding_V(p_, i, t), current_base_[i] - slope_S * voltage_[i],
                                  slope_S, node_[i]);
        current_rate_[i] = (node_[i] - voltage_[i]) / p_.inductance_H;
        current_[i] = current_base_[i] + a * current_rate_[i];
        double inflow = current_[i], conductance = 1.0 / p_.load_ohm(i);
        for (const bool before : {true, false}) {
          if (before ? i == 0 : i + 1 == p_.cells) continue;
          inflow += voltage_[before ? i - 1 : i + 1] / p_.link_ohm;
          conductance += 1.0 / p_.link_ohm;
        }
        const double share = a / p_.capacitance_F;
        const double next = (voltage_base_[i] + share * inflow) / (1.0 + share * conductance);
        moved = std::max(moved, std::abs(next - voltage_[i]));
        voltage_[i] = next;
        voltage_rate_[i] = (next - voltage_base_[i]) / a;
      }
      if (moved < 1e-11) return;
    }
  }

  const ConverterParameters& p_;
  Diodes diodes_;
  std::vector<double> current_, voltage_, node_, current_rate_, voltage_rate_, current_base_,
      voltage_base_;
};

}  // namespace

std::vector<double> converter_reference(const ConverterParameters& parameters, double step_s) {
  Chain chain(parameters);
  const long steps = std::lround(parameters.end_s() / step_s);
  for (long n = 0; n < steps; ++n) chain.step(static_cast<double>(n) * step_s, step_s);
  return chain.state();
}

}  // namespace portwave::bench
