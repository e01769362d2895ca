#pragma once

// A chain of switching converters: its numbers, and a solver of their own.

#include <array>
#include <cstddef>
#include <vector>

namespace portwave::bench {

/// Step-down converters behind a transformer: a winding that gives a square voltage, a rectifying and a freewheeling
/// diode, a coil, a capacitor and a load; the outputs are joined by resistors in a row.
///   i_d(v_s − v_x) + i_d(−v_x) = i,  L i' = v_x − u,  C u' = i − u/R − (what flows to the neighbours),
///   i_d(u) = Is (exp(u/(n VT)) − 1) + G u
struct ConverterParameters {
  std::size_t cells = 10;
  double inductance_H = 22e-6, capacitance_F = 4.7e-6, link_ohm = 0.5;
  double saturation_A = 1e-9, emission = 1.8, leakage_S = 1e-12;
  double thermal_V = 0.025864972;  ///< kT/q at 300.15 K, with the constants that ngspice has
  double low_V = -12.0, high_V = 24.0;
  double period_s = 10e-6, high_s = 3.9e-6, edge_s = 100e-9;
  int periods = 10;

  double end_s() const { return periods * period_s; }
  double reach_V() const { return emission * thermal_V; }
  /// Loads so small that coils run empty, and their diodes block, once the outputs have charged.
  double load_ohm(std::size_t cell) const {
    constexpr std::array kLoads = {8.0, 12.0, 20.0, 100.0};
    return kLoads[cell % kLoads.size()] * (1.0 + 1e-3 * static_cast<double>(cell % 97));
  }
  /// When its first pulse begins.
  double delay_s(std::size_t cell) const { return 0.25 * period_s * static_cast<double>(cell % 4); }
  /// The instants at which the winding's voltage begins or ceases to change, and the voltage there.
  std::vector<std::array<double, 2>> corners(std::size_t cell) const {
    std::vector<std::array<double, 2>> out;
    for (int n = 0; n < periods; ++n) {
      const double t = delay_s(cell) + n * period_s;
      for (const auto& corner : {std::array{t, low_V}, std::array{t + edge_s, high_V},
                                 std::array{t + edge_s + high_s, high_V},
                                 std::array{t + 2.0 * edge_s + high_s, low_V}}) {
        out.push_back(corner);
      }
    }
    return out;
  }
};

/// The end of the chain that starts at rest, first all currents, then all voltages: diagonally implicit steps of order 2
/// in which stiff motion dies (two stages, γ = 1 − 1/√2). Steps should divide the times of all corners.
[[gnu::visibility("default")]] std::vector<double> converter_reference(
    const ConverterParameters& parameters, double step_s);

}  // namespace portwave::bench
