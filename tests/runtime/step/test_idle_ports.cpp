// Ports that lead nowhere: a system without them is stepped as if their joints were solved by waves, and cheaper.

#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/coupling/system/derived_systems.hpp>
#include <portwave/runtime/ensemble/ensemble.hpp>
#include <portwave/runtime/output/recorder.hpp>
#include <portwave/runtime/ranks/ranked_stepper.hpp>
#include <portwave/runtime/step/stepper.hpp>
#include <portwave/subsystems/catalogue/catalogue.hpp>
#include <portwave/subsystems/nonlinear/nonlinear_part.hpp>
#include <portwave/subsystems/stages/staged_part.hpp>

#include "portwave/subsystems/base/index.hpp"
#include "support/systems/counting_part.hpp"
#include "support/thread_ranks.hpp"

namespace portwave::test_idle_ports {
namespace {

using testing::ThreadRanks;

bool takes_effort(const Port& port) { return port.causality == Causality::effort_in; }

/// Adds the part "p" of a type, set in motion and driven.
void add_moving(SystemBuilder& builder, const std::shared_ptr<const Component>& part) {
  SystemBuilder::PartOptions options;
  options.initial_state = part->default_state();
  const std::vector<double> size = part->typical_state();
  for (std::size_t i = 0; i < size.size(); ++i) {
    options.initial_state[i] += 0.1 * size[i] * std::cos(1.0 + 2.0 * static_cast<double>(i));
  }
  if (!part->check_initial_state(options.initial_state.data()).empty()) {
    options.initial_state = part->default_state();
  }
  int number = 0;
  for (const ExternalInput& input : part->signature().inputs) {
    options.inputs[input.name] = Signal::sine_product(0.2, {{1.0 + number++, 0.3}});
  }
  builder.add("p", part, std::move(options));
}

/// The part with its ports idle from number `first_idle` on, and resistances at the others.
System idle_system(const std::shared_ptr<const Component>& part, std::size_t first_idle) {
  SystemBuilder builder;
  add_moving(builder, part);
  const std::vector<Port>& ports = part->signature().ports;
  for (std::size_t k = 0; k < ports.size(); ++k) {
    const std::vector<std::string> port = {"p." + ports[k].name};
    if (k < first_idle) {
      builder.join(joint::Resistive{3.0}, port);
    } else if (takes_effort(ports[k])) {
      builder.join(joint::Free{}, port);
    } else {
      builder.join(joint::Fixed{}, port);
    }
  }
  return builder.build();
}

/// The same, idle ports being solved by waves: one kernel joins all of them to a body at rest.
System same_by_waves(const std::shared_ptr<const Component>& part, std::size_t first_idle) {
  SystemBuilder builder;
  add_moving(builder, part);
  const std::vector<Port>& ports = part->signature().ports;
  std::vector<std::string> joined;
  std::vector<bool> of_efforts;
  for (std::size_t k = 0; k < ports.size(); ++k) {
    if (k < first_idle) {
      builder.join(joint::Resistive{3.0}, {"p." + ports[k].name});
      continue;
    }
    joined.push_back("p." + ports[k].name);
    of_efforts.insert(of_efforts.end(), at(ports[k].dimension), takes_effort(ports[k]));
  }
  builder.add("rest", make_part("mass", {{"mass_kg", 1.0}}));
  joined.emplace_back("rest.port");
  of_efforts.push_back(true);
  const auto size = static_cast<Eigen::Index>(of_efforts.size());
  joint::Kernel kernel{Eigen::MatrixXd::Zero(size, size), Eigen::MatrixXd::Zero(size, size)};
  for (Eigen::Index j = 0; j < size; ++j) {
    (of_efforts[static_cast<std::size_t>(j)] ? kernel.E : kernel.F)(j, j) = 1.0;
  }
  builder.join(kernel, std::move(joined));
  return builder.build();
}

bool is_eliminated(const System& system, int stages = 1) {
  return live_system(system, stages).system.scalar_ports().size() < system.scalar_ports().size();
}

StepperOptions exact_options(double step_s = 1e-3, int stages = 1) {
  StepperOptions options;
  options.step_s = step_s;
  options.method.waves().stages = stages;
  options.start = Start::as_given;
  options.method.waves().tolerance = 1e-14;
  return options;
}

/// Types that bring solvers of their own: their idle ports keep their waves.
const std::set<std::string, std::less<>> kOwnSolver = {"duffing_oscillator",
                                                       "duffing_node",
                                                       "coulomb_damper",
                                                       "rotational_coulomb_damper",
                                                       "ground_contact",
                                                       "diode",
                                                       "ideal_diode",
                                                       "ideal_switch",
                                                       "valve",
                                                       "check_valve",
                                                       "port_hamiltonian"};

struct Place {
  std::string type;
  std::size_t first_idle;
};

std::vector<Place> places() {
  std::vector<Place> out;
  for (const PartType& type : catalogue()) {
    const auto part = make_part(type.name, type.example);
    const std::size_t ports = part->signature().ports.size();
    for (std::size_t first = 0; first < ports; ++first) out.push_back({type.name, first});
  }
  return out;
}

void expect_near(double own, double other, double scale, const std::string& what) {
  EXPECT_NEAR(own, other, 3e-9 * (scale + std::abs(other))) << what;
}

class IdlePorts : public ::testing::TestWithParam<Place> {};

void expect_same_as_by_waves(const Place& place, int stages) {
  const std::shared_ptr<const Component> part =
      make_part(place.type, find_part_type(place.type)->example);
  if (stages > 1 && !staging_defect(*part).empty()) return;
  const System idle = idle_system(part, place.first_idle);
  const bool has_waves = kOwnSolver.contains(place.type) ||
                         (stages > 1 && part->port_hamiltonian()->linear_form().E != nullptr);
  EXPECT_EQ(is_eliminated(idle, stages), !has_waves);
  const System waves = same_by_waves(part, place.first_idle);
  EXPECT_FALSE(is_eliminated(waves, stages));
  Stepper own(idle, exact_options(1e-3, stages)), other(waves, exact_options(1e-3, stages));
  own.step(40);
  other.step(40);

  const std::vector<double> size = part->typical_state();
  for (std::size_t i = 0; i < size.size(); ++i) {
    expect_near(own.state(0)[i], other.state(0)[i], size[i], part->signature().states[i].name);
  }
  const double energy_J = std::abs(own.storage(0)) + std::abs(own.energy().supplied_J) + 1e-12;
  expect_near(own.storage(0), other.storage(0), energy_J, "storage");
  const PartEnergies a = own.waves()->energies_of(0), b = other.waves()->energies_of(0);
  expect_near(a.supplied_J, b.supplied_J, energy_J, "supplied");
  expect_near(a.dissipated_J, b.dissipated_J, energy_J, "dissipated");
  expect_near(own.energy().mismatch_J, 0.0, energy_J, "mismatch");
  EXPECT_EQ(own.certificate().status, CertificateStatus::holds);

  double largest = 1e-9;  // of efforts and flows: what is next to nothing beside others is rounding
  const int ports = part->signature().wave_size();
  for (int j = 0; j < ports; ++j) {
    // Waves round an effort as they round γ times the flow.
    largest = std::max({largest, std::abs(other.effort(j)), std::abs(other.flow(j)),
                        std::abs(other.waves()->impedance(j) * other.flow(j))});
  }
  largest *= stages;  // rounding of as many solutions
  for (int j = 0; j < ports; ++j) {
    expect_near(own.effort(j), other.effort(j), largest, "effort of " + idle.port_label(j));
    expect_near(own.flow(j), other.flow(j), largest, "flow of " + idle.port_label(j));
    const ScalarPort port = idle.scalar_ports()[at(j)];
    if (at(port.port) < place.first_idle || has_waves) continue;
    const bool effort = takes_effort(part->signature().ports[at(port.port)]);
    EXPECT_EQ(effort ? own.effort(j) : own.flow(j), 0.0) << idle.port_label(j);
    // Waves that somebody reads there fit effort and flow.
    EffortFlow read{0.0, 0.0};
    for (int i = 0; i < stages; ++i) {
      const EffortFlow at_stage = WaveTransform(own.waves()->impedance(j, i), 1e-3)
                                      .to_effort_flow(own.waves()->waves_at(j, i));
      const double weight = std::sqrt(gauss_stages(stages).b[at(i)]);
      read.effort += weight * at_stage.effort;
      read.flow += weight * at_stage.flow;
    }
    expect_near(read.effort, own.effort(j), largest, "effort by waves");
    expect_near(read.flow, own.flow(j), largest, "flow by waves");
  }
}

TEST_P(IdlePorts, StepAsIfTheirJointsWereSolvedByWaves) {
  for (int stages = 1; stages <= kMostStages; ++stages) {
    SCOPED_TRACE(stages);
    expect_same_as_by_waves(GetParam(), stages);
  }
}

INSTANTIATE_TEST_SUITE_P(OfEveryType, IdlePorts, ::testing::ValuesIn(places()),
                         [](const ::testing::TestParamInfo<Place>& test) {
                           return test.param.type + "_from_" +
                                  std::to_string(test.param.first_idle);
                         });

/// Half of its ports are idle: at two stages there are as many live ones as the system has ports.
System half_idle_system() {
  SystemBuilder builder;
  for (const auto& [name, mass_kg] : {std::pair("A", 2.0), {"B", 0.5}}) {
    const std::shared_ptr<const Component> part =
        make_part("mass_spring_damper_chain",
                  {{"masses", 1}, {"mass_kg", mass_kg}, {"stiffness_N_per_m", 3.0}});
    SystemBuilder::PartOptions options;
    options.initial_state.assign(part->signature().states.size(), 0.3);
    builder.add(name, part, std::move(options));
  }
  builder.join(joint::Connection{}, {"A.right", "B.left"});
  builder.join(joint::Free{}, {"A.left"});
  builder.join(joint::Fixed{}, {"B.right"});
  return builder.build();
}

TEST(IdlePorts, AMethodWithImpedancesAtStagesIsTakenByAnotherStepper) {
  const System system = half_idle_system();
  StepperOptions options = exact_options(1e-3, 2);
  options.method.waves().tolerance = 0.0;
  options.method.waves().iterations = 3;
  options.method.waves().impedance_kind = ImpedanceKind::matched;
  options.method.waves().kind = WaveUpdate::douglas_rachford;
  Stepper first(system, options);
  const std::vector<double>& impedance = first.method().method.waves().impedance;
  ASSERT_EQ(impedance.size(), system.scalar_ports().size());
  EXPECT_NE(impedance[0], impedance[2]);
  options.method = first.method().method;
  options.method.waves().impedance_kind = ImpedanceKind::given;
  Stepper other(system, options);
  EXPECT_EQ(other.method().method.waves().impedance, impedance);
  first.step(3);
  other.step(3);
  for (const int part : {0, 1}) EXPECT_EQ(first.state(part)[1], other.state(part)[1]);

  options.method.waves().impedance = {1.0, 2.0, 3.0, 4.0};
  EXPECT_EQ(Stepper(system, options).method().method.waves().impedance,
            options.method.waves().impedance);
  // Without the mark the same numbers are one impedance for each port of the system, at both stages.
  options.method.waves().by_stepped_port = false;
  EXPECT_EQ(Stepper(system, options).method().method.waves().impedance,
            (std::vector{2.0, 2.0, 3.0, 3.0}));
}

/// A pendulum by callbacks that are counted, with or without a shaft.
struct Counted {
  std::shared_ptr<int> gradients = std::make_shared<int>(0);

  std::shared_ptr<const Subsystem> pendulum(bool has_shaft) const {
    Signature signature;
    signature.type = "pendulum";
    signature.states = {{"angle", "rad"}, {"momentum", ""}};
    if (has_shaft) signature.ports = {{"shaft", Causality::effort_in, Domain::rotation, 1}};
    Structure s = Structure::zero(2, has_shaft ? 1 : 0);
    s.J.insert(0, 1) = 1.0;
    s.J.insert(1, 0) = -1.0;
    if (has_shaft) s.G.insert(1, 0) = -1.0;
    return std::make_shared<testing::CountingPart>(std::make_shared<NonlinearPortHamiltonian>(
        signature, s,
        Hamiltonian{[](const double* x) { return 0.5 * x[1] * x[1] - std::cos(x[0]); },
                    [count = gradients](const double* x, double* g) {
                      ++*count;
                      g[0] = std::sin(x[0]);
                      g[1] = x[1];
                    },
                    {}},
        NonlinearPortHamiltonian::Options{.typical_state = {1.0, 1.0}}));
  }
};

/// The evaluations of ∇H in 20 steps, and where they led.
std::pair<int, std::vector<double>> counted_run(bool has_shaft, bool by_waves = false) {
  const Counted counted;
  SystemBuilder builder;
  builder.add("p", counted.pendulum(has_shaft), {.initial_state = {1.0, 0.0}});
  if (by_waves) {
    builder.join(joint::Resistive{0.0}, {"p.shaft"});
  } else if (has_shaft) {
    builder.join(joint::Free{}, {"p.shaft"});
  }
  StepperOptions options = exact_options(0.01);
  options.certify = Certify::none;
  options.method.waves().guard = false;
  Stepper stepper(builder.build(), options);
  stepper.step(30);  // beyond the first steps, which are examined
  const int before = *counted.gradients;
  stepper.step(20);
  const auto state = stepper.state(0);
  return {*counted.gradients - before, {state.begin(), state.end()}};
}

TEST(LonePart, IsSolvedOncePerStep) {
  const auto [with, there] = counted_run(true);
  const auto [without, here] = counted_run(false);
  EXPECT_EQ(with, without);
  EXPECT_EQ(there, here);  // bit by bit
  EXPECT_GT(counted_run(true, true).first, 2 * with) << "a control: by waves it costs more";
}

/// Parts of several kinds with idle ports, two of them coupled.
System mixed(double angle = 0.7) {
  SystemBuilder builder;
  builder.add("pendulum", make_part("pendulum", {{"mass_kg", 1.0}, {"length_m", 1.0}}),
              {.initial_state = {angle, 0.1}, .inputs = {{"torque", Signal::settable(0.1)}}});
  builder.add("mass", make_part("mass", {{"mass_kg", 2.0}, {"ports", 3}}),
              {.initial_state = {0.0, 0.3}});
  builder.add("spring", make_part("spring", {{"stiffness_N_per_m", 40.0}}),
              {.initial_state = {0.1}});
  builder.connect("mass.port_2", "spring.left");
  builder.join(joint::Free{}, {"mass.port_1"}).join(joint::Free{}, {"mass.port_3"});
  builder.join(joint::Fixed{}, {"spring.right"}).join(joint::Free{}, {"pendulum.shaft"});
  return builder.build();
}

const std::vector<std::string> kReadings = {
    "pendulum.shaft.flow", "pendulum.shaft.effort", "pendulum.angle",      "mass.port_1.flow",
    "mass.port_3.flow",    "mass.port_2.flow",      "spring.right.effort", "spring.right.flow",
    "spring.storage",      "spring.right.incident", "mass.port_3.outgoing"};

std::vector<double> readings(const Stepper& stepper) {
  std::vector<double> out;
  for (const std::string& name : kReadings) {
    out.push_back(observe(stepper, find_quantity(stepper, name)));
  }
  return out;
}

TEST(IdlePortReadings, AreThoseOfTheStep) {
  const System system = mixed();
  Stepper stepper(system, exact_options(0.01));
  EXPECT_NEAR(stepper.flow(system.find_port("mass.port_1").second +
                           system.first_scalar_port(system.find_part("mass"))),
              -0.3, 1e-14);  // at the start
  const double before = stepper.state("mass")[1];
  stepper.step();
  const std::vector<double> values = readings(stepper);
  const double mean = -0.5 * (before + stepper.state("mass")[1]);
  for (const std::size_t i : {3, 4, 5}) EXPECT_NEAR(values[i], mean, 1e-14) << kReadings[i];
  EXPECT_EQ(values[1], 0.0);
  EXPECT_EQ(values[7], 0.0);
  EXPECT_THROW(find_quantity(stepper, "pendulum.shft.flow"), std::out_of_range);
}

TEST(IdlePortReadings, AreKeptInSnapshots) {
  const System system = mixed();
  Stepper stepper(system, exact_options(0.01));
  stepper.step(7);
  const Snapshot snapshot = stepper.snapshot();
  const std::vector<double> there = readings(stepper);
  stepper.step(5);
  const std::vector<double> later = readings(stepper);
  EXPECT_NE(there, later);
  stepper.restore(snapshot);
  EXPECT_EQ(readings(stepper), there);
  stepper.step(5);
  EXPECT_EQ(readings(stepper), later);
  EXPECT_EQ(readings(stepper.clone()), later);
}

TEST(IdlePortReadings, DoNotDependOnRanksExecutorsAndThreads) {
  const System system = mixed();
  StepperOptions options = exact_options(0.01);
  options.grain = Grain::of_parts(1);
  options.executor = ExecutorKind::serial;
  Stepper alone(system, options);
  alone.step(9);
  for (const ExecutorKind executor : {ExecutorKind::async, ExecutorKind::graph}) {
    StepperOptions others = options;
    others.executor = executor;
    others.threads = 2;
    Stepper stepper(system, others);
    stepper.step(9);
    EXPECT_EQ(readings(stepper), readings(alone));
  }
  for (const int ranks : {2, 3}) {
    ThreadRanks::run(ranks, [&](const std::shared_ptr<Ranks>& own) {
      StepperOptions shared = options;
      shared.ranks = own;
      Stepper stepper(system, shared);
      if (own->rank() != 0) return RankedStepper(stepper).follow();
      stepper.step(9);
      EXPECT_EQ(readings(stepper), readings(alone)) << ranks << " ranks";
    });
  }
}

TEST(IdlePortReadings, FollowStatesThatAreSet) {
  const System system = mixed();
  Stepper stepper(system, exact_options(0.01));
  stepper.step(3);
  std::vector<double> states;
  for (int part = 0; part < 3; ++part) {
    states.insert(states.end(), stepper.state(part).begin(), stepper.state(part).end());
  }
  stepper.set_states(states);
  EXPECT_EQ(readings(stepper)[0], 0.0);  // until the next step, as at every port
  EXPECT_EQ(readings(stepper)[5], 0.0);
  stepper.step();
  EXPECT_NE(readings(stepper)[0], 0.0);
}

TEST(IdlePortReadings, ArePassagesOfEvents) {
  const System system = mixed();
  StepperOptions options = exact_options(0.01);
  const std::pair<int, int> port = system.find_port("pendulum.shaft");
  options.watches = {{.name = "turns",
                      .of = {.kind = Sensor::Kind::flow,
                             .part = port.first,
                             .index = system.first_scalar_port(port.first, port.second)}}};
  Stepper stepper(system, options);
  stepper.step(500);
  EXPECT_GT(stepper.event_counts()[0].all(), 2);
}

TEST(IdlePortParts, CanBeExchanged) {
  const auto heavier = [](double mass_kg) {
    return std::shared_ptr<const Component>(
        make_part("mass", {{"mass_kg", mass_kg}, {"ports", 3}}));
  };
  const auto longer = std::shared_ptr<const Component>(
      make_part("pendulum", {{"mass_kg", 1.0}, {"length_m", 1.5}}));
  Stepper stepper(mixed(), exact_options(0.01));
  stepper.step(4);
  const Snapshot before = stepper.snapshot();
  stepper.set_component(0, longer);
  stepper.set_component(1, heavier(3.0));
  stepper.step(4);
  const std::vector<double> after = readings(stepper);

  SystemBuilder builder;
  const Stepper start = [&] {
    Stepper out(mixed(), exact_options(0.01));
    out.step(4);
    return out;
  }();
  const auto state = [&](const char* part) {
    return std::vector<double>(start.state(part).begin(), start.state(part).end());
  };
  builder.add("pendulum", longer,
              {.initial_state = state("pendulum"), .inputs = {{"torque", Signal::settable(0.1)}}});
  builder.add("mass", heavier(3.0), {.initial_state = state("mass")});
  builder.add("spring", make_part("spring", {{"stiffness_N_per_m", 40.0}}),
              {.initial_state = state("spring")});
  builder.connect("mass.port_2", "spring.left");
  builder.join(joint::Free{}, {"mass.port_1"}).join(joint::Free{}, {"mass.port_3"});
  builder.join(joint::Fixed{}, {"spring.right"}).join(joint::Free{}, {"pendulum.shaft"});
  Stepper other(builder.build(), exact_options(0.01));
  other.step(4);
  const std::vector<double> fresh = readings(other);
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    EXPECT_NEAR(after[i], fresh[i], 1e-11) << kReadings[i];
  }
  stepper.restore(before);
  Stepper control(mixed(), exact_options(0.01));
  control.step(6);
  stepper.step(2);
  EXPECT_EQ(readings(stepper), readings(control));
}

TEST(IdlePortParts, LieInEnsembles) {
  const auto lone = [](int i) {
    SystemBuilder builder;
    builder.add("p", make_part("pendulum", {{"mass_kg", 1.0 + i}, {"length_m", 1.0}}),
                {.initial_state = {0.3 + 0.1 * i, 0.0}});
    return builder.join(joint::Free{}, {"p.shaft"}).build();
  };
  StepperOptions options = exact_options(0.01);
  options.method.waves().retune_factor = 0.0;
  Ensemble ensemble(11, lone, options);
  EXPECT_TRUE(ensemble.in_lanes()) << ensemble.execution();
  ensemble.step(25);
  for (int i = 0; i < 11; ++i) {
    const System system = lone(i);
    Stepper stepper(system, ensemble.options_of(i));
    stepper.step(25);
    std::vector<double> state(2);
    ensemble.get_state(i, state);
    EXPECT_EQ(state, std::vector<double>(stepper.state(0).begin(), stepper.state(0).end())) << i;
  }
}

TEST(IdlePortParts, TakeStepsOfTheirOwnSize) {
  const System system = mixed();
  StepperOptions options = exact_options(0.02);
  options.method.waves().stages = 1;
  options.sizes = StepSizes{.tolerance = 1e-4};
  Stepper stepper(system, options);
  stepper.run_until(0.5);
  const int port = system.first_scalar_port(system.find_part("mass"));
  EXPECT_NEAR(stepper.port_at(port, stepper.time_s()).flow, stepper.flow(port), 1e-15);
  EXPECT_NEAR(stepper.flow(port), stepper.flow(port + 1), 1e-12);
}

TEST(ImpedancesOfIdlePorts, AreLeftOut) {
  const System system = mixed();
  StepperOptions options = exact_options(0.01);
  options.method = WaveCoupling{};
  WaveCoupling& method = options.method.waves();
  method.iterations = 40;
  method.impedance_kind = ImpedanceKind::given;
  method.impedance.assign(system.scalar_ports().size(), 2.0);
  Stepper given(system, options);
  given.step(3);
  given.waves()->set_impedance(method.impedance);
  given.step(3);
  options.method = given.method().method;  // one value for each port that has waves
  EXPECT_EQ(options.method.waves().impedance.size(), 2u);
  Stepper again(system, options);
  again.step(6);
  EXPECT_NEAR(readings(again)[5], readings(given)[5], 1e-12);
  options.method.waves().impedance.assign(3, 1.0);
  EXPECT_THROW(Stepper(system, options), ConfigError);
}

}  // namespace
}  // namespace portwave::test_idle_ports
