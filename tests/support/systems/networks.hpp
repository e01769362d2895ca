#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/systems/systems.hpp"

namespace portwave::testing {

/// Link i of a line whose links all differ a little: one mass, a spring on its right.
inline std::unique_ptr<Subsystem> line_link(int i, double mass_kg = 0.3, double stiffness = 50.0) {
  return mass_spring_damper_chain(
      {.masses = 1,
       .mass_kg = mass_kg * (1.0 + 0.3 * std::sin(1.0 + i)),
       .damping_Ns_per_m = 0.05,
       .coupling_stiffness_N_per_m = stiffness * (1.0 + 0.2 * std::cos(2.0 * i)),
       .coupling_damping_Ns_per_m = 0.01 * (i % 3)});
}

/// A line of links, free on the left and held on the right, the first one displaced and driven. The
/// links are added in the order `number[0], number[1], …`; empty: along the line.
inline System line(int links, std::vector<int> number = {}) {
  for (int i = static_cast<int>(number.size()); i < links; ++i) number.push_back(i);
  SystemBuilder builder;
  for (const int i : number) {
    SystemBuilder::PartOptions options;
    if (i == 0) {
      options.initial_state = {0.1, 0, 0};
      options.inputs = {{"force_1", Signal::sine_product(2.0, {{1.5, 0.2}})}};
    }
    builder.add("link" + std::to_string(i), line_link(i), std::move(options));
  }
  for (int i = 0; i + 1 < links; ++i) {
    builder.connect("link" + std::to_string(i) + ".right",
                    "link" + std::to_string(i + 1) + ".left");
  }
  builder.join(joint::Free{}, {"link0.left"});
  builder.join(joint::Fixed{}, {"link" + std::to_string(links - 1) + ".right"});
  return builder.build();
}

/// Lines of so many links that know nothing of one another, their ends free. The links are added in turn,
/// one of each line after another.
inline System lines_of(const std::vector<int>& sizes) {
  const auto name = [](std::size_t line, int k) {
    return std::to_string(line) + "_" + std::to_string(k);
  };
  SystemBuilder builder;
  bool is_any_longer = true;
  for (int k = 0; is_any_longer; ++k) {
    is_any_longer = false;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (k >= sizes[i]) continue;
      builder.add(name(i, k), line_link(k));
      is_any_longer = true;
    }
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    for (int k = 0; k + 1 < sizes[i]; ++k) {
      builder.connect(name(i, k) + ".right", name(i, k + 1) + ".left");
    }
    builder.join(joint::Free{}, {name(i, 0) + ".left"});
    builder.join(joint::Free{}, {name(i, sizes[i] - 1) + ".right"});
  }
  return builder.build();
}

/// A net of Duffing nodes that differ a little, held east and south, free west and north, one
/// driven.
inline System net(int rows, int columns) {
  const auto name = [](int i, int j) { return "n" + std::to_string(i) + "_" + std::to_string(j); };
  SystemBuilder builder;
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      SystemBuilder::PartOptions options{.initial_state = {0.05 * i, 0.1 * j, 0.02, -0.03}};
      if (i == rows / 2 && j == columns / 2) {
        options.inputs = {{"force", Signal::sine_product(3.0, {{0.7, 0.1}})}};
      }
      builder.add(name(i, j),
                  duffing_node({.mass_kg = 1.0 + 0.05 * i,
                                .stiffness_N_per_m = 20.0 + j,
                                .cubic_stiffness_N_per_m3 = 100.0 * (1 + i % 2),
                                .damping_Ns_per_m = 0.02,
                                .coupling_stiffness_N_per_m = 30.0 + 0.5 * i * j,
                                .coupling_damping_Ns_per_m = 0.05}),
                  std::move(options));
    }
  }
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      if (j + 1 < columns) {
        builder.connect(name(i, j) + ".east", name(i, j + 1) + ".west");
      } else {
        builder.join(joint::Fixed{}, {name(i, j) + ".east"});
      }
      if (i + 1 < rows) {
        builder.connect(name(i, j) + ".south", name(i + 1, j) + ".north");
      } else {
        builder.join(joint::Fixed{}, {name(i, j) + ".south"});
      }
      if (j == 0) builder.join(joint::Free{}, {name(i, j) + ".west"});
      if (i == 0) builder.join(joint::Free{}, {name(i, j) + ".north"});
    }
  }
  return builder.build();
}

/// Islands of an archipelago: small ones, which share an island group, and lines long enough for
/// island groups of their own.
inline constexpr int kIslands = 7;
inline constexpr int kIslandParts[kIslands] = {2, 2, 3, 1, 2, 70, 66};

/// Part k of an island, named "<island>_<k>".
inline void add_island_part(SystemBuilder& builder, int island, int k) {
  const std::string name = std::to_string(island) + "_" + std::to_string(k);
  const auto mass = [](double kg, double stiffness) {
    return linear_oscillator({.mass_kg = kg, .stiffness_N_per_m = stiffness});
  };
  const auto duffing = [](double kg, double cubic) {
    return duffing_oscillator({.mass_kg = kg,
                               .stiffness_N_per_m = 100,
                               .cubic_stiffness_N_per_m3 = cubic,
                               .coupling_stiffness_N_per_m = 120,
                               .coupling_damping_Ns_per_m = 0.05});
  };
  switch (island) {
    case 0:
    case 4:
      if (k == 0) {
        builder.add(name, duffing(8.0 + island, 8000), {.initial_state = {0.4, 0, -0.4}});
      } else {
        builder.add(name, mass(4, 50));
      }
      return;
    case 1:
      builder.add(name, mass(1.0 + 0.5 * k, 10.0 + 10.0 * k),
                  {.initial_state = {1.0 - 2.0 * k, 0}});
      return;
    case 2:
      builder.add(name, duffing(1.0 + k, 50.0 * k), {.initial_state = {0.1 * k, 0.2, 0.05}});
      return;
    case 3:
      builder.add(
          name, mass(2, 8),
          {.initial_state = {}, .inputs = {{"force", Signal::sine_product(3.0, {{1.5, 0.2}})}}});
      return;
    case 5:
      builder.add(name, line_link(k), {.initial_state = {k == 0 ? 0.1 : 0.0, 0, 0}});
      return;
    default:
      builder.add(name, line_link(3 * k, 2.0, 400.0),
                  {.initial_state = {0.01 * (k % 5), 0.3, 0.02}});
      return;
  }
}

inline void join_island(SystemBuilder& builder, int island) {
  const auto port = [&](int k, const char* end) {
    return std::to_string(island) + "_" + std::to_string(k) + "." + end;
  };
  const int parts = kIslandParts[island];
  switch (island) {
    case 2:
      builder.join(joint::CommonEffort{},
                   {port(0, "coupling"), port(1, "coupling"), port(2, "coupling")});
      return;
    case 3:
      builder.join(joint::Free{}, {port(0, "coupling")});
      return;
    case 5:
    case 6:
      for (int k = 0; k + 1 < parts; ++k) builder.connect(port(k, "right"), port(k + 1, "left"));
      builder.join(joint::Free{}, {port(0, "left")});
      builder.join(joint::Fixed{}, {port(parts - 1, "right")});
      return;
    default:
      builder.connect(port(0, "coupling"), port(1, "coupling"));
      return;
  }
}

/// Some islands, their parts added in turn so that the numbers of one are not consecutive.
inline System archipelago(const std::vector<int>& islands = {0, 1, 2, 3, 4, 5, 6}) {
  SystemBuilder builder;
  for (int k = 0; k < 70; ++k) {
    for (const int island : islands) {
      if (k < kIslandParts[island]) add_island_part(builder, island, k);
    }
  }
  for (const int island : islands) join_island(builder, island);
  return builder.build();
}

/// Those and the sample systems.
inline std::vector<NamedSystem> large_systems() {
  return {{"line", [] { return line(40); }, 0.1},
          {"net", [] { return net(6, 7); }, 0.1},
          {"archipelago", [] { return archipelago(); }, 0.1}};
}

}  // namespace portwave::testing
