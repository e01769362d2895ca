#include <cmath>

#include <gtest/gtest.h>

#include "portwave/coupling/reference/monolithic.hpp"
#include "portwave/coupling/system/system.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"

// Systems of catalogue parts against exact solutions: signs, causalities and joints fit together.
namespace portwave::test_catalogue_joints {
namespace {

using PartOptions = SystemBuilder::PartOptions;

std::unique_ptr<Component> mass_of(double mass_kg, int ports = 1) {
  return make_part("mass", {{"mass_kg", mass_kg}, {"ports", ports}});
}

PartOptions driven(const std::string& input, double value) {
  PartOptions options;
  options.inputs.emplace(input, Signal::constant(value));
  return options;
}

PartOptions from(std::vector<double> initial_state) {
  PartOptions options;
  options.initial_state = std::move(initial_state);
  return options;
}

double state_after(const System& system, double step_s, int steps, const std::string& part,
                   std::size_t state) {
  MonolithicReference reference(system, step_s);
  for (int n = 0; n < steps; ++n) reference.step();
  return reference.state(system.find_part(part))[state];
}

/// Two masses that drift with 0.3 m/s around `offset_m`, on a spring that is drawn out by 0.2 m.
System mass_spring_mass(double unit, double offset_m) {
  SystemBuilder builder;
  builder.add("left", mass_of(2.0 * unit), from({offset_m, 0.3}));
  builder.add("spring", make_part("spring", {{"stiffness_N_per_m", 30.0 * unit}}), from({0.2}));
  builder.add("right", mass_of(3.0 * unit), from({offset_m + 0.2, 0.3}));
  builder.connect("left.port", "spring.left").connect("spring.right", "right.port");
  return builder.build();
}

TEST(MassSpringMass, DriftsAndOscillatesExactlySoWithSecondOrder) {
  const double omega = std::sqrt(30.0 * (1.0 / 2.0 + 1.0 / 3.0)), end_s = 1.0;
  const double stretch = 0.2 * std::cos(omega * end_s);
  for (const double unit : {1e-9, 1.0, 1e9}) {
    for (const double offset : {0.0, 1e3}) {
      const System system = mass_spring_mass(unit, offset);
      std::vector<double> errors;
      for (const int steps : {50, 100}) {
        const double h = end_s / steps;
        const double left = state_after(system, h, steps, "left", 0);
        const double right = state_after(system, h, steps, "right", 0);
        EXPECT_NEAR((2.0 * left + 3.0 * right) / 5.0, offset + 0.12 + 0.3 * end_s,
                    1e-11 * (1.0 + offset))
            << "the centre of mass drifts";
        EXPECT_NEAR(right - left, state_after(system, h, steps, "spring", 0),
                    1e-11 * (1.0 + offset));
        errors.push_back(right - left - stretch);
      }
      EXPECT_NEAR(std::log2(errors[0] / errors[1]), 2.0, 0.05) << unit << " " << offset;
      EXPECT_LE(std::abs(errors[1]), 1e-3);
      EXPECT_GT(std::abs(errors[0]), 1e-6) << "control: fifty steps are not exact";
    }
  }
}

TEST(MassSpringMassControl, MirroredJointsAreNoticed) {
  SystemBuilder builder;  // common_flow to a mass mirrors the end of the spring
  builder.add("left", mass_of(2.0), from({0.0, 0.3}));
  builder.add("spring", make_part("spring", {{"stiffness_N_per_m", 30.0}}), from({0.2}));
  builder.add("right", mass_of(3.0), from({0.2, 0.3}));
  builder.connect("left.port", "spring.left");
  builder.join(joint::CommonFlow{}, {"spring.right", "right.port"});
  const System system = builder.build();
  const double left = state_after(system, 0.01, 100, "left", 0);
  const double right = state_after(system, 0.01, 100, "right", 0);
  EXPECT_GT(std::abs((2.0 * left + 3.0 * right) / 5.0 - 0.42), 1e-2);
}

// Three masses in a row, the one in the middle with two ports: modes 0, √(k/m) and √(3k/m).
TEST(MassSpringMass, MassesInTheMiddleHaveTwoPorts) {
  const double k = 30.0, m = 2.0, omega = std::sqrt(3.0 * k / m);
  SystemBuilder builder;
  builder.add("a", mass_of(m), from({0.1, 0.0}));
  builder.add("ab", make_part("spring", {{"stiffness_N_per_m", k}}), from({-0.3}));
  builder.add("b", mass_of(m, 2), from({-0.2, 0.0}));
  builder.add("bc", make_part("spring", {{"stiffness_N_per_m", k}}), from({0.3}));
  builder.add("c", mass_of(m), from({0.1, 0.0}));
  builder.connect("a.port", "ab.left").connect("ab.right", "b.port_1");
  builder.connect("b.port_2", "bc.left").connect("bc.right", "c.port");
  const System system = builder.build();
  EXPECT_NEAR(state_after(system, 1e-3, 1000, "b", 0), -0.2 * std::cos(omega), 1e-4);
  EXPECT_NEAR(state_after(system, 1e-3, 1000, "c", 0), 0.1 * std::cos(omega), 1e-4);
}

/// The state of one part joined to a source of 3 of everything, after 1 s from rest.
double driven_state(const std::string& source, Domain domain, Joint joint, const std::string& type,
                    const Parameters& parameters, std::size_t state) {
  const bool effort = source == "effort_source";
  SystemBuilder builder;
  builder.add("source", make_part(source, {{"domain", std::string(to_string(domain))}}),
              driven(effort ? "effort" : "flow", 3.0));
  builder.add("part", make_part(type, parameters));
  std::vector<std::string> ports = {"source.port"};
  const std::unique_ptr<Component> part = make_part(type, parameters);
  for (const Port& port : part->signature().ports) {
    if (ports.size() == 1) {
      ports.push_back("part." + port.name);
    } else {
      builder.join(joint::Fixed{}, {"part." + port.name});
    }
  }
  builder.join(std::move(joint), ports);
  const System system = builder.build();
  return state_after(system, 0.01, 100, "part", state);
}

TEST(Sources, DriveInThePositiveDirection) {
  const std::string effort = "effort_source", flow = "flow_source";
  const joint::Connection connection;
  const joint::CommonFlow common_flow;
  const Parameters mass = {{"mass_kg", 2.0}}, inertia = {{"inertia_kgm2", 2.0}};
  const Parameters spring = {{"stiffness_N_per_m", 5.0}};
  EXPECT_NEAR(driven_state(effort, Domain::translation, connection, "mass", mass, 1), 1.5, 1e-12);
  EXPECT_NEAR(driven_state(effort, Domain::rotation, connection, "inertia", inertia, 1), 1.5,
              1e-12);
  EXPECT_NEAR(
      driven_state(effort, Domain::electrical, connection, "inductor", {{"inductance_H", 2.0}}, 0),
      1.5, 1e-12);
  EXPECT_NEAR(driven_state(flow, Domain::translation, common_flow, "mass", mass, 0), 3.0, 0.02);
  // The left end moves by 3 m in the positive direction: the spring is pressed.
  EXPECT_NEAR(driven_state(flow, Domain::translation, connection, "spring", spring, 0), -3.0,
              1e-12);
  EXPECT_NEAR(
      driven_state(flow, Domain::electrical, connection, "capacitor", {{"capacitance_F", 2.0}}, 0),
      1.5, 1e-12);
  EXPECT_NEAR(driven_state(flow, Domain::hydraulic, connection, "tank", {{"area_m2", 2.0}}, 0), 1.5,
              1e-12);
  EXPECT_NEAR(driven_state(effort, Domain::translation, common_flow, "mass", mass, 1), -1.5, 1e-12)
      << "control: the joint that mirrors";
}

// A force of 3 N by the source pulls the end of a spring and damper towards 3 N / k.
TEST(Sources, PullTheEndOfASpring) {
  SystemBuilder builder;
  builder.add("source", make_part("effort_source", {{"domain", std::string("translation")}}),
              driven("effort", 3.0));
  builder.add("part",
              make_part("spring_damper", {{"stiffness_N_per_m", 5.0}, {"damping_Ns_per_m", 0.5}}));
  builder.join(joint::CommonFlow{}, {"source.port", "part.right"});
  builder.join(joint::Fixed{}, {"part.left"});
  const System system = builder.build();
  EXPECT_NEAR(state_after(system, 0.01, 1000, "part", 0), 0.6, 1e-12);
}

// 12 V on a motor that turns a drum by a gear and a flexible joint: the speed at rest is that of
// 12 V = R i + k ω, k i = b_drum ω/n².
TEST(DriveTrain, OfMotorGearAndDrumComesUpToItsSpeed) {
  const double R = 1.5, k = 0.25, n = 4.0, b = 0.8;
  SystemBuilder builder;
  builder.add("supply", make_part("effort_source", {{"domain", std::string("electrical")}}),
              driven("effort", 12.0));
  builder.add("motor", make_part("dc_motor", {{"inductance_H", 0.02},
                                              {"resistance_ohm", R},
                                              {"motor_constant_Vs_per_rad", k},
                                              {"inertia_kgm2", 0.01}}));
  builder.add("gear", make_part("gear", {{"ratio", n}}));
  builder.add("shaft", make_part("torsional_spring_damper",
                                 {{"stiffness_Nm_per_rad", 50.0}, {"damping_Nms_per_rad", 1.0}}));
  builder.add("drum", make_part("inertia", {{"inertia_kgm2", 0.05}, {"damping_Nms_per_rad", b}}));
  builder.connect("supply.port", "motor.terminals").connect("motor.shaft", "gear.input");
  builder.connect("gear.output", "shaft.left").connect("shaft.right", "drum.shaft");
  const System system = builder.build();
  const double speed = 12.0 / (R * b / (n * n * k) + k);
  EXPECT_NEAR(state_after(system, 0.01, 1000, "motor", 2), speed, 1e-9);
  EXPECT_NEAR(state_after(system, 0.01, 1000, "drum", 1), speed / n, 1e-9);
  EXPECT_NEAR(state_after(system, 0.01, 1000, "shaft", 0), -b * speed / n / 50.0, 1e-9)
      << "the drum lags behind";
}

// A tank that empties through a pipe into another: levels meet at the mean weighted by areas.
TEST(TanksAndPipe, LevelsMeet) {
  SystemBuilder builder;
  builder.add("high", make_part("tank", {{"area_m2", 2.0}}), from({1.0}));
  builder.add("pipe", make_part("fluid_line", {{"cells", 4},
                                               {"inertance_kg_per_m4", 1e3},
                                               {"capacitance_m3_per_Pa", 1e-6},
                                               {"friction_Pas_per_m3", 2e4}}));
  builder.add("low", make_part("tank", {{"area_m2", 1.0}}), from({0.1}));
  builder.connect("high.outlet", "pipe.left").connect("pipe.right", "low.outlet");
  const System system = builder.build();
  // What the pipe holds under the pressure is missing in the tanks.
  const double level = (2.0 * 1.0 + 1.0 * 0.1) / (2.0 + 1.0 + 1e-6 * 1000.0 * 9.80665);
  EXPECT_NEAR(state_after(system, 0.02, 1000, "high", 0), level, 1e-6);
  EXPECT_NEAR(state_after(system, 0.02, 1000, "low", 0), level, 1e-6);
  EXPECT_GT(state_after(system, 0.02, 50, "high", 0), level + 1e-2) << "control: it takes time";
}

// Ideal transformer 10:1 between 230 V and a resistor: 23 V and a hundredth of the load at 230 V.
TEST(ElectricalTransformer, TurnsVoltageDownAndCurrentUp) {
  SystemBuilder builder;
  builder.add("mains", make_part("effort_source", {{"domain", std::string("electrical")}}),
              driven("effort", 230.0));
  builder.add("transformer", make_part("electrical_transformer", {{"ratio", 10.0}}));
  builder.add("lamp",
              make_part("resistor", {{"resistance_ohm", 4.6}, {"gives", std::string("current")}}));
  builder.connect("mains.port", "transformer.primary");
  builder.connect("transformer.secondary", "lamp.terminals");
  const System system = builder.build();
  MonolithicReference reference(system, 0.01);
  reference.step();
  const int lamp = system.first_scalar_port(system.find_part("lamp"));
  EXPECT_NEAR(reference.effort()[static_cast<std::size_t>(lamp)], 23.0, 1e-12);
  EXPECT_NEAR(reference.flow()[static_cast<std::size_t>(lamp)], 5.0, 1e-12);
  const int mains = system.first_scalar_port(system.find_part("mains"));
  EXPECT_NEAR(reference.flow()[static_cast<std::size_t>(mains)], -0.5, 1e-12);
}

// A rack of mass m on a pinion of radius r weighs m r² on its shaft; the rack moves by r φ.
TEST(RackAndPinion, MovesAMassByAShaft) {
  SystemBuilder builder;
  builder.add("shaft", make_part("inertia", {{"inertia_kgm2", 0.02}}), driven("torque", 0.5));
  builder.add("pinion", make_part("rack_and_pinion", {{"radius_m", 0.1}}));
  builder.add("table", mass_of(3.0));
  builder.connect("shaft.shaft", "pinion.pinion");
  builder.join(joint::CommonFlow{}, {"pinion.rack", "table.port"});
  const System system = builder.build();
  const double speed = 0.5 / (0.02 + 3.0 * 0.01);
  EXPECT_NEAR(state_after(system, 0.01, 100, "shaft", 1), speed, 1e-10);
  EXPECT_NEAR(state_after(system, 0.01, 100, "table", 1), 0.1 * speed, 1e-10);
  EXPECT_NEAR(state_after(system, 0.01, 100, "table", 0), 0.1 * 0.5 * speed, 1e-10);
}

}  // namespace
}  // namespace portwave::test_catalogue_joints
