#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/runtime/ranks/ranked_stepper.hpp>
#include <portwave/runtime/ranks/slice_builder.hpp>
#include <portwave/runtime/step/stepper.hpp>
#include <portwave/subsystems/catalogue/chain.hpp>
#include <portwave/subsystems/catalogue/oscillators.hpp>

#include "support/systems/sliced_network.hpp"
#include "support/thread_ranks.hpp"
#include "support/trace.hpp"

// Networks, and what runs of them come to as a whole and in slices.
namespace portwave::testing {

inline std::shared_ptr<const Subsystem> block(int i, int masses = 2) {
  return mass_spring_damper_chain({.masses = masses,
                                   .mass_kg = 0.3 + 0.01 * (i % 7),
                                   .stiffness_N_per_m = 50.0 + i % 5,
                                   .damping_Ns_per_m = 0.1 * (i % 3),
                                   .coupling_stiffness_N_per_m = 40.0 + i % 11});
}

inline SystemBuilder::PartOptions moving(int i, int masses = 2) {
  SystemBuilder::PartOptions options;
  options.initial_state.assign(static_cast<std::size_t>(2 * masses + 1), 0.0);
  options.initial_state[1] = std::sin(1.0 + 0.7 * i);
  options.initial_state[2] = 1e3 + 0.01 * (i % 13);  // far from the origin
  options.initial_state[0] = options.initial_state[2];
  if (i % 37 == 5) {
    options.inputs["force_1"] = Signal::sine_product(0.5 + 0.1 * i, {{3.0 + i % 4, 0.2}});
  }
  return options;
}

inline SlicedNetwork chain(int blocks, bool closed = false) {
  SlicedNetwork network;
  for (int i = 0; i < blocks; ++i) {
    network.parts.push_back({"b" + std::to_string(i), block(i), moving(i)});
  }
  for (int i = 0; i + 1 < blocks; ++i) {
    network.joints.push_back({joint::Connection{}, {{i, "right"}, {i + 1, "left"}}});
  }
  if (closed) {
    network.joints.push_back({joint::Connection{}, {{blocks - 1, "right"}, {0, "left"}}});
  } else {
    network.joints.push_back({joint::Free{}, {{0, "left"}}});
    network.joints.push_back({joint::Fixed{}, {{blocks - 1, "right"}}});
  }
  return network;
}

inline SlicedNetwork grid(int rows, int columns) {
  SlicedNetwork network;
  const auto number = [&](int row, int column) { return row * columns + column; };
  for (int i = 0; i < rows * columns; ++i) {
    network.parts.push_back({"n" + std::to_string(i),
                             duffing_node({.mass_kg = 8.0 + i % 3,
                                           .stiffness_N_per_m = 100.0,
                                           .cubic_stiffness_N_per_m3 = 800.0,
                                           .coupling_stiffness_N_per_m = 120.0 + i % 5,
                                           .coupling_damping_Ns_per_m = 0.05}),
                             {.initial_state = {0.0, std::cos(0.3 * i), 0.0, 0.0}}});
  }
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      const int own = number(row, column);
      const auto join = [&](bool inside, int other, const char* port, const char* to) {
        if (inside) {
          network.joints.push_back({joint::Connection{}, {{own, port}, {other, to}}});
        } else {
          network.joints.push_back({joint::Free{}, {{own, port}}});
        }
      };
      join(column + 1 < columns, number(row, column + 1), "east", "west");
      join(row + 1 < rows, number(row + 1, column), "south", "north");
      if (column == 0) network.joints.push_back({joint::Free{}, {{own, "west"}}});
      if (row == 0) network.joints.push_back({joint::Free{}, {{own, "north"}}});
    }
  }
  return network;
}

/// All springs meet in one hub: a junction of all ranks.
inline SlicedNetwork star(int limbs) {
  SlicedNetwork network;
  SlicedNetwork::OneJoint hub{joint::CommonFlow{}, {}};
  for (int i = 0; i < limbs; ++i) {
    network.parts.push_back({"l" + std::to_string(i), block(i), moving(i)});
    network.joints.push_back({joint::Free{}, {{i, "left"}}});
    hub.ports.emplace_back(i, "right");
  }
  network.joints.push_back(std::move(hub));
  return network;
}

/// Pairs by themselves, then a chain that goes through all slices but the first, then pairs again.
inline SlicedNetwork islands() {
  SlicedNetwork network;
  const auto add_line = [&](int blocks) {
    const int first = static_cast<int>(network.parts.size());
    for (int i = first; i < first + blocks; ++i) {
      network.parts.push_back({"b" + std::to_string(i), block(i), moving(i)});
    }
    network.joints.push_back({joint::Free{}, {{first, "left"}}});
    for (int i = first; i + 1 < first + blocks; ++i) {
      network.joints.push_back({joint::Connection{}, {{i, "right"}, {i + 1, "left"}}});
    }
    network.joints.push_back({joint::Fixed{}, {{first + blocks - 1, "right"}}});
  };
  for (int i = 0; i < 40; ++i) add_line(2);
  add_line(1);
  add_line(200);
  for (int i = 0; i < 40; ++i) add_line(2);
  return network;
}

inline StepperOptions options_of(double impedance = 0.8) {
  StepperOptions options{.method = WaveCoupling{}};
  options.step_s = 0.01;
  options.method.waves().iterations = 6;
  options.method.waves().impedance = {impedance};
  options.method.waves().guard = false;
  return options;
}

struct History {
  std::vector<double> states;   // of all parts, step by step
  std::vector<double> numbers;  // of reports, energies and the certificate
};

inline void append_report(const Stepper& stepper, const StepReport& r, std::vector<double>& out) {
  out.insert(out.end(), {static_cast<double>(r.iterations), r.residual, r.gap_J,
                         static_cast<double>(r.converged), static_cast<double>(r.reason),
                         r.energy.stored_J, r.energy.supplied_J, r.energy.dissipated_J,
                         r.energy.mismatch_J, r.energy.tank_J, r.energy.changed_J,
                         r.energy.max_passivity_residual_J, r.energy.alpha, r.energy.withheld_J});
  const EnergyTotals& e = stepper.energy();
  const Certificate& c = stepper.certificate();
  out.insert(out.end(), {e.initial_J,
                         e.initial_tank_J,
                         e.final_J,
                         e.max_J,
                         e.supplied_J,
                         e.dissipated_J,
                         e.mismatch_J,
                         e.tank_J,
                         e.max_energy_ratio,
                         e.rounding_J,
                         static_cast<double>(c.status),
                         c.max_passivity_residual_J,
                         static_cast<double>(c.worst_passivity_part),
                         static_cast<double>(c.worst_passivity_step),
                         static_cast<double>(c.missed.steps),
                         c.missed.residual,
                         static_cast<double>(c.missed.part),
                         c.missed.part_gap_J,
                         e.given_up_J,
                         static_cast<double>(c.uncomputable_islands),
                         c.broken_law ? static_cast<double>(c.broken_law->island) : -1.0,
                         c.growth ? c.growth->beyond_J : -1.0});
  for (int island = 0; island < stepper.system().island_count(); ++island) {
    out.push_back(stepper.waves()->tank(island));
  }
  const GuardStatistics* const guard = stepper.waves()->guard();
  if (guard == nullptr) return;
  out.insert(out.end(), {static_cast<double>(guard->steps), static_cast<double>(guard->uses),
                         static_cast<double>(guard->trials), guard->min_alpha, guard->withheld_J});
}

inline void append_parts(const Stepper& stepper, int parts, std::vector<double>& out) {
  for (int i = 0; i < parts; ++i) {
    const auto x = stepper.state(i);
    out.insert(out.end(), x.begin(), x.end());
    out.push_back(stepper.storage(i));
    const PartEnergies energies = stepper.waves()->energies_of(i);
    out.insert(out.end(), {energies.changed_J, energies.supplied_J, energies.through_ports_J,
                           energies.dissipated_J});
    const int first = stepper.system().first_scalar_port(i);
    const int ports =
        stepper.system().parts()[static_cast<std::size_t>(i)].component->signature().wave_size();
    for (int j = first; j < first + ports; ++j) {
      out.insert(out.end(), {stepper.waves()->incident(j), stepper.waves()->outgoing(j),
                             stepper.effort(j), stepper.flow(j)});
    }
  }
}

inline History run_whole(const SlicedNetwork& network, const StepperOptions& options, int steps) {
  const System system = network.whole();
  Stepper stepper(system, options);
  History run;
  for (int n = 0; n < steps; ++n) {
    append_report(stepper, stepper.step(), run.numbers);
    append_parts(stepper, static_cast<int>(system.parts().size()), run.states);
  }
  return run;
}

/// Where the slices begin, and the end.
using Cuts = std::vector<int>;

inline Cuts even_cuts(const SlicedNetwork& network, int ranks) {
  Cuts cuts{0};
  for (int r = 0; r < ranks; ++r) {
    cuts.push_back(static_cast<int>(
        even_slice(static_cast<std::int64_t>(network.parts.size()), r, ranks).second));
  }
  return cuts;
}

/// What a rank saw of its own parts, after each step.
class Recorder final : public Follower {
 public:
  explicit Recorder(int parts) : parts_(parts) {}
  void stepped(const Stepper& stepper, const StepReport& report) override {
    append_report(stepper, report, numbers);
    std::vector<double>& states = by_step.emplace_back();
    append_parts(stepper, parts_, states);
  }
  void told(const Stepper& /*stepper*/, std::span<const std::byte> /*message*/) override {}

  std::vector<std::vector<double>> by_step;
  std::vector<double> numbers;

 private:
  int parts_;
};

inline History run_in_slices(const SlicedNetwork& network, const StepperOptions& options,
                             const Cuts& cuts, int steps, unsigned seed = 0) {
  const int count = static_cast<int>(cuts.size()) - 1;
  std::vector<Recorder> recorders;
  for (int r = 0; r < count; ++r) recorders.emplace_back(cuts[r + 1] - cuts[r]);
  ThreadRanks::run(
      count,
      [&](const std::shared_ptr<Ranks>& own) {
        const auto r = static_cast<std::size_t>(own->rank());
        const System system = network.slice(cuts[r], cuts[r + 1]).build(*own);
        StepperOptions shared = options;
        shared.ranks = own;
        Stepper stepper(system, shared);
        if (r > 0) return RankedStepper(stepper).follow(recorders[r]);
        for (int n = 0; n < steps; ++n) recorders[0].stepped(stepper, stepper.step());
      },
      seed);
  History run;
  run.numbers = recorders[0].numbers;
  for (int n = 0; n < steps; ++n) {
    for (const Recorder& own : recorders) {
      const std::vector<double>& states = own.by_step.at(static_cast<std::size_t>(n));
      run.states.insert(run.states.end(), states.begin(), states.end());
    }
  }
  for (const Recorder& own : recorders) {
    EXPECT_TRUE(same_bits(own.numbers, run.numbers)) << "ranks differ in what they report";
  }
  return run;
}

/// The first step and number that differ, for whoever has to find out why.
inline std::string difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size())
    return "sizes " + std::to_string(a.size()) + " and " + std::to_string(b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(double)) == 0) continue;
    return "number " + std::to_string(i) + ": " + std::to_string(a[i]) + " and " +
           std::to_string(b[i]);
  }
  return {};
}

inline void expect_same(const History& a, const History& b) {
  EXPECT_EQ(difference(a.states, b.states), "");
  EXPECT_EQ(difference(a.numbers, b.numbers), "");
}

}  // namespace portwave::testing
