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

#include <portwave/coupling/network/kick_drift.hpp>
#include <portwave/subsystems/base/state_archive.hpp>
#include <portwave/subsystems/catalogue/catalogue.hpp>
#include <portwave/subsystems/catalogue/parts.hpp>
#include <portwave/subsystems/nonlinear/nonlinear_part.hpp>

#include "support/systems/separable_networks.hpp"

namespace portwave::test_kick_drift_energy {
namespace {

/// A mass in a double well, H = p²/(2m) + a(x² − w²)²/(4w⁴), on a damper; `unit` scales length and energy.
std::shared_ptr<const Subsystem> double_well(double damping, double unit = 1.0,
                                             bool allow_active = false) {
  Signature signature{"double_well",
                      {{"x", "m"}, {"p", "kg m/s"}},
                      {{"end", Causality::effort_in, Domain::translation, 1}},
                      {{"force", "N"}}};
  Structure s = Structure::zero(2, 2);
  s.J.insert(0, 1) = 1.0;
  s.J.insert(1, 0) = -1.0;
  s.R.insert(1, 1) = damping;
  s.G.insert(1, 0) = 1.0;
  s.G.insert(1, 1) = 1.0;
  const double w = unit, a = 4.0 * unit * unit;
  Hamiltonian H;
  H.value = [=](const double* x) {
    const double y = x[0] * x[0] / (w * w) - 1.0;
    return 0.5 * x[1] * x[1] + 0.25 * a * y * y;
  };
  H.gradient = [=](const double* x, double* g) {
    g[0] = a * (x[0] * x[0] / (w * w) - 1.0) * x[0] / (w * w);
    g[1] = x[1];
  };
  H.hessian = [=](const double* x, double* h) {
    h[0] = a * (3.0 * x[0] * x[0] / (w * w) - 1.0) / (w * w);
    h[1] = h[2] = 0.0;
    h[3] = 1.0;
  };
  NonlinearPortHamiltonian::Options options;
  options.polynomial_degree = 4;
  options.discrete_gradient = DiscreteGradient::mean_value;
  options.allow_active = allow_active;
  options.default_state = {unit, 0.0};
  return std::make_shared<NonlinearPortHamiltonian>(std::move(signature), std::move(s),
                                                    std::move(H), std::move(options));
}

/// Masses in double wells, joined by springs with dampers.
System wells(int count, double damping, double unit = 1.0, double push = 0.0,
             bool allow_active = false) {
  SystemBuilder builder;
  const auto part = double_well(damping, unit, allow_active);
  for (int i = 0; i < count; ++i) {
    SystemBuilder::PartOptions options{
        .initial_state = {push != 0.0 ? -unit : unit * (i % 2 == 0 ? 1.4 : -0.6), 0.0}};
    if (push != 0.0 && i == 0) {
      options.inputs["force"] = Signal::sine_product(push * unit, {{.frequency_Hz = 0.4}});
    }
    builder.add("w" + std::to_string(i), part, options);
    if (i == 0) continue;
    builder.add("s" + std::to_string(i),
                parts::spring_damper({.stiffness_N_per_m = 3.0, .damping_Ns_per_m = 0.02}));
  }
  for (int i = 0; i < count; ++i) {
    std::vector<std::string> ports = {"w" + std::to_string(i) + ".end"};
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

/// Two masses on a spring, far away and in free flight.
System flying_pair(double position, double velocity) {
  SystemBuilder builder;
  builder.add("a", linear_oscillator({.mass_kg = 1.0}), {.initial_state = {position, velocity}});
  builder.add("b", duffing_oscillator({.mass_kg = 2.0, .coupling_stiffness_N_per_m = 50.0}),
              {.initial_state = {position, velocity, 0.1}});
  builder.connect("b.coupling", "a.coupling");
  return builder.build();
}

/// A capacitor that leaks, charged by an alternating current: nothing but a decay.
System leaking_capacitor() {
  const double C = 0.1, G = 0.3;
  Structure s = Structure::zero(1, 1);
  s.R.insert(0, 0) = G / (C * C);
  s.G.insert(0, 0) = 1.0 / C;
  SparseMatrix Q(1, 1);
  Q.insert(0, 0) = C;
  SystemBuilder::PartOptions options;
  options.inputs["current"] = Signal::sine_product(2.0, {{.frequency_Hz = 0.5}}, 0.5);
  SystemBuilder builder;
  builder.add(
      "c",
      std::make_shared<LinearPortHamiltonian>(
          Signature{"leaking_capacitor", {{"u", "V"}}, {}, {{"current", "A"}}}, std::move(s), Q),
      options);
  return builder.build();
}

struct Laws {
  double worst_excess = 0.0;  ///< of H over H₀ + supply − dissipation, beside the energies moved
  double worst_account = 0.0;  ///< of the ledger's H beside that of the states, likewise
  std::string remarks;
};

/// Runs, and compares at every step. `misbooked`: a share of the dissipation that is left out.
Laws laws_of(const System& system, double step_s, int steps, int order = 6,
             double misbooked = 0.0) {
  KickDriftMethod method(system, 0.0, step_s, {.kind = SplittingKind::kick_drift, .order = order});
  std::vector<int> parts;
  for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
    if (!system.parts()[static_cast<std::size_t>(i)].initial_state.empty()) parts.push_back(i);
  }
  const auto stored = [&] {
    double sum = 0.0;
    for (int block = 0; block < static_cast<int>(parts.size()); ++block) {
      sum += method.storage(block);
    }
    return sum;
  };
  const double start_J = stored();
  double supplied_J = 0.0, dissipated_J = 0.0, scale_J = std::abs(start_J);
  Laws laws;
  for (int n = 0; n < steps; ++n) {
    const NetworkStep step = method.step(ForEach());
    supplied_J += step.energy.supplied_J;
    dissipated_J += (1.0 - misbooked) * step.energy.dissipated_J;
    scale_J = std::max({scale_J, std::abs(supplied_J), dissipated_J, step.energy_scale_J});
    EXPECT_GE(step.energy.dissipated_J, -1e-14 * scale_J);
    const double excess = step.energy.stored_J - (start_J + supplied_J - dissipated_J);
    laws.worst_excess = std::max(laws.worst_excess, std::abs(excess) / scale_J);
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
      {"pair", [] { return testing::separable_pair(); }, .04, 250},
      {"pair, steps that are too long", [] { return testing::separable_pair(); }, .15, 100},
      {"pair, damped", [] { return testing::separable_pair(5.0); }, .02, 500},
      {"wells", [] { return wells(1, 0.0); }, .1, 500},
      {"chain of wells", [] { return wells(6, 0.05); }, .1, 300},
      {"wells, far too long steps", [] { return wells(4, 0.0); }, 1.5, 50},
      {"wells, overdamped", [] { return wells(3, 20.0); }, .05, 300},
      {"wells, driven from rest", [] { return wells(3, 0.1, 1.0, 2.0); }, .1, 300},
      {"wells in tiny units", [] { return wells(3, 0.1, 1e-9); }, .1, 200},
      {"wells in huge units", [] { return wells(3, 0.1, 1e9); }, .1, 200},
      {"line", [] { return testing::separable_line(16, 4); }, 5e-4, 200},
      {"line of unlike coils", [] { return testing::separable_line(16, 4, true); }, 5e-4, 200},
      {"grid", [] { return testing::separable_grid(5, .05); }, .05, 200},
      {"grid, damped", [] { return testing::separable_grid(5, 2.0); }, .05, 100},
      {"far from the origin", [] { return flying_pair(1e6, 300.0); }, .1, 500},
      {"tiny steps", [] { return testing::separable_pair(); }, 1e-6, 2000},
      {"tiny steps from rest", [] { return wells(2, 0.0, 1.0, 1e-3); }, 1e-5, 500},
      {"a decay alone", [] { return leaking_capacitor(); }, .05, 200},
      {"long run", [] { return wells(2, 0.0); }, .12, 20000, 1e-12},
  };
}

TEST(KickDriftEnergy, IsWhatWasSuppliedLessWhatWasDissipatedAtEveryStep) {
  for (const Case& each : cases()) {
    const System system = each.system();
    for (const int order : {4, 6}) {
      const Laws laws = laws_of(system, each.step_s, each.steps, order);
      EXPECT_LE(laws.worst_excess, 2e-13) << each.name << " order " << order;
      EXPECT_LE(laws.worst_account, each.account) << each.name << " order " << order;
    }
  }
}

TEST(KickDriftEnergyControl, SeesABillionthOfTheDissipation) {
  for (const Case& each : cases()) {
    if (each.name != "grid, damped" && each.name != "wells, overdamped") continue;
    EXPECT_LE(laws_of(each.system(), each.step_s, each.steps).worst_excess, 2e-13) << each.name;
    EXPECT_GT(laws_of(each.system(), each.step_s, each.steps, 6, 1e-9).worst_excess, 2e-11)
        << each.name;
  }
}

TEST(KickDriftEnergyControl, CatchesANegativeDamper) {
  // The account stays exact, since it knows the negative dissipation; H alone grows.
  const System system = wells(2, -0.1, 1.0, 0.0, /*allow_active=*/true);
  KickDriftMethod method(system, 0.0, .05, {.kind = SplittingKind::kick_drift});
  double supplied_J = 0.0, first_J = 0.0, last_J = 0.0;
  for (int n = 0; n < 100; ++n) {
    const StepLedger energy = method.step(ForEach()).energy;
    supplied_J += energy.supplied_J;
    if (n == 0) first_J = energy.stored_J;
    last_J = energy.stored_J;
  }
  EXPECT_EQ(supplied_J, 0.0);
  EXPECT_GT(last_J, 1.1 * first_J);
}

TEST(KickDriftEnergy, HalvesStepsThatAreTooLong) {
  EXPECT_NE(laws_of(wells(4, 0.0), 1.5, 50).remarks, "");
  EXPECT_EQ(laws_of(wells(4, 0.0), .05, 50).remarks, "");
}

// What is left to itself stays so: elongation of the positions, and the momentum of the whole.
TEST(KickDriftEnergy, KeepsMomentumAndElongation) {
  const System system = flying_pair(1e6, 300.0);
  KickDriftMethod method(system, 0.0, .1, {.kind = SplittingKind::kick_drift});
  for (int n = 0; n < 500; ++n) method.step(ForEach());
  const auto x = method.state();
  EXPECT_NEAR(x[1] + 2.0 * x[3], 900.0, 1e-10);
  EXPECT_NEAR((x[0] + 2.0 * x[2]) / 3.0, 1e6 + 300.0 * 50.0, 1e-8);
  EXPECT_NEAR(x[4] - 0.1, x[0] - x[2], 1e-8);  // of 1e6 m
  EXPECT_GT(std::abs(x[4]), 1e-3);
}

/// A direct current motor that turns a pendulum by a torsional spring, under an alternating voltage.
System machine() {
  SystemBuilder builder;
  SystemBuilder::PartOptions voltage;
  voltage.inputs["effort"] = Signal::sine_product(6.0, {{.frequency_Hz = 1.3}});
  builder.add("v", parts::effort_source({.domain = "electrical"}), voltage);
  builder.add("motor", parts::dc_motor({.inductance_H = 0.02,
                                        .resistance_ohm = 0.5,
                                        .motor_constant_Vs_per_rad = 0.3,
                                        .inertia_kgm2 = 0.004,
                                        .damping_Nms_per_rad = 0.003}));
  builder.add("shaft", parts::torsional_spring({.stiffness_Nm_per_rad = 2.0}),
              {.initial_state = {0.1}});
  builder.add("pendulum",
              parts::pendulum({.mass_kg = 0.4, .length_m = 0.3, .damping_Nms_per_rad = 0.01}),
              {.initial_state = {0.5, 0.0}});
  builder.connect("v.port", "motor.terminals");
  builder.connect("motor.shaft", "shaft.left");
  builder.connect("shaft.right", "pendulum.shaft");
  return builder.build();
}

// Reference: SciPy's DOP853 at a relative tolerance of 3e-14, from equations written by hand.
TEST(KickDrift, AgreesWithSciPyOnPartsOfTheCatalogue) {
  const System system = machine();
  const auto state_of = [&](const KickDriftMethod& method, const char* part, int index) {
    int first = 0;
    for (int i = 0; i < system.find_part(part); ++i) {
      first += static_cast<int>(system.parts()[static_cast<std::size_t>(i)].initial_state.size());
    }
    return method.state()[static_cast<std::size_t>(first + index)];
  };
  const auto error = [&](int order, int steps) {
    KickDriftMethod method(system, 0.0, 3.0 / steps,
                           {.kind = SplittingKind::kick_drift, .order = order});
    double supplied_J = 0.0, dissipated_J = 0.0;
    for (int n = 0; n < steps; ++n) {
      const StepLedger energy = method.step(ForEach()).energy;
      supplied_J += energy.supplied_J;
      dissipated_J += energy.dissipated_J;
    }
    double sum = 0.0;
    const auto beside = [&](double value, double reference) {
      sum = std::max(sum, std::abs(value - reference));
    };
    beside(state_of(method, "motor", 0), -8.339656952058);
    beside(state_of(method, "motor", 2), -1.94819777773821);
    beside(state_of(method, "shaft", 0), 1.22908164428117);
    beside(state_of(method, "pendulum", 0), 1.38361019375195);
    beside(state_of(method, "pendulum", 1), -0.40063119603037);
    beside(0.1 * supplied_J, 0.1 * 92.965467335617);
    beside(0.1 * dissipated_J, 0.1 * 87.718475622407);
    return sum;
  };
  for (const int order : {4, 6}) {
    const double coarse = error(order, 200), fine = error(order, 400);
    EXPECT_NEAR(std::log2(coarse / fine), order, 0.7) << order << ": " << coarse << ", " << fine;
  }
  EXPECT_LE(error(6, 1600), 1e-10);
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
TEST(KickDriftEnergy, IsKeptByEveryTypeOfTheCatalogueThatIsTaken) {
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
  EXPECT_GE(refused, 10);
}

// Islands at once, in any order, and a run that goes on from an archive.
TEST(KickDrift, GivesTheSameBitsInAnyOrderAndFromAnArchive) {
  SystemBuilder builder;
  for (int i = 0; i < 5; ++i) {
    const std::string a = "a" + std::to_string(i), b = "b" + std::to_string(i);
    builder.add(a, double_well(0.1), {.initial_state = {0.3 + 0.2 * i, 0.1}});
    builder.add(b, parts::spring({.stiffness_N_per_m = 2.0 + i}));
    builder.join(joint::CommonFlow{}, {a + ".end", b + ".right"});
    builder.join(joint::Fixed{}, {b + ".left"});
  }
  // Momenta are kept shifted by what they are at rest.
  builder.add(
      "shifted",
      parts::port_hamiltonian({.states = {{"q", "m"}, {"p", "kg m/s"}},
                               .ports = {{"end", Causality::effort_in, Domain::translation, 1}},
                               .energy = "50*(q - 0.1234567)^2 + (p - 0.0171717)^2/3",
                               .J = {{0, 1}, {-1, 0}},
                               .G = {{0}, {1}}})
          .build(),
      {.initial_state = {0.3, 0.2}});
  builder.join(joint::Free{}, {"shifted.end"});
  const System system = builder.build();
  class Backwards final : public ForEach {
    void run(int count, void (*call)(const void*, int), const void* body) const override {
      for (int i = count - 1; i >= 0; --i) call(body, i);
    }
  };
  const Splitting options{.kind = SplittingKind::kick_drift};
  KickDriftMethod one(system, 0.0, .3, options), other(system, 0.0, .3, options);
  for (int n = 0; n < 20; ++n) {
    one.step(ForEach());
    other.step(Backwards());
  }
  const auto same = [](std::span<const double> a, std::span<const double> b) {
    return std::ranges::equal(a, b);
  };
  EXPECT_TRUE(same(one.state(), other.state()));
  std::vector<std::byte> bytes;
  StateArchive writer = StateArchive::writer(bytes);
  one.archive(writer);
  writer.finish();
  KickDriftMethod third(system, 0.0, .3, options);
  StateArchive reader = StateArchive::reader(bytes);
  third.archive(reader);
  reader.finish();
  for (int n = 0; n < 20; ++n) {
    const NetworkStep a = one.step(ForEach()), b = third.step(ForEach());
    EXPECT_EQ(a.energy.stored_J, b.energy.stored_J);
    EXPECT_EQ(a.energy.tank_J, b.energy.tank_J);
  }
  EXPECT_TRUE(same(one.state(), third.state()));
  EXPECT_TRUE(same(one.previous_state(), third.previous_state()));
  // Control: another state is noticed.
  other.step(ForEach());
  EXPECT_FALSE(same(one.state(), other.state()));
}

}  // namespace
}  // namespace portwave::test_kick_drift_energy
