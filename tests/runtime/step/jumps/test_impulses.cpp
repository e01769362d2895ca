// States that violate rigid joints jump by the impulse of physics, and the account of energy closes over it.

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/runtime/ensemble/ensemble.hpp"
#include "portwave/runtime/ranks/ranked_stepper.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"
#include "support/thread_ranks.hpp"

namespace portwave::test_impulses {
namespace {

std::shared_ptr<const Component> part(const std::string& type, Parameters parameters) {
  return make_part(type, std::move(parameters));
}

StepperOptions options_of(double step_s, Start start = Start::consistent) {
  StepperOptions options;
  options.step_s = step_s;
  options.start = start;
  return options;
}

System two_inertias(double a, double b, double J_a = 1.0, double J_b = 3.0) {
  SystemBuilder builder;
  builder.add("a", part("inertia", {{"inertia_kgm2", J_a}}), {.initial_state = {0.0, a}});
  builder.add("b", part("inertia", {{"inertia_kgm2", J_b}}), {.initial_state = {0.0, b}});
  builder.join(joint::CommonFlow{}, {"a.shaft", "b.shaft"});
  return builder.build();
}

/// An inertia of 1 kg m² whose speed is prescribed.
System driven(Signal speed, double start = 0.0) {
  SystemBuilder builder;
  SystemBuilder::PartOptions options;
  options.inputs["flow"] = std::move(speed);
  builder.add("q", part("flow_source", {{"domain", std::string("rotation")}}), options);
  builder.add("j", part("inertia", {{"inertia_kgm2", 1.0}}), {.initial_state = {0.0, start}});
  builder.join(joint::CommonFlow{}, {"q.port", "j.shaft"});
  return builder.build();
}

System capacitor_on_source(double volt) {
  SystemBuilder builder;
  SystemBuilder::PartOptions options;
  options.inputs["effort"] = Signal::constant(volt);
  builder.add("v", part("effort_source", {{"domain", std::string("electrical")}}), options);
  builder.add("c", part("capacitor", {{"capacitance_F", 1.0}}));
  builder.join(joint::CommonEffort{}, {"v.port", "c.terminals"});
  return builder.build();
}

/// What the account of a run leaves open, relative to the energies in it.
double open_share(const Stepper& stepper) {
  const EnergyTotals e = stepper.energy();
  const double open = e.final_J - e.initial_J - e.supplied_J + e.dissipated_J + e.mismatch_J +
                      e.impact_J + e.numerical_dissipation_J;
  return std::abs(open) / (std::abs(e.initial_J) + e.max_J + std::abs(e.supplied_J));
}

bool contains(const std::string& text, const std::string& piece) {
  return text.find(piece) != std::string::npos;
}

TEST(Impulses, RigidShaftsTakeAPlasticImpact) {
  const System system = two_inertias(10.0, 2.0);
  Stepper stepper(system, options_of(0.01));
  EXPECT_NEAR(stepper.state("a")[1], 4.0, 1e-14) << "after the impulse, before a step";
  EXPECT_NEAR(stepper.energy().initial_J, 56.0, 1e-13);
  EXPECT_NEAR(stepper.energy().final_J, 32.0, 1e-13);
  EXPECT_NEAR(stepper.energy().impact_J, 24.0, 1e-13);
  EXPECT_EQ(stepper.energy().supplied_J, 0.0);
  ASSERT_EQ(stepper.impulses().count, 1);
  const Impulse& first = stepper.impulses().first.front();
  EXPECT_EQ(first.time_s, 0.0);
  EXPECT_TRUE(contains(first.joint, "common_flow of a.shaft, b.shaft")) << first.joint;
  EXPECT_TRUE(contains(first.jumps, "a.speed 10 -> 4 rad/s, b.speed 2 -> 4 rad/s")) << first.jumps;
  EXPECT_EQ(stepper.starts_at_odds().count, 0);
  // The energy of each: 50 -> 8 J and 6 -> 24 J, ½JΔω² lost, the rest through the joint.
  const PartEnergies a = stepper.waves()->energies_of(0), b = stepper.waves()->energies_of(1);
  EXPECT_NEAR(a.impact_J, 18.0, 1e-13);
  EXPECT_NEAR(b.impact_J, 6.0, 1e-13);
  EXPECT_NEAR(a.through_ports_J, -24.0, 1e-13);
  EXPECT_NEAR(b.through_ports_J, 24.0, 1e-13);
  double impact_J = 0.0;
  for (int step = 0; step < 50; ++step) {
    impact_J += stepper.step().energy.impact_J;
    EXPECT_NEAR(stepper.state("a")[1], 4.0, 1e-9);
    EXPECT_NEAR(stepper.state("b")[1], 4.0, 1e-9);
  }
  EXPECT_EQ(impact_J, 0.0) << "that of the start is before the first step";
  EXPECT_LE(open_share(stepper), 1e-14);
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  EXPECT_EQ(stepper.impulses().count, 1);
}

TEST(Impulses, AnySizesOfUnitsDoNotMatter) {
  for (const double J : {1e-9, 1.0, 1e9}) {
    for (const double speed : {1e-9, 1.0, 1e9}) {
      const System system = two_inertias(10.0 * speed, 2.0 * speed, J, 3.0 * J);
      Stepper stepper(system, options_of(0.01));
      stepper.step(10);
      const double scale_J = J * speed * speed;
      EXPECT_NEAR(stepper.state("a")[1] / speed, 4.0, 1e-9) << J << " " << speed;
      EXPECT_NEAR(stepper.energy().impact_J / scale_J, 24.0, 1e-12) << J << " " << speed;
      EXPECT_LE(open_share(stepper), 1e-14) << J << " " << speed;
    }
  }
}

TEST(Impulses, ASourceSuppliesWhatIsStoredAndLost) {
  const System system = capacitor_on_source(1.0);
  Stepper stepper(system, options_of(0.01));
  stepper.step(100);
  EXPECT_NEAR(stepper.state("c")[0], 1.0, 1e-12);
  const EnergyTotals e = stepper.energy();
  EXPECT_NEAR(e.impact_J, 0.5, 1e-13);
  EXPECT_NEAR(e.supplied_J, 1.0, 1e-10);
  EXPECT_NEAR(e.final_J, 0.5, 1e-12);
  EXPECT_LE(open_share(stepper), 1e-14);
  EXPECT_NEAR(stepper.impulses().in_all.supplied_J, 1.0, 1e-13);
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  Stepper fresh(system, options_of(0.01));
  const PartEnergies v = fresh.waves()->energies_of(0);
  EXPECT_NEAR(v.supplied_J, 1.0, 1e-13);
  EXPECT_NEAR(v.through_ports_J, -1.0, 1e-13);
}

TEST(Impulses, SourcesAreToldApart) {
  // Two capacitors on sources of their own, in series with nothing: two groups, two impulses.
  SystemBuilder builder;
  for (const auto& [name, volt] : {std::pair("1", 2.0), std::pair("2", -3.0)}) {
    SystemBuilder::PartOptions options;
    options.inputs["effort"] = Signal::constant(volt);
    const std::string n = name;
    builder.add("v" + n, part("effort_source", {{"domain", std::string("electrical")}}), options);
    builder.add("c" + n, part("capacitor", {{"capacitance_F", 1.0}}));
    builder.join(joint::CommonEffort{}, {"v" + n + ".port", "c" + n + ".terminals"});
  }
  const System system = builder.build();
  Stepper stepper(system, options_of(0.01));
  EXPECT_EQ(stepper.impulses().count, 2);
  EXPECT_NEAR(stepper.waves()->energies_of(0).supplied_J, 4.0, 1e-13);
  EXPECT_NEAR(stepper.waves()->energies_of(2).supplied_J, 9.0, 1e-13);
  stepper.step(10);
  EXPECT_NEAR(stepper.energy().impact_J, 6.5, 1e-12);
  EXPECT_LE(open_share(stepper), 1e-14) << "over two islands";
}

TEST(Impulses, AMassThatIsCaughtLosesEverything) {
  const System system = driven(Signal::constant(0.0), 3.0);
  Stepper stepper(system, options_of(0.01));
  stepper.step(10);
  EXPECT_NEAR(stepper.state("j")[1], 0.0, 1e-12);
  EXPECT_NEAR(stepper.energy().impact_J, 4.5, 1e-13);
  EXPECT_NEAR(stepper.energy().supplied_J, 0.0, 1e-12);
}

/// Jumps at, before and after the instants at which a step samples, of one, two and three stages. Of an
/// expression a step takes the mean, of a function the value.
TEST(Impulses, AJumpOfASpeedIsOneImpulseWhereverInAStepItIs) {
  for (const bool is_function : {false, true}) {
    for (const int stages : {1, 2, 3}) {
      for (const double share : {0.0, 0.05, 0.3, 0.45, 0.55, 0.8, 0.99}) {
        const double jump_s = 0.01 * (5.0 + share);
        const System system = driven(
            is_function ? Signal::callback([jump_s](double t) { return t < jump_s ? 2.0 : 10.0; })
                        : Signal::expression(fmt::format("if(t < {:.17g}, 2, 10)", jump_s)),
            2.0);
        const std::string where = fmt::format("{} {} {}", is_function, stages, share);
        StepperOptions options = options_of(0.01);
        options.method.waves().stages = stages;
        Stepper stepper(system, options);
        stepper.step(5);
        EXPECT_EQ(stepper.impulses().count, 0) << where;
        double impact_J = 0.0, supplied_J = 0.0;
        for (int step = 5; step < 20; ++step) {
          const StepReport report = stepper.step();
          impact_J += report.energy.impact_J;
          supplied_J += report.energy.supplied_J;
          const double speed = stepper.state("j")[1];
          EXPECT_NEAR(speed, 10.0, 1e-8) << where << " " << step;
          // Its way is that of the source, however far within a step it jumps.
          const double way = 2.0 * jump_s + 10.0 * (0.01 * (step + 1) - jump_s);
          EXPECT_NEAR(stepper.state("j")[0], way, 1e-8) << where << " " << step;
        }
        const auto& all = stepper.impulses();
        ASSERT_EQ(all.count, 1) << where;
        EXPECT_NEAR(all.first[0].time_s, jump_s, 1e-9) << where;
        EXPECT_TRUE(contains(all.first[0].cause, "q.flow jumps from 2 to 10 rad/s"))
            << all.first[0].cause;
        // 10 rad/s times 8 kg m² rad/s supplied, of which ½·8² are lost.
        EXPECT_NEAR(stepper.energy().final_J, 50.0, 1e-7) << where;
        EXPECT_NEAR(supplied_J, 80.0, 1e-6) << where;
        EXPECT_NEAR(impact_J, 32.0, 1e-7) << where;
        EXPECT_LE(open_share(stepper), 1e-14) << where;
        EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds) << where;
      }
    }
  }
}

TEST(Impulses, TheRowOfAJumpHasTheStatesBeforeIt) {
  const System system = driven(Signal::expression("if(t < 0.05, 0, 10)"));
  Stepper stepper(system, options_of(0.01));
  stepper.step(5);
  EXPECT_NEAR(stepper.state("j")[1], 0.0, 1e-12) << "at 0.05 s";
  const StepReport report = stepper.step();
  EXPECT_NEAR(stepper.state("j")[1], 10.0, 1e-9);
  EXPECT_NEAR(report.energy.impact_J, 50.0, 1e-9);
  EXPECT_NEAR(report.energy.supplied_J, 100.0, 1e-6);
}

TEST(Impulses, AJumpOfAMovingSourceLeavesNoOscillation) {
  const System system = driven(Signal::expression("if(t < 0.0532, 0, 5 + 100*(t - 0.05))"));
  Stepper stepper(system, options_of(0.01));
  stepper.step(20);
  EXPECT_EQ(stepper.impulses().count, 1);
  for (int step = 0; step < 10; ++step) {
    stepper.step();
    EXPECT_NEAR(stepper.state("j")[1], 5.0 + 100.0 * (stepper.time_s() - 0.05), 1e-7);
  }
  EXPECT_LE(open_share(stepper), 1e-14);
}

TEST(Impulses, StepsThatChooseTheirSizeEndAtTheJumpAndGoOn) {
  const System system = driven(Signal::expression("if(t<0.5,0,10)"));
  StepperOptions options = options_of(0.2);
  options.sizes = StepSizes{.tolerance = 1e-4};
  Stepper stepper(system, options);
  bool ends_there = false;
  while (const auto report = stepper.step_if_before(1.0))
    ends_there = ends_there || stepper.time_s() == 0.5;
  EXPECT_TRUE(ends_there);
  EXPECT_NEAR(stepper.state("j")[1], 10.0, 1e-8);
  EXPECT_EQ(stepper.impulses().count, 1);
  EXPECT_NEAR(stepper.energy().impact_J, 50.0, 1e-9);
  EXPECT_LE(open_share(stepper), 1e-14);
}

TEST(Impulses, ASettableInputJumpsWheneverItIsSet) {
  const System system = driven(Signal::settable(0.0));
  Stepper stepper(system, options_of(0.01));
  const InputSlot flow = stepper.find_input("q.flow");
  stepper.step(5);
  for (const double speed : {2.0, -1.0, 0.0}) {
    stepper.set_input(flow, speed);
    stepper.step(5);
    EXPECT_NEAR(stepper.state("j")[1], speed, 1e-9);
  }
  EXPECT_EQ(stepper.impulses().count, 3);
  EXPECT_NEAR(stepper.energy().impact_J, 0.5 * (4.0 + 9.0 + 1.0), 1e-8);
  EXPECT_LE(open_share(stepper), 1e-14);
}

TEST(Impulses, AControllerMayJump) {
  StepperOptions options = options_of(0.01);
  const System system = driven(Signal::settable(0.0));
  SignalGraphBuilder builder(system);
  builder.block("reference", block::step({.time_s = 0.5, .before = 0.0, .after = 1.0}), {});
  builder.actuate("reference", 0, 0);
  options.signals = std::make_shared<const SignalGraph>(builder.build());
  Stepper stepper(system, options);
  stepper.step(100);
  EXPECT_EQ(stepper.impulses().count, 1);
  EXPECT_NEAR(stepper.state("j")[1], 1.0, 1e-9);
  EXPECT_NEAR(stepper.energy().final_J, 0.5, 1e-9);
  EXPECT_LE(open_share(stepper), 1e-14);
}

TEST(Impulses, ASwitchThatOpensTakesTheCurrent) {
  SystemBuilder builder;
  builder.add("l", part("inductor", {{"inductance_H", 1.0}}), {.initial_state = {1.0}});
  SystemBuilder::PartOptions options{.initial_state = {1.0}};
  options.inputs["speed"] = Signal::expression("if(t < 0.001, -1000, 0)");
  builder.add("s", part("electrical_switch", {{"on_S", 10.0}, {"off_S", 0.0}}), options);
  builder.connect("l.terminals", "s.terminals");
  const System system = builder.build();
  Stepper stepper(system, options_of(1e-5));
  stepper.step(200);
  EXPECT_EQ(stepper.impulses().count, 1);
  EXPECT_NEAR(stepper.impulses().first[0].time_s, 0.001, 2e-5);
  EXPECT_EQ(stepper.impulses().first[0].cause, "a part has changed");
  EXPECT_NEAR(stepper.state("l")[0], 0.0, 1e-12);
  const EnergyTotals e = stepper.energy();
  // Some is taken by the damped step in which the switch resists more than the step resolves.
  EXPECT_NEAR(e.impact_J + e.dissipated_J + e.numerical_dissipation_J, 0.5, 1e-9);
  EXPECT_LT(e.numerical_dissipation_J, 1e-3);
  EXPECT_GT(e.impact_J, 0.48);
  EXPECT_LE(open_share(stepper), 1e-14);
}

/// Its state is a momentum: of another mass it has another speed.
std::shared_ptr<const Component> body(double mass_kg, Domain domain = Domain::translation) {
  Signature signature{"body", {{"p", "kg m/s"}}, {{"t", Causality::effort_in, domain, 1}}, {}};
  Structure s = Structure::zero(1, 1);
  s.G.insert(0, 0) = -1.0;
  SparseMatrix Q(1, 1);
  Q.insert(0, 0) = 1.0 / mass_kg;
  return std::make_shared<LinearPortHamiltonian>(std::move(signature), std::move(s), Q);
}

System bodies(double p_a, double p_b, Domain domain = Domain::translation) {
  SystemBuilder builder;
  builder.add("a", body(1.0, domain), {.initial_state = {p_a}});
  builder.add("b", body(3.0, domain), {.initial_state = {p_b}});
  builder.join(joint::CommonFlow{}, {"a.t", "b.t"});
  return builder.build();
}

TEST(Impulses, APartThatIsExchangedAndStatesThatAreSetJumpInTheNextStep) {
  Stepper stepper(bodies(2.0, 6.0), options_of(0.01));
  stepper.step(5);
  stepper.set_component(1, body(1.5));
  EXPECT_EQ(stepper.impulses().count, 0) << "not before the step";
  stepper.step();
  EXPECT_EQ(stepper.impulses().count, 1);
  EXPECT_NEAR(stepper.state("a")[0] / 1.0, stepper.state("b")[0] / 1.5, 1e-9);
  EXPECT_NEAR(stepper.state("a")[0] + stepper.state("b")[0], 8.0, 1e-9) << "the momentum stays";
  EXPECT_LE(open_share(stepper), 1e-14);
  const std::vector<double> states = {5.0, 0.0};
  stepper.set_states(states);
  stepper.step();
  EXPECT_EQ(stepper.impulses().count, 2);
  EXPECT_NEAR(stepper.state("a")[0], 2.0, 1e-9);
  EXPECT_LE(open_share(stepper), 1e-14);
}

TEST(Impulses, ANonlinearStorageJumpsToWhereTheJointHolds) {
  SystemBuilder builder;
  builder.add("n",
              part("saturating_inductor", {{"inductance_H", 0.5}, {"saturation_flux_Vs", 0.7}}),
              {.initial_state = {1.5}});
  builder.add("l", part("inductor", {{"inductance_H", 2.0}}), {.initial_state = {-1.0}});
  builder.join(joint::CommonFlow{}, {"n.terminals", "l.terminals"});
  const System system = builder.build();
  const auto current = [](double flux) {
    return flux / 0.5 + flux * flux * flux / (0.5 * 0.7 * 0.7);
  };
  const auto energy = [](double flux) {
    return flux * flux / (2.0 * 0.5) + std::pow(flux, 4) / (4.0 * 0.5 * 0.7 * 0.7);
  };
  Stepper stepper(system, options_of(0.001));
  const double flux = stepper.state("n")[0], i = stepper.state("l")[0];
  EXPECT_NEAR(current(flux), i, 1e-11 * std::abs(i)) << "to rounding";
  EXPECT_NEAR(flux + 2.0 * i, 1.5 - 2.0, 1e-12) << "the flux linkage of both stays";
  EXPECT_NEAR(stepper.energy().impact_J, energy(1.5) + 1.0 - energy(flux) - i * i, 1e-11);
  EXPECT_GT(stepper.energy().impact_J, 0.0);
  EXPECT_EQ(stepper.energy().supplied_J, 0.0);
  stepper.step(50);
  EXPECT_LE(open_share(stepper), 1e-13);
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
}

std::vector<double> trace_of(const System& system, StepperOptions options, int steps) {
  Stepper stepper(system, options);
  std::vector<double> out;
  for (int step = 0; step < steps; ++step) {
    const StepReport report = stepper.step();
    for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
      out.insert(out.end(), stepper.state(i).begin(), stepper.state(i).end());
    }
    for (const double value :
         {report.energy.stored_J, report.energy.supplied_J, report.energy.changed_J,
          report.energy.mismatch_J, report.energy.tank_J, report.residual}) {
      out.push_back(value);
    }
  }
  return out;
}

TEST(Impulses, WhereNothingIsViolatedNoBitChanges) {
  const std::vector<System> systems = [] {
    std::vector<System> all;
    all.push_back(two_inertias(2.0, 2.0));
    all.push_back(driven(Signal::expression("sin(20*t)")));
    all.push_back(driven(Signal::expression("abs(t - 0.05) - 0.05")));
    all.push_back(capacitor_on_source(0.0));
    return all;
  }();
  for (const System& system : systems) {
    const std::vector<double> given = trace_of(system, options_of(0.003, Start::as_given), 60);
    EXPECT_EQ(given, trace_of(system, options_of(0.003), 60));
    EXPECT_EQ(given, trace_of(system, options_of(0.003, Start::refuse), 60));
  }
  // The control: where something is, they differ.
  EXPECT_NE(trace_of(two_inertias(2.0, 2.1), options_of(0.003, Start::as_given), 5),
            trace_of(two_inertias(2.0, 2.1), options_of(0.003), 5));
}

TEST(Impulses, SourcesThatContradictOneAnotherAreRefused) {
  SystemBuilder builder;
  for (const auto& [name, volt] : {std::pair("v1", 1.0), std::pair("v2", 2.0)}) {
    SystemBuilder::PartOptions options;
    options.inputs["effort"] = Signal::constant(volt);
    builder.add(name, part("effort_source", {{"domain", std::string("electrical")}}), options);
  }
  builder.add("c", part("capacitor", {{"capacitance_F", 1.0}}));
  builder.join(joint::CommonEffort{}, {"v1.port", "v2.port", "c.terminals"});
  const System system = builder.build();
  try {
    const Stepper stepper(system, options_of(0.01));
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_TRUE(contains(error.what(), "No states are consistent")) << error.what();
  }
}

TEST(Impulses, OfPortsWithoutADomainTheyAreUnknown) {
  const System system = bodies(2.0, 0.0, Domain::generic);
  Stepper stepper(system, options_of(0.01));
  stepper.step(4);
  EXPECT_EQ(stepper.impulses().count, 0);
  EXPECT_EQ(stepper.starts_at_odds().count, 1);
}

TEST(Impulses, ASnapshotBeforeAnImpulseRepeatsIt) {
  // The jump is late in step 5: joints are looked at once more before step 6, where another snapshot is.
  const System system = driven(Signal::expression("if(t < 0.0532, 0, 5 + 100*(t - 0.05))"));
  Stepper stepper(system, options_of(0.01)), other(system, options_of(0.01));
  const auto run_on = [](Stepper& own) {
    std::vector<double> out;
    while (own.step_index() < 12) {
      const StepReport report = own.step();
      out = {own.state("j")[1], report.energy.impact_J, own.energy().impact_J,
             own.energy().supplied_J};
    }
    out.push_back(static_cast<double>(own.impulses().count));
    out.push_back(own.impulses().first.at(0).energies.impact_J);
    return out;
  };
  stepper.step(5);
  const Snapshot before = stepper.snapshot();
  stepper.step();
  const Snapshot after = Snapshot::from_bytes(stepper.snapshot().to_bytes());
  const std::vector<double> expected = run_on(stepper);
  stepper.restore(before);
  EXPECT_EQ(stepper.impulses().count, 0);
  EXPECT_EQ(run_on(stepper), expected);
  other.restore(after);
  EXPECT_EQ(run_on(other), expected);
  // States that were set, and not stepped since, are known in a snapshot, too.
  Stepper set(bodies(2.0, 6.0), options_of(0.01)), fresh(bodies(2.0, 6.0), options_of(0.01));
  set.step();
  set.set_states(std::vector<double>{4.0, 0.0});
  fresh.restore(set.snapshot());
  fresh.step();
  EXPECT_EQ(fresh.impulses().count, 1);
}

TEST(Impulses, TheTankStaysAndTheGuardMayNotSpendWhatWasLost) {
  const System system = two_inertias(10.0, 2.0);
  StepperOptions options = options_of(0.01);
  WaveCoupling waves;
  waves.kind = WaveUpdate::douglas_rachford;
  waves.iterations = 2;
  waves.guard = true;
  options.method = waves;
  Stepper stepper(system, options);
  EXPECT_EQ(stepper.energy().tank_J, stepper.energy().initial_tank_J);
  for (int step = 0; step < 200; ++step) {
    stepper.step();
    const EnergyTotals e = stepper.energy();
    EXPECT_LE(e.final_J + e.tank_J,
              e.initial_J + e.initial_tank_J + e.supplied_J - e.impact_J + 1e-9);
  }
  EXPECT_NE(stepper.certificate().status, CertificateStatus::violated);
  EXPECT_LE(open_share(stepper), 1e-13);
}

TEST(Impulses, ReplicasJumpEachByItself) {
  const auto replica = [](int i) { return two_inertias(10.0, i == 1 ? 10.0 : 2.0); };
  Ensemble ensemble(4, replica, options_of(0.01));
  for (int i = 0; i < 5; ++i) ensemble.step();
  for (int i = 0; i < 4; ++i) {
    ASSERT_FALSE(ensemble.status(i).failed) << ensemble.status(i).error;
    const EnergyTotals e = ensemble.energy(i);
    EXPECT_NEAR(e.impact_J, i == 1 ? 0.0 : 24.0, 1e-12);
    EXPECT_NEAR(e.final_J, i == 1 ? 200.0 : 32.0, 1e-7);
    const System alone = replica(i);
    Stepper stepper(alone, options_of(0.01));
    stepper.step(5);
    EXPECT_NEAR(e.final_J, stepper.energy().final_J, 1e-10);
  }
}

TEST(Impulses, AreTheSameOnSeveralRanks) {
  const System system = [] {
    SystemBuilder builder;
    for (int i = 0; i < 6; ++i) {
      const std::string n = std::to_string(i);
      SystemBuilder::PartOptions options;
      options.inputs["flow"] =
          i % 2 == 0 ? Signal::expression("if(t < 0.0532, 1, 3 + t)") : Signal::settable(1.0);
      builder.add("q" + n, part("flow_source", {{"domain", std::string("rotation")}}), options);
      builder.add("j" + n, part("inertia", {{"inertia_kgm2", 1.0 + i}}),
                  {.initial_state = {0.0, i == 0 ? 0.0 : 1.0}});
      builder.add("k" + n, part("inertia", {{"inertia_kgm2", 1.0 + i}}),
                  {.initial_state = {0.0, 1.0}});
      builder.join(joint::CommonFlow{},
                   {"q" + n + ".port", "j" + n + ".shaft", "k" + n + ".shaft"});
    }
    return builder.build();
  }();
  StepperOptions options = options_of(0.01);
  options.executor = ExecutorKind::serial;
  options.grain = Grain::of_parts(2);
  const auto run = [](Stepper& stepper) {
    std::vector<double> out;
    for (int step = 0; step < 12; ++step) {
      if (step == 8) stepper.set_input(stepper.find_input("q3.flow"), 7.0);
      const StepReport report = stepper.step();
      for (const char* name : {"j0", "k0", "j3", "k4"}) out.push_back(stepper.state(name)[1]);
      out.insert(out.end(),
                 {report.energy.stored_J, report.energy.impact_J, report.energy.supplied_J,
                  stepper.storage(1), stepper.waves()->energies_of(10).impact_J});
    }
    out.push_back(static_cast<double>(stepper.impulses().count));
    out.push_back(stepper.energy().impact_J);
    return out;
  };
  Stepper alone(system, options);
  const std::vector<double> expected = run(alone);
  EXPECT_EQ(alone.impulses().count, 1 + 3 + 1);
  for (const int ranks : {2, 3}) {
    std::vector<double> found;
    testing::ThreadRanks::run(ranks, [&](const std::shared_ptr<Ranks>& own) {
      StepperOptions shared = options;
      shared.ranks = own;
      Stepper stepper(system, shared);
      if (own->rank() != 0) return RankedStepper(stepper).follow();
      found = run(stepper);
    });
    EXPECT_EQ(found, expected) << ranks << " ranks";
  }
}

TEST(Impulses, EventsCountFromTheStatesAfterThoseOfTheStart) {
  StepperOptions options = options_of(0.01);
  Watch watch;
  watch.name = "fast";
  watch.of = {Sensor::Kind::state, 0, 1};
  watch.level = 5.0;
  options.watches = {watch};
  const System system = two_inertias(10.0, 2.0);
  Stepper stepper(system, options);
  stepper.step(3);
  EXPECT_EQ(stepper.event_counts()[0].all(), 0);
  const System jumps = driven(Signal::expression("if(t < 0.05, 0, 10)"));
  options.watches[0].of.part = 1;
  Stepper later(jumps, options);
  later.step(10);
  EXPECT_EQ(later.event_counts()[0].all(), 1);
}

}  // namespace
}  // namespace portwave::test_impulses
