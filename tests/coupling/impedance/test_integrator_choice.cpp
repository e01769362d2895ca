// What `auto` damps on each side of each of its thresholds, with one to three stages, and that it does not depend on the
// order of the parts.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/coupling/impedance/integrator_choice.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/catalogue/parts.hpp"

namespace portwave::test_integrator_choice {
namespace {

IntegratorChoice chosen(const System& system, int stages, double step_s, bool is_adaptive = false) {
  WaveCoupling method = WaveCoupling::automatic();
  method.stages = stages;
  return choose_integrators(system, method, step_s, is_adaptive);
}

/// The states that are damped, by name.
std::vector<std::string> damped_states(const System& system, const IntegratorChoice& choice) {
  std::vector<std::string> out;
  for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
    if (!choice.plan.damps(i)) continue;
    const StageRule rule = choice.plan.rule_of(i);
    const Signature& signature = system.parts()[at(i)].component->signature();
    for (int k = 0; k < signature.state_size(); ++k) {
      if (rule.damps(k)) {
        out.push_back(system.parts()[at(i)].name + "." + signature.states[at(k)].name);
      }
    }
  }
  std::ranges::sort(out);
  return out;
}

using Names = std::vector<std::string>;

/// A network with one decay, of rate λ [1/s].
using WithDecay = std::function<System(double rate)>;

/// What steps that choose their size make of a decay: they resolve it, or damp the same.
enum class Chosen { resolve, damp };

/// Nothing is damped a little below hλ = `limit`, and `expected` is a little above, at any step size.
void expect_threshold(const WithDecay& make, int stages, double limit, const Names& expected,
                      double just_above = 1.01, Chosen steps = Chosen::resolve) {
  for (const double step_s : {1e-6, 1.0, 1e3}) {
    const std::string where = fmt::format("{} stages, h = {}", stages, step_s);
    const System below = make(0.99 * limit / step_s), above = make(just_above * limit / step_s);
    EXPECT_EQ(damped_states(below, chosen(below, stages, step_s)), Names{}) << where;
    EXPECT_EQ(chosen(below, stages, step_s).plan.nodes, StageNodes::gauss) << where;
    EXPECT_EQ(damped_states(above, chosen(above, stages, step_s)), expected) << where;
    EXPECT_EQ(chosen(above, stages, step_s).plan.nodes, StageNodes::radau) << where;
    EXPECT_EQ(damped_states(above, chosen(above, stages, step_s, /*is_adaptive=*/true)),
              steps == Chosen::damp ? expected : Names{})
        << where;
  }
}

class Thresholds : public ::testing::TestWithParam<int> {
 protected:
  int stages() const { return GetParam(); }
  /// hλ where nothing swings; for single states among oscillations it is twice that.
  double limit() const { return stages() == 1 ? 4.0 : 16.0; }
};

/// A capacitor beside a resistor; a mass in oil, by its own resistance.
TEST_P(Thresholds, OfPartsWhereNothingSwings) {
  expect_threshold(
      [](double rate) {
        SystemBuilder builder;
        builder.add("c", parts::capacitor({.capacitance_F = 1e-3}), {.initial_state = {1.0}});
        builder.add("r", parts::resistor({.resistance_ohm = 1e3 / rate, .gives = "current"}));
        builder.connect("c.terminals", "r.terminals");
        return builder.build();
      },
      stages(), limit(), {"c.voltage"});
  expect_threshold(
      [](double rate) {
        SystemBuilder builder;
        builder.add("m", parts::mass({.mass_kg = 2.0, .damping_Ns_per_m = 2.0 * rate}));
        builder.join(joint::Free{}, {"m.port"});
        return builder.build();
      },
      stages(), limit(), {"m.position", "m.velocity"});
}

/// A mass on a soft spring: in oil, and with a damper at a port of its own. The position stores nothing.
TEST_P(Thresholds, OfStatesAmongOscillations) {
  for (const bool is_own : {true, false}) {
    expect_threshold(
        [&](double rate) {
          SystemBuilder builder;
          builder.add("m", parts::mass({.mass_kg = 2.0,
                                        .damping_Ns_per_m = is_own ? 2.0 * rate : 0.0,
                                        .ports = 2}));
          builder.add("k", parts::spring({.stiffness_N_per_m = 1e-12}));
          builder.connect("m.port_1", "k.right");
          builder.join(joint::Fixed{}, {"k.left"});
          if (is_own) {
            builder.join(joint::Free{}, {"m.port_2"});
          } else {
            builder.add("d", parts::damper({.damping_Ns_per_m = 2.0 * rate}));
            builder.connect("m.port_2", "d.right");
            builder.join(joint::Fixed{}, {"d.left"});
          }
          return builder.build();
        },
        stages(), 2.0 * limit(), {"m.position", "m.velocity"});
  }
  // The rotor swings on a spring, and keeps its states.
  expect_threshold(
      [](double rate) {
        SystemBuilder builder;
        builder.add("m", parts::dc_motor({.inductance_H = 1e-3,
                                          .resistance_ohm = 1e-3 * rate,
                                          .motor_constant_Vs_per_rad = 1e-6,
                                          .inertia_kgm2 = 1.0}));
        builder.add("k", parts::torsional_spring({.stiffness_Nm_per_rad = 1e-9}));
        builder.join(joint::Free{}, {"m.terminals"});
        builder.connect("m.shaft", "k.left");
        builder.join(joint::Fixed{}, {"k.right"});
        return builder.build();
      },
      stages(), 2.0 * limit(), {"m.angle", "m.current"});
}

/// Dry friction, of slope F/v₀ at rest, beside a mass that is free or on a spring. With one stage such parts are damped
/// in single steps (ChangeOver). Resistances are rounded down by up to an eighth.
TEST_P(Thresholds, OfStoragesBesideOneSidedParts) {
  for (const bool swings : {false, true}) {
    const WithDecay make = [swings](double rate) {
      SystemBuilder builder;
      builder.add("m", parts::mass({.mass_kg = 2.0, .ports = swings ? 2 : 1}),
                  {.initial_state = {0.0, 1.0}});
      builder.add("d",
                  parts::coulomb_damper({.friction_N = 2e-6 * rate, .creep_speed_m_per_s = 1e-6}));
      builder.connect("d.end", swings ? "m.port_1" : "m.port");
      if (swings) {
        builder.add("k", parts::spring({.stiffness_N_per_m = 1e-9}));
        builder.connect("k.right", "m.port_2");
        builder.join(joint::Fixed{}, {"k.left"});
      }
      return builder.build();
    };
    const Names expected = swings ? Names{"m.velocity"} : Names{"m.position", "m.velocity"};
    if (stages() > 1) {
      expect_threshold(make, stages(), limit(), expected, 1.15, Chosen::damp);
    } else {
      const System stiff = make(1e6);
      EXPECT_EQ(chosen(stiff, 1, 1.0).damped_parts, 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Stages, Thresholds, ::testing::Values(1, 2, 3));

/// Parts of which `auto` damps some, for each of its reasons, and leaves others: by name, in a given order.
System in_order(const std::vector<int>& order) {
  struct Entry {
    std::string name;
    std::function<void(SystemBuilder&)> add;
  };
  const std::vector<Entry> parts = {
      {"c1",
       [](SystemBuilder& b) {
         b.add("c1", parts::capacitor({.capacitance_F = 1e-3}), {.initial_state = {1.0}});
       }},
      {"r1",
       [](SystemBuilder& b) {
         b.add("r1", parts::resistor({.resistance_ohm = 1.0, .gives = "current"}));
       }},
      {"c2",
       [](SystemBuilder& b) {
         b.add("c2", parts::capacitor({.capacitance_F = 1e-3}), {.initial_state = {1.0}});
       }},
      {"r2",
       [](SystemBuilder& b) {
         b.add("r2", parts::resistor({.resistance_ohm = 1e6, .gives = "current"}));
       }},
      {"motor",
       [](SystemBuilder& b) {
         b.add("motor", parts::dc_motor({.inductance_H = 1e-4,
                                         .resistance_ohm = 1.0,
                                         .motor_constant_Vs_per_rad = 0.02,
                                         .inertia_kgm2 = 1e-3}));
       }},
      {"spring",
       [](SystemBuilder& b) {
         b.add("spring", parts::torsional_spring({.stiffness_Nm_per_rad = 0.1}));
       }},
      {"sliding", [](SystemBuilder& b) { b.add("sliding", parts::mass({.mass_kg = 1.0})); }},
      {"friction",
       [](SystemBuilder& b) {
         b.add("friction", parts::coulomb_damper({.friction_N = 5.0, .creep_speed_m_per_s = 1e-5}));
       }},
      {"swing", [](SystemBuilder& b) {
         b.add("swing", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 1e4}));
       }}};
  SystemBuilder builder;
  for (const int i : order) parts[at(i)].add(builder);
  builder.connect("c1.terminals", "r1.terminals");
  builder.connect("c2.terminals", "r2.terminals");
  builder.join(joint::Free{}, {"motor.terminals"});
  builder.connect("motor.shaft", "spring.left");
  builder.join(joint::Fixed{}, {"spring.right"});
  builder.connect("friction.end", "sliding.port");
  builder.join(joint::Free{}, {"swing.coupling"});
  return builder.build();
}

TEST(IntegratorChoice, DoesNotDependOnTheOrderOfParts) {
  constexpr double kStep = 0.05;
  constexpr int kParts = 9;
  std::vector<int> order(kParts);
  std::iota(order.begin(), order.end(), 0);
  for (int stages = 1; stages <= 3; ++stages) {
    std::ranges::sort(order);
    const System first = in_order(order);
    const IntegratorChoice choice = chosen(first, stages, kStep);
    const Names expected = damped_states(first, choice);
    Names meant = {"c1.voltage", "motor.angle", "motor.current"};
    if (stages > 1) meant.insert(meant.end(), {"sliding.position", "sliding.velocity"});
    EXPECT_EQ(expected, meant) << stages;
    std::mt19937 random(7);
    for (int trial = 0; trial < 20; ++trial) {
      std::shuffle(order.begin(), order.end(), random);
      const System other = in_order(order);
      const IntegratorChoice again = chosen(other, stages, kStep);
      EXPECT_EQ(damped_states(other, again), expected) << stages << ", " << trial;
      EXPECT_EQ(again.text(other), choice.text(first)) << stages << ", " << trial;
    }
  }
}

}  // namespace
}  // namespace portwave::test_integrator_choice
