#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "support/systems/random_networks.hpp"

namespace portwave::testing {

/// Systems of few parts of every kind that small islands are made of, in all combinations that
/// matter: two parts of one port each, which may lie in one batch or in two, and up to four of one to
/// four ports.
struct SmallSystem {
  bool pair = true;
  double scale = 1.0;   ///< of masses, stiffnesses and forces
  double offset = 0.0;  ///< of states
  bool driven = false;
  double force = 1.0;  ///< amplitude, in units of `scale`
};

inline System small_system(const SmallSystem& kind, unsigned seed) {
  RandomNumbers random(seed);
  SystemBuilder builder;
  const int parts = kind.pair ? 2 : random.integer(2, 4);
  std::vector<std::string> ports;
  for (int i = 0; i < parts; ++i) {
    const std::string name = "s" + std::to_string(i);
    const int what = random.integer(0, kind.pair ? 2 : 4);
    const auto state = [&] { return kind.offset + random.uniform(-1.0, 1.0); };
    SystemBuilder::PartOptions options;
    const auto add = [&](std::shared_ptr<const Subsystem> part) {
      for (int k = 0; k < part->signature().state_size(); ++k) {
        options.initial_state.push_back(state());
      }
      for (const Port& port : part->signature().ports) ports.push_back(name + "." + port.name);
      builder.add(name, std::move(part), std::move(options));
    };
    if (kind.driven && what != 2 && what != 3) {
      options.inputs = {{"force", Signal::sine_product(kind.force * kind.scale,
                                                       {{random.uniform(0.2, 9.0), 0.3 * i}})}};
    }
    const auto size = [&](double typical) {
      return kind.scale * typical * random.logarithmic(0.5, 2.0);
    };
    if (what == 0 || what == 4) {
      const DuffingOscillatorParameters own = {.mass_kg = size(2.0),
                                               .stiffness_N_per_m = size(50.0),
                                               .cubic_stiffness_N_per_m3 = size(400.0),
                                               .damping_Ns_per_m = size(0.1),
                                               .coupling_stiffness_N_per_m = size(60.0),
                                               .coupling_damping_Ns_per_m = size(0.05)};
      add(what == 0 ? duffing_oscillator(own) : duffing_node(own));
    } else if (what == 1) {
      add(linear_oscillator({.mass_kg = size(1.0), .stiffness_N_per_m = size(20.0)}));
    } else {
      add(random_part(random, random.integer(1, 4), kind.pair ? 1 : random.integer(1, 3),
                      kind.scale));
    }
  }
  while (!ports.empty()) {
    const int most = std::min<int>(kind.pair ? 2 : 3, static_cast<int>(ports.size()));
    const int count = kind.pair ? most : random.integer(1, most);
    std::vector<std::string> own;
    for (int k = 0; k < count; ++k) {
      const auto chosen = random.integer(0, static_cast<int>(ports.size()) - 1);
      own.push_back(ports[static_cast<std::size_t>(chosen)]);
      ports.erase(ports.begin() + chosen);
    }
    builder.join(random_joint(random, count), own);
  }
  return builder.build();
}

}  // namespace portwave::testing
