// The energy account of Taylor series, whatever the step; what they refuse.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/coupling/network/taylor.hpp>
#include <portwave/subsystems/base/state_archive.hpp>
#include <portwave/subsystems/catalogue/catalogue.hpp>
#include <portwave/subsystems/catalogue/oscillators.hpp>
#include <portwave/subsystems/catalogue/parts.hpp>

#include "support/systems/linear_networks.hpp"
#include "support/systems/separable_networks.hpp"

namespace portwave::test_taylor_energy {
namespace {

const Splitting kTaylor{.kind = SplittingKind::taylor};

/// Oscillators of unlike masses in a row, joined by springs and dampers; `unit` scales lengths.
System oscillators(int count, double damping, double unit = 1.0, double push = 0.0,
                   bool allow_active = false) {
  SystemBuilder builder;
  for (int i = 0; i < count; ++i) {
    SystemBuilder::PartOptions options{
        .initial_state = {push != 0.0 ? 0.0 : unit * (i % 2 == 0 ? 1.4 : -0.6), 0.0}};
    if (push != 0.0 && i == 0) {
      options.inputs["force"] = Signal::sine_product(push * unit, {{.frequency_Hz = 0.4}});
    }
    builder.add("m" + std::to_string(i),
                linear_oscillator({.mass_kg = 1.0 + 0.3 * i,
                                   .stiffness_N_per_m = 20.0,
                                   .damping_Ns_per_m = damping,
                                   .allow_active = allow_active}),
                options);
    if (i == 0) continue;
    builder.add("s" + std::to_string(i),
                parts::spring_damper(
                    {.stiffness_N_per_m = 30.0, .damping_Ns_per_m = damping > 0.0 ? 0.02 : 0.0}));
  }
  for (int i = 0; i < count; ++i) {
    std::vector<std::string> ports = {"m" + std::to_string(i) + ".coupling"};
    if (i > 0) ports.push_back("s" + std::to_string(i) + ".right");
    if (i + 1 < count) ports.push_back("s" + std::to_string(i + 1) + ".left");
    if (ports.size() == 1) {
      builder.join(joint::Free{}, ports);
    } else {
      builder.join(joint::CommonFlow{}, ports);
    }
  }
  return builder.build();
}

/// A weight on a spring: the storage has a linear term. A second spring and damper hangs at its free end.
System weight() {
  SystemBuilder builder;
  builder.add(
      "w",
      parts::port_hamiltonian({.states = {{"q", "m"}, {"p", "kg m/s"}},
                               .ports = {{"end", Causality::effort_in, Domain::translation, 1}},
                               .energy = "50*q^2 + 19.62*q + p^2/4",
                               .J = {{0, 1}, {-1, 0}},
                               .R = {{0, 0}, {0, 0.3}},
                               .G = {{0}, {1}}})
          .build(),
      {.initial_state = {0.3, 0.2}});
  builder.join(joint::Free{}, {"w.end"});
  return builder.build();
}

/// Two masses on a spring, far away and in free flight.
System flying_pair(double position, double velocity) {
  SystemBuilder builder;
  builder.add("a", linear_oscillator({.mass_kg = 1.0}), {.initial_state = {position, velocity}});
  builder.add("b", duffing_oscillator({.mass_kg = 2.0, .coupling_stiffness_N_per_m = 50.0}),
              {.initial_state = {position, velocity, 0.1}});
  builder.connect("b.coupling", "a.coupling");
  return builder.build();
}

struct Laws {
  double worst_excess = 0.0;  ///< of H over H₀ + supply − dissipation, beside the energies moved
  double worst_account = 0.0;   ///< of the ledger's H beside that of the states, likewise
  double worst_undriven = 0.0;  ///< the first without the supply
  double dissipated_J = 0.0;
  std::string remarks;
};

/// Runs, and compares at every step.
Laws laws_of(const System& system, double step_s, int steps, int order = 16) {
  TaylorMethod method(system, 0.0, step_s, {.kind = SplittingKind::taylor, .order = order});
  int blocks = 0;
  for (const Part& part : system.parts()) blocks += part.initial_state.empty() ? 0 : 1;
  const auto stored = [&] {
    double sum = 0.0;
    for (int block = 0; block < blocks; ++block) sum += method.storage(block);
    return sum;
  };
  const double start_J = stored();
  double supplied_J = 0.0, scale_J = std::abs(start_J);
  Laws laws;
  for (int n = 0; n < steps; ++n) {
    const NetworkStep step = method.step(ForEach());
    supplied_J += step.energy.supplied_J;
    laws.dissipated_J += step.energy.dissipated_J;
    scale_J = std::max({scale_J, std::abs(supplied_J), laws.dissipated_J, step.energy_scale_J});
    EXPECT_GE(step.energy.dissipated_J, 0.0);
    const double undriven = step.energy.stored_J - (start_J - laws.dissipated_J);
    laws.worst_undriven = std::max(laws.worst_undriven, std::abs(undriven) / scale_J);
    laws.worst_excess = std::max(laws.worst_excess, std::abs(undriven - supplied_J) / scale_J);
    laws.worst_account =
        std::max(laws.worst_account, std::abs(stored() - step.energy.stored_J) / scale_J);
  }
  laws.remarks = method.remarks();
  return laws;
}

struct Case {
  std::string name;
  std::function<System()> system;
  double step_s;
  int steps;
  double account = 1e-13;  ///< what rounding of the states' own H allows
};

std::vector<Case> cases() {
  return {
      {"chains", [] { return testing::single_rate_chains(); }, 1.0 / 32.0, 64},
      {"chains, steps that are too long", [] { return testing::single_rate_chains(); }, 0.7, 10},
      {"lossless", [] { return oscillators(5, 0.0); }, .2, 500},
      {"lossless, too long", [] { return oscillators(5, 0.0); }, 5.0, 20},
      {"damped", [] { return oscillators(5, 0.3); }, .2, 200},
      {"overdamped", [] { return oscillators(3, 40.0); }, .05, 200},
      {"overdamped, too long", [] { return oscillators(3, 400.0); }, .1, 50},
      {"driven from rest", [] { return oscillators(4, 0.1, 1.0, 2.0); }, .2, 200},
      {"driven from rest, lossless", [] { return oscillators(4, 0.0, 1.0, 2.0); }, .2, 200},
      {"driven, too long", [] { return oscillators(4, 0.1, 1.0, 2.0); }, 2.0, 30},
      {"tiny units", [] { return oscillators(3, 0.1, 1e-9); }, .2, 200},
      {"huge units", [] { return oscillators(3, 0.1, 1e9, 1.0); }, .2, 200},
      {"line", [] { return testing::separable_line(16, 4); }, 6e-4, 200},
      {"line of unlike coils", [] { return testing::separable_line(16, 4, true); }, 6e-4, 200},
      {"weight", [] { return weight(); }, .1, 300},
      {"far from the origin", [] { return flying_pair(1e6, 300.0); }, .1, 300},
      {"tiny steps", [] { return oscillators(3, 0.1); }, 1e-6, 500},
      {"tiny steps from rest", [] { return oscillators(3, 0.1, 1.0, 1e-3); }, 1e-5, 500},
      {"long run", [] { return oscillators(3, 0.0); }, .15, 20000, 1e-12},
      {"long damped run", [] { return oscillators(3, 1e-4); }, .15, 20000, 1e-12},
  };
}

TEST(TaylorEnergy, IsWhatWasSuppliedLessWhatWasDissipatedAtEveryStep) {
  for (const Case& each : cases()) {
    const System system = each.system();
    for (const int order : {4, 16, 24}) {
      const Laws laws = laws_of(system, each.step_s, each.steps, order);
      EXPECT_LE(laws.worst_excess, 2e-13) << each.name << " order " << order;
      EXPECT_LE(laws.worst_account, each.account) << each.name << " order " << order;
    }
  }
}

TEST(TaylorEnergyControl, CatchesASupplyThatIsLeftOut) {
  const Laws laws = laws_of(oscillators(4, 0.1, 1.0, 2.0), .2, 200);
  EXPECT_LE(laws.worst_excess, 2e-13);
  EXPECT_GT(laws.worst_undriven, 1e-2);
}

TEST(TaylorEnergyControl, CatchesANegativeDamper) {
  const System system = oscillators(2, -0.1, 1.0, 0.0, /*allow_active=*/true);
  TaylorMethod method(system, 0.0, .1, kTaylor);
  double first_J = 0.0, last_J = 0.0;
  for (int n = 0; n < 100; ++n) {
    const StepLedger energy = method.step(ForEach()).energy;
    EXPECT_EQ(energy.supplied_J, 0.0);
    EXPECT_LT(energy.dissipated_J, 0.0);
    if (n == 0) first_J = energy.stored_J;
    last_J = energy.stored_J;
  }
  EXPECT_GT(last_J, 1.1 * first_J);
}

// Where nothing damps, nothing may seem dissipated: not even rounding.
TEST(TaylorEnergy, DissipatesNothingWithoutDampers) {
  EXPECT_EQ(laws_of(oscillators(5, 0.0), .2, 500).dissipated_J, 0.0);
  EXPECT_GT(laws_of(oscillators(5, 1e-6), .2, 500).dissipated_J, 0.0) << "control";
}

TEST(TaylorEnergy, HalvesStepsThatAreTooLong) {
  EXPECT_NE(laws_of(oscillators(5, 0.0), 5.0, 20).remarks, "");
  EXPECT_EQ(laws_of(oscillators(5, 0.0), .2, 20).remarks, "");
}

TEST(TaylorEnergy, FailsWhereTheStepIsHopeless) {
  const System system = oscillators(3, 0.1);
  TaylorMethod method(system, 0.0, 1e4, kTaylor);
  try {
    method.step(ForEach());
    ADD_FAILURE() << "a step of 10 000 s was taken";
  } catch (const NetworkFault& fault) {
    EXPECT_EQ(fault.fault(), StepFault::too_inaccurate);
    EXPECT_NE(std::string(fault.what()).find("Take shorter steps"), std::string::npos);
  }
  EXPECT_EQ(method.clock().steps(), 0);
}

// What is left to itself stays so.
TEST(TaylorEnergy, KeepsMomentumAndElongation) {
  const System system = flying_pair(1e6, 300.0);
  TaylorMethod method(system, 0.0, .1, kTaylor);
  for (int n = 0; n < 500; ++n) method.step(ForEach());
  const auto x = method.state();
  EXPECT_NEAR(x[1] + 2.0 * x[3], 900.0, 1e-9);
  EXPECT_NEAR((x[0] + 2.0 * x[2]) / 3.0, 1e6 + 300.0 * 50.0, 1e-7);
  EXPECT_NEAR(x[4] - 0.1, x[0] - x[2], 1e-7);  // of 1e6 m
  EXPECT_GT(std::abs(x[4]), 1e-3);
}

/// A part of the catalogue alone: its ports on resistances, moved from rest by what its typical state is.
std::optional<System> alone(const PartType& type) {
  const std::shared_ptr<const Component> part = make_part(type.name, type.example);
  SystemBuilder::PartOptions options;
  options.initial_state = part->default_state();
  const std::vector<double> typical = part->typical_state();
  for (std::size_t i = 0; i < typical.size(); ++i) {
    options.initial_state[i] += 0.3 * typical[i] * (i % 2 == 0 ? 1.0 : -0.5);
  }
  if (!part->check_initial_state(options.initial_state.data()).empty()) return std::nullopt;
  SystemBuilder builder;
  builder.add("part", part, options);
  for (const Port& port : part->signature().ports) {
    builder.join(joint::Resistive{0.7}, {"part." + port.name});
  }
  return builder.build();
}

// Whatever the catalogue has is refused with a reason, or keeps the law of energy.
TEST(TaylorEnergy, IsKeptByEveryTypeOfTheCatalogueThatIsTaken) {
  int taken = 0, refused = 0;
  for (const PartType& type : catalogue()) {
    const std::optional<System> system = alone(type);
    if (!system) continue;
    try {
      const Laws laws = laws_of(*system, 1e-4, 100);
      EXPECT_LE(laws.worst_excess, 2e-13) << type.name;
      EXPECT_LE(laws.worst_account, 1e-12) << type.name;
      ++taken;
    } catch (const ConfigError& error) {
      EXPECT_FALSE(error.issues().empty()) << type.name;
      ++refused;
    }
  }
  EXPECT_GE(taken, 12);
  EXPECT_GE(refused, 15);
}

/// What is wrong with a system; empty if it is taken.
std::string objection(const System& system) {
  try {
    TaylorMethod method(system, 0.0, 0.01, kTaylor);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return {};
}

TEST(TaylorRefusal, NamesThePlace) {
  const auto expect_names = [](const System& system, const std::vector<std::string>& all) {
    const std::string text = objection(system);
    for (const std::string& each : all) {
      EXPECT_NE(text.find(each), std::string::npos) << "\"" << each << "\" is not in\n" << text;
    }
  };
  expect_names(testing::separable_pair(), {"/subsystems/0", "A.q", "not quadratic", "kick-drift"});
  SystemBuilder builder;
  builder.add("d", parts::diode({.saturation_current_A = 1e-9, .thermal_voltage_V = 0.025}));
  builder.add("c", parts::capacitor({.capacitance_F = 1e-6}));
  builder.join(joint::CommonEffort{}, {"d.terminals", "c.terminals"});
  builder.add("s", parts::electrical_switch({.on_S = 1.0}));
  builder.add("l", parts::inductor({.inductance_H = 1e-3}));
  builder.connect("s.terminals", "l.terminals");
  builder.add("a", parts::mass({.mass_kg = 1.0}));
  builder.add("b", parts::mass({.mass_kg = 1.0}));
  builder.join(joint::CommonFlow{}, {"a.port", "b.port"});
  expect_names(builder.build(),
               {"/subsystems/0", "\"d\"", "nonlinear resistance", "/subsystems/2", "\"s\"",
                "Taylor series need a constant one", "/couplings", "a.port", "stiff spring"});
  SystemBuilder descriptor;
  descriptor.add("d", parts::descriptor_port_hamiltonian(
                          {.states = {{"a", "m"}, {"b", "m"}},
                           .ports = {{"end", Causality::effort_in, Domain::translation, 1}},
                           .E = {{1.0, 0.0}, {0.0, 0.0}},
                           .J = {{0.0, 1.0}, {-1.0, 0.0}},
                           .R = {{0.0, 0.0}, {0.0, 1.0}},
                           .B = {{1.0}, {0.0}},
                           .Q = {{1.0, 0.0}, {0.0, 1.0}}}));
  descriptor.join(joint::Free{}, {"d.end"});
  expect_names(descriptor.build(), {"/subsystems/0", "descriptor", "Taylor series"});
  EXPECT_EQ(objection(oscillators(3, 0.1)), "") << "control";
}

// Islands at once, in any order, and a run that goes on from an archive.
TEST(Taylor, GivesTheSameBitsInAnyOrderAndFromAnArchive) {
  SystemBuilder builder;
  for (int i = 0; i < 5; ++i) {
    const std::string a = "a" + std::to_string(i), b = "b" + std::to_string(i);
    builder.add(a, linear_oscillator({.mass_kg = 1.0, .damping_Ns_per_m = 0.1}),
                {.initial_state = {0.3 + 0.2 * i, 0.1},
                 .inputs = {{"force", Signal::sine_product(1.0 + i, {{.frequency_Hz = 0.7}})}}});
    builder.add(b, parts::spring({.stiffness_N_per_m = 2.0 + i}));
    builder.join(joint::CommonFlow{}, {a + ".coupling", b + ".right"});
    builder.join(joint::Fixed{}, {b + ".left"});
  }
  const System system = builder.build();
  class Backwards final : public ForEach {
    void run(int count, void (*call)(const void*, int), const void* body) const override {
      for (int i = count - 1; i >= 0; --i) call(body, i);
    }
  };
  TaylorMethod one(system, 0.0, .3, kTaylor), other(system, 0.0, .3, kTaylor);
  EXPECT_EQ(one.tasks(), 5);
  for (int n = 0; n < 20; ++n) {
    one.step(ForEach());
    other.step(Backwards());
  }
  EXPECT_TRUE(std::ranges::equal(one.state(), other.state()));
  std::vector<std::byte> bytes;
  StateArchive writer = StateArchive::writer(bytes);
  one.archive(writer);
  writer.finish();
  TaylorMethod third(system, 0.0, .3, kTaylor);
  StateArchive reader = StateArchive::reader(bytes);
  third.archive(reader);
  reader.finish();
  for (int n = 0; n < 20; ++n) {
    const NetworkStep a = one.step(ForEach()), b = third.step(ForEach());
    EXPECT_EQ(a.energy.stored_J, b.energy.stored_J);
    EXPECT_EQ(a.energy.tank_J, b.energy.tank_J);
  }
  EXPECT_TRUE(std::ranges::equal(one.state(), third.state()));
  EXPECT_TRUE(std::ranges::equal(one.previous_state(), third.previous_state()));
  // Control: another state is noticed.
  other.step(ForEach());
  EXPECT_FALSE(std::ranges::equal(one.state(), other.state()));
}

}  // namespace
}  // namespace portwave::test_taylor_energy
