#pragma once

#include <cmath>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <portwave/coupling/system/system.hpp>
#include <portwave/subsystems/catalogue/oscillators.hpp>
#include <portwave/subsystems/linear/linear_part.hpp>

namespace portwave::testing {

/// The fraction of k·factor.
inline double fraction(std::size_t k, double factor) {
  const double x = static_cast<double>(k) * factor;
  return x - std::floor(x);
}

/// The Duffing–linear pair of the benchmark.
inline System separable_pair(double coupling_damping = 0.05) {
  SystemBuilder builder;
  builder.add("A",
              duffing_oscillator({.mass_kg = 8,
                                  .stiffness_N_per_m = 100,
                                  .cubic_stiffness_N_per_m3 = 8000,
                                  .coupling_stiffness_N_per_m = 120,
                                  .coupling_damping_Ns_per_m = coupling_damping}),
              {.initial_state = {0.4, 0, -0.4}});
  builder.add("B", linear_oscillator({.mass_kg = 4, .stiffness_N_per_m = 50}));
  builder.connect("A.coupling", "B.coupling");
  return builder.build();
}

/// size × size Duffing nodes, outer ends free. Node n is part n·`spread` modulo their number, to which that must
/// have no common factor. `driven`: a force acts on every so many nodes; 0: on none.
inline System separable_grid(int size, double coupling_damping, int spread = 1, int driven = 0) {
  SystemBuilder builder;
  const std::shared_ptr<const Subsystem> node =
      duffing_node({.mass_kg = 8,
                    .stiffness_N_per_m = 100,
                    .cubic_stiffness_N_per_m3 = 8000,
                    .coupling_stiffness_N_per_m = 120,
                    .coupling_damping_Ns_per_m = coupling_damping});
  const auto name = [](int i, int j) { return "n" + std::to_string(i) + "_" + std::to_string(j); };
  const auto position = [size](int i, int j) {
    return 0.4 * fraction(static_cast<std::size_t>(i * size + j + 1), 1.4142135623730951) - 0.2;
  };
  std::vector<int> nodes(static_cast<std::size_t>(size * size));
  for (int n = 0; n < size * size; ++n) {
    nodes[static_cast<std::size_t>(n * spread % (size * size))] = n;
  }
  for (const int n : nodes) {
    const int i = n / size, j = n % size;
    const double q = position(i, j);
    const double v = 2.0 * fraction(static_cast<std::size_t>(n + 1), 1.7320508075688772) - 1.0;
    const double east = j + 1 < size ? position(i, j + 1) - q : 0.0;
    const double south = i + 1 < size ? position(i + 1, j) - q : 0.0;
    SystemBuilder::PartOptions options{.initial_state = {q, v, east, south}};
    if (driven > 0 && n % driven == 0) {
      options.inputs["force"] = Signal::sine_product(20.0, {{.frequency_Hz = 0.5 + 1e-4 * n}});
    }
    builder.add(name(i, j), node, std::move(options));
  }
  for (int i = 0; i < size; ++i) {
    for (int j = 0; j < size; ++j) {
      if (j == 0) builder.join(joint::Free{}, {name(i, j) + ".west"});
      if (i == 0) builder.join(joint::Free{}, {name(i, j) + ".north"});
      if (j + 1 < size) {
        builder.connect(name(i, j) + ".east", name(i, j + 1) + ".west");
      } else {
        builder.join(joint::Free{}, {name(i, j) + ".east"});
      }
      if (i + 1 < size) {
        builder.connect(name(i, j) + ".south", name(i + 1, j) + ".north");
      } else {
        builder.join(joint::Free{}, {name(i, j) + ".south"});
      }
    }
  }
  return builder.build();
}

/// `cells` LC cells, H = Σ ½ L i² + ½ C u², driven by a voltage at one end and loaded at the other; in sections
/// of `section` cells. `uneven`: the resistances of the coils differ.
inline System separable_line(int cells, int section, bool uneven = false) {
  const double L = 1e-3, C = 1e-3, G = 1e-3, load = 0.5;
  SystemBuilder builder;
  for (int first = 0; first < cells; first += section) {
    const bool driven = first == 0, loaded = first + section == cells;
    const int n = section;
    Signature signature{"line_section", {}, {}, {}};
    const int ports = (driven ? 0 : 1) + (loaded ? 0 : 1);
    Structure s = Structure::zero(2 * n, ports + (driven ? 1 : 0));
    SparseMatrix Q(2 * n, 2 * n);
    std::vector<double> start;
    for (int k = 0; k < n; ++k) {
      const int i = 2 * k, u = i + 1;
      signature.states.push_back({"i" + std::to_string(k + 1), "A"});
      signature.states.push_back({"u" + std::to_string(k + 1), "V"});
      Q.insert(i, i) = L;
      Q.insert(u, u) = C;
      const double R = 0.01 * (uneven ? 1.0 + 0.5 * std::sin(first + k) : 1.0);
      s.R.insert(i, i) = R / (L * L);
      s.R.insert(u, u) = (G + (loaded && k + 1 == n ? load : 0.0)) / (C * C);
      s.J.insert(i, u) = -1.0 / (L * C);
      s.J.insert(u, i) = 1.0 / (L * C);
      if (k > 0) {
        s.J.insert(i, i - 1) = 1.0 / (L * C);
        s.J.insert(i - 1, i) = -1.0 / (L * C);
      }
      start.push_back(0.0);
      start.push_back(2.0 * fraction(static_cast<std::size_t>(first + k + 1), 1.4142135623730951) -
                      1.0);
    }
    int column = 0;
    if (!driven) {
      signature.ports.push_back({"left", Causality::effort_in, Domain::electrical, 1});
      s.G.insert(0, column++) = 1.0 / L;
    }
    if (!loaded) {
      signature.ports.push_back({"right", Causality::flow_in, Domain::electrical, 1});
      s.G.insert(2 * n - 1, column++) = 1.0 / C;
    }
    SystemBuilder::PartOptions options{.initial_state = std::move(start)};
    if (driven) {
      signature.inputs.push_back({"drive", "V"});
      s.G.insert(0, column++) = 1.0 / L;
      options.inputs["drive"] = Signal::sine_product(10.0, {{.frequency_Hz = 60.0}});
    }
    builder.add("s" + std::to_string(first / section),
                std::make_shared<LinearPortHamiltonian>(std::move(signature), std::move(s), Q),
                std::move(options));
    if (first > 0) {
      builder.connect("s" + std::to_string(first / section - 1) + ".right",
                      "s" + std::to_string(first / section) + ".left");
    }
  }
  return builder.build();
}

}  // namespace portwave::testing
