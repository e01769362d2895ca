// A run that goes back to a snapshot goes on as it did, bit by bit, whatever came between.

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"
#include "support/systems/example_scenarios.hpp"
#include "support/systems/networks.hpp"
#include "support/systems/opaque_parts.hpp"

namespace portwave::test_snapshot {
namespace {

using testing::example;

using Log = std::vector<double>;

void log_certificate(const Stepper& stepper, Log& log) {
  const Certificate& c = stepper.certificate();
  log.push_back(static_cast<double>(c.status));
  log.push_back(c.max_passivity_residual_J);
  log.push_back(static_cast<double>(c.worst_passivity_step));
  log.push_back(c.worst_passivity_part);
  log.push_back(static_cast<double>(c.missed.steps));
  for (const auto& margin : {c.max_augmented_residual_J, c.max_fejer_residual_J, c.min_fne_margin,
                             c.min_nonexpansiveness_margin}) {
    log.push_back(margin.value_or(-1.0));
  }
  const EnergyTotals& e = stepper.energy();
  for (const double joules : {e.initial_J, e.final_J, e.max_J, e.supplied_J, e.dissipated_J,
                              e.mismatch_J, e.tank_J, e.rounding_J, e.max_energy_ratio}) {
    log.push_back(joules);
  }
}

void log_statistics(const Stepper& stepper, Log& log) {
  const IterationStatistics& s = stepper.iterations();
  for (const std::int64_t count : {s.steps, s.windows, s.total, s.rejected_trials, s.linearisations,
                                   s.rescues, s.not_converged}) {
    log.push_back(static_cast<double>(count));
  }
  for (const std::int64_t count : s.histogram) log.push_back(static_cast<double>(count));
  if (const StepSizeStatistics* sizes = stepper.step_sizes()) {
    log.push_back(static_cast<double>(sizes->rejected));
    log.push_back(static_cast<double>(sizes->changes));
    log.push_back(sizes->smallest_s);
  }
  for (const EventCount& count : stepper.event_counts()) {
    log.push_back(static_cast<double>(count.all()));
    log.push_back(count.last_s);
  }
}

/// All that a user can see of the state between two steps.
void log_state(const Stepper& stepper, Log& log) {
  log.push_back(static_cast<double>(stepper.step_index()));
  log.push_back(stepper.time_s());
  const System& system = stepper.system();
  for (int part = 0; part < static_cast<int>(system.parts().size()); ++part) {
    for (const double x : stepper.state(part)) log.push_back(x);
    log.push_back(stepper.storage(part));
  }
  const WaveView* waves = stepper.waves();
  for (int port = 0; port < static_cast<int>(system.scalar_ports().size()); ++port) {
    log.push_back(stepper.effort(port));
    log.push_back(stepper.flow(port));
    if (waves != nullptr) log.push_back(waves->impedance(port));
  }
  for (const double value : stepper.signals()) log.push_back(value);
  for (const Event& event : stepper.events()) log.push_back(event.time_s);
  for (int island = 0; waves != nullptr && island < system.island_count(); ++island) {
    log.push_back(waves->tank(island));
    log.push_back(waves->iterations_of_island(island));
  }
  if (waves != nullptr && waves->guard() != nullptr) log.push_back(waves->guard()->withheld_J);
  log_certificate(stepper, log);
  log_statistics(stepper, log);
}

Log run(Stepper& stepper, int steps) {
  Log log;
  log_state(stepper, log);
  for (int i = 0; i < steps; ++i) {
    const StepReport report = stepper.step();
    for (const double number :
         {report.residual, report.gap_J, report.error, report.step_s, report.energy.stored_J,
          report.energy.mismatch_J, report.energy.alpha, 1.0 * report.iterations,
          1.0 * report.linearisations, 1.0 * report.rejected_steps}) {
      log.push_back(number);
    }
    log_state(stepper, log);
  }
  return log;
}

::testing::AssertionResult same_bits(const Log& expected, const Log& got) {
  if (expected.size() != got.size()) {
    return ::testing::AssertionFailure() << expected.size() << " numbers, not " << got.size();
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::bit_cast<std::uint64_t>(expected[i]) == std::bit_cast<std::uint64_t>(got[i])) continue;
    return ::testing::AssertionFailure()
           << "number " << i << " of " << expected.size() << ": " << expected[i] << ", not "
           << got[i] << " (off by " << got[i] - expected[i] << ")";
  }
  return ::testing::AssertionSuccess();
}

struct Case {
  std::string name;
  std::string scenario;
  std::vector<Override> overrides;
  int before = 7;
  int after = 40;
  std::function<void(StepperOptions&)> change = {};
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::vector<Case> cases() {
  const auto full = [](StepperOptions& o) { o.certify = Certify::full; };
  const auto none = [](StepperOptions& o) { o.certify = Certify::none; };
  const auto parallel = [](StepperOptions& o) {
    o.threads = 3;
    o.executor = ExecutorKind::async;
  };
  return {
      {"budget", "published_douglas_rachford", {}},
      {"guard", "two_oscillators", {}},
      {"full_certificate", "published_douglas_rachford", {}, 3, 10, full},
      {"no_ledger", "published_douglas_rachford", {}, 7, 40, none},
      {"automatic", "published_douglas_rachford", {{"/method", R"({"kind": "auto"})"}}},
      {"interface",
       "published_douglas_rachford",
       {{"/method",
         R"({"kind": "interface", "impedance": {"kind": "matched"}, "tolerance": 1e-12})"}}},
      {"two_stages",
       "published_douglas_rachford",
       {{"/method", R"({"kind": "auto", "stages": 2})"}}},
      {"three_stages",
       "published_douglas_rachford",
       {{"/method", R"({"kind": "auto", "stages": 3})"}}},
      {"anderson",
       "published_douglas_rachford",
       {{"/method",
         R"({"kind": "peaceman-rachford", "relaxation": 0.5, "acceleration": 3,
             "tolerance": 1e-11, "iterations": 60, "impedance": {"kind": "uniform", "value": 2}})"}}},
      {"extrapolated",
       "published_douglas_rachford",
       {{"/method",
         R"({"kind": "douglas-rachford", "iterations": 4, "start": "extrapolated",
             "impedance": {"kind": "matched"}})"}}},
      {"retuned",
       "published_douglas_rachford",
       {{"/method",
         R"({"kind": "peaceman-rachford", "iterations": 3, "tolerance": 1e-9,
             "impedance": {"kind": "matched", "retune_factor": 1.02}})"},
        {"/time/step_s", "0.05"},
        {"/time/end_s", "10"}}},
      {"adaptive",
       "published_douglas_rachford",
       {{"/time", R"({"step": {"kind": "adaptive", "tolerance": 1e-5}, "end_s": 10})"},
        {"/method", R"({"kind": "auto", "stages": 2})"}}},
      {"adaptive_one_stage",
       "published_douglas_rachford",
       {{"/time", R"({"step": {"kind": "adaptive", "tolerance": 1e-4}, "end_s": 10})"},
        {"/method", R"({"kind": "auto"})"}}},
      // Passes the level several times before and after.
      {"events",
       "published_douglas_rachford",
       {{"/events", R"([{"name": "middle", "of": "A.q1", "level": 0}])"}},
       150,
       150},
      {"chain", "chain_64", {}},
      {"chain_threads", "chain_64", {}, 7, 40, parallel},
      {"rings", "ring_junctions", {}},
      {"circuit", "circuit", {}},
      {"quarter_car", "quarter_car", {}},
      {"crane", "crane", {}, 60, 60},
      {"robot_arm", "robot_arm", {}, 5, 15},
      // Within the limits of its output, where its integral moves on with every sample.
      {"controller", "drive_pid", {{"/signals/blocks/1/maximum", "1e6"}}, 300, 60},
      {"splitting", "msd_chains", {{"/method", R"({"kind": "strang"})"}}},
      {"splitting_multirate", "msd_multirate", {}},
      {"dynamic_iteration",
       "msd_chains",
       {{"/method", R"({"kind": "lions-mercier", "window_steps": 5, "iterations": 40})"}},
       7,
       20},
  };
}

class Snapshots : public ::testing::TestWithParam<Case> {
 protected:
  Snapshots() : scenario_(example(GetParam().scenario, GetParam().overrides)) {
    if (GetParam().change) GetParam().change(scenario_.options);
  }
  Stepper stepper() const { return Stepper(scenario_.system, scenario_.options); }

  Scenario scenario_;
};

TEST_P(Snapshots, GoOnAsTheRunDid) {
  Stepper stepper = this->stepper();
  stepper.step(GetParam().before);
  const Snapshot snapshot = stepper.snapshot();
  EXPECT_EQ(snapshot.time_s(), stepper.time_s());
  const Log expected = run(stepper, GetParam().after);
  stepper.restore(snapshot);
  EXPECT_TRUE(same_bits(expected, run(stepper, GetParam().after))) << "again";

  // Control: without going back it is another run.
  EXPECT_FALSE(same_bits(expected, run(stepper, GetParam().after)));
}

TEST_P(Snapshots, GoOnInAnotherStepper) {
  Stepper first = this->stepper();
  first.step(GetParam().before);
  const Snapshot snapshot = first.snapshot();
  Stepper clone = first.clone();
  const Log expected = run(first, GetParam().after);
  EXPECT_TRUE(same_bits(expected, run(clone, GetParam().after))) << "clone";
  Stepper fresh = this->stepper();
  fresh.restore(snapshot);
  EXPECT_TRUE(same_bits(expected, run(fresh, GetParam().after))) << "fresh";
}

TEST_P(Snapshots, ChangeNothing) {
  Stepper watched = this->stepper(), plain = this->stepper();
  Snapshot snapshot;
  for (int i = 0; i < GetParam().after; ++i) {
    watched.snapshot(snapshot);
    watched.step();
    plain.step();
  }
  Log expected, got;
  log_state(plain, expected);
  log_state(watched, got);
  EXPECT_TRUE(same_bits(expected, got));
}

TEST_P(Snapshots, ForgetWhatCameBetween) {
  Stepper stepper = this->stepper();
  stepper.step(GetParam().before);
  const Snapshot snapshot = stepper.snapshot();
  const Log expected = run(stepper, GetParam().after);
  // Other steps, another budget, other impedances.
  if (WaveView* waves = stepper.waves()) {
    waves->set_iterations(1);
    if (stepper.step_sizes() == nullptr && stepper.signals().empty()) {
      stepper.step_by(0.3 * scenario_.options.step_s);
      stepper.step_by(0.7 * scenario_.options.step_s);
    }
    stepper.step(2);
    std::vector<double> impedance;
    for (int i = 0; i < static_cast<int>(stepper.system().scalar_ports().size()); ++i) {
      impedance.push_back(1.1 * waves->impedance(i));
    }
    waves->set_impedance(impedance);
    stepper.step(3);
  }
  stepper.step(11);
  stepper.restore(snapshot);
  EXPECT_TRUE(same_bits(expected, run(stepper, GetParam().after)));
}

TEST_P(Snapshots, SavedAgainHoldWhatNewOnesHold) {
  Stepper stepper = this->stepper();
  Snapshot again;
  for (const int steps : {GetParam().before, 1, GetParam().after, 0, 1}) {
    stepper.step(steps);
    stepper.snapshot(again);
    ASSERT_TRUE(again.to_bytes() == stepper.snapshot().to_bytes()) << stepper.step_index();
  }
  const Snapshot there = again;
  for (const int steps : {0, 2}) {
    stepper.step(steps);
    stepper.restore(there);
    EXPECT_TRUE(stepper.snapshot().to_bytes() == there.to_bytes()) << steps;
    stepper.snapshot(again);
    EXPECT_TRUE(again.to_bytes() == there.to_bytes()) << steps;
  }
}

INSTANTIATE_TEST_SUITE_P(Runs, Snapshots, ::testing::ValuesIn(cases()),
                         [](const auto& own) { return own.param.name; });

TEST(Snapshot, GoesBackBehindAFault) {
  const Scenario scenario = example("published_douglas_rachford");
  // A settable force that is far too much for a step.
  SystemBuilder builder;
  const Part& A = scenario.system.parts()[0];
  const Part& B = scenario.system.parts()[1];
  SystemBuilder::PartOptions driven{.initial_state = A.initial_state};
  driven.inputs[A.component->signature().inputs.at(0).name] = Signal::settable();
  builder.add("A", A.component, driven);
  builder.add("B", B.component, {.initial_state = B.initial_state});
  builder.connect("A.coupling", "B.coupling");
  const System system = builder.build();
  Stepper stepper(system, scenario.options);
  const InputSlot force = stepper.find_input("A." + A.component->signature().inputs[0].name);
  stepper.set_input(force, 3.0);
  stepper.step(5);
  const Snapshot snapshot = stepper.snapshot();
  const Log expected = run(stepper, 20);
  stepper.set_input(force, 1e200);
  EXPECT_THROW(stepper.step(100), StepError);
  stepper.restore(snapshot);
  EXPECT_EQ(stepper.input(force), 3.0);
  EXPECT_TRUE(same_bits(expected, run(stepper, 20)));
}

TEST(Snapshot, IsRefusedWhereItDoesNotFit) {
  const Scenario pair = example("published_douglas_rachford"), chain = example("chain_64");
  Stepper stepper(pair.system, pair.options), other(chain.system, chain.options);
  StepperOptions longer = pair.options;
  longer.step_s *= 2.0;
  Stepper of_longer_steps(pair.system, longer);
  StepperOptions other_rule = pair.options;
  other_rule.method.waves().tolerance = 1e-7;
  Stepper of_another_rule(pair.system, other_rule);
  stepper.step(3);
  const Log before = run(stepper, 0);
  for (const Stepper* foreign : {&other, &of_longer_steps, &of_another_rule}) {
    EXPECT_THROW(stepper.restore(foreign->snapshot()), std::invalid_argument);
  }
  EXPECT_THROW(stepper.restore(Snapshot()), std::invalid_argument);
  EXPECT_TRUE(same_bits(before, run(stepper, 0)));
  // Threads and executors are a matter of speed.
  StepperOptions parallel = pair.options;
  parallel.threads = 2;
  Stepper on_two(pair.system, parallel);
  on_two.restore(stepper.snapshot());
  EXPECT_TRUE(same_bits(before, run(on_two, 0)));
}

TEST(Snapshot, GoesThroughBytesAndWhatWasChangedIsRefused) {
  const Scenario scenario = example("drive_pid");
  Stepper stepper(scenario.system, scenario.options), other(scenario.system, scenario.options);
  stepper.step(300);
  const Snapshot snapshot = stepper.snapshot();
  std::vector<std::byte> bytes = snapshot.to_bytes();
  const Snapshot again = Snapshot::from_bytes(bytes);
  EXPECT_EQ(again.step_index(), 300);
  EXPECT_EQ(again.time_s(), snapshot.time_s());
  EXPECT_EQ(again.size_bytes(), snapshot.size_bytes());
  other.restore(again);
  EXPECT_TRUE(same_bits(run(stepper, 50), run(other, 50)));
  EXPECT_TRUE(Snapshot::from_bytes(Snapshot().to_bytes()).empty());

  EXPECT_THROW((void)Snapshot::from_bytes({}), std::invalid_argument);
  EXPECT_THROW((void)Snapshot::from_bytes(std::span(bytes).first(bytes.size() - 1)),
               std::invalid_argument);
  for (std::size_t i = 0; i < bytes.size(); i += i < 80 ? 1 : 97) {
    bytes[i] ^= std::byte{4};
    EXPECT_THROW((void)Snapshot::from_bytes(bytes), std::invalid_argument) << i;
    bytes[i] ^= std::byte{4};
  }
}

/// What only examined steps change stays where it is in between: it is not written again, nor read.
TEST(Snapshot, OfStepsThatAreNotExaminedGoBackAndForth) {
  const Scenario scenario = example("chain_64");
  Stepper stepper(scenario.system, scenario.options);
  stepper.step(100);
  Snapshot early;
  stepper.snapshot(early);
  const std::vector<std::byte> first = early.to_bytes();
  stepper.step(5);
  const Snapshot late = stepper.snapshot();
  stepper.step(30);  // some of them are examined
  const Snapshot last = stepper.snapshot();
  for (const Snapshot* const own :
       std::initializer_list<const Snapshot*>{&early, &last, &late, &early, &last}) {
    stepper.restore(*own);
    Snapshot again = late;
    stepper.snapshot(again);
    EXPECT_TRUE(again.to_bytes() == own->to_bytes()) << own->step_index();
  }
  stepper.restore(Snapshot::from_bytes(first));
  EXPECT_TRUE(stepper.snapshot().to_bytes() == first);
}

TEST(Snapshot, UsesItsMemoryAgain) {
  const Scenario scenario = example("chain_64");
  Stepper stepper(scenario.system, scenario.options);
  Snapshot snapshot;
  stepper.step(10);
  stepper.snapshot(snapshot);
  const std::size_t size = snapshot.size_bytes();
  stepper.step(10);
  stepper.snapshot(snapshot);
  EXPECT_GE(size, 64U * sizeof(double));
  EXPECT_LE(snapshot.size_bytes(), size + 1000);  // the histogram of iterations grows
  // Away from the steps that are looked at it needs less.
  stepper.step(60);
  stepper.snapshot(snapshot);
  EXPECT_LT(snapshot.size_bytes(), size);
}

TEST(Steps, OfAnySizeFollowOneAnother) {
  const Scenario scenario =
      example("published_douglas_rachford", {{"/method", R"({"kind": "auto"})"}});
  StepperOptions fine = scenario.options;
  fine.step_s = 1e-4;
  Stepper reference(scenario.system, fine), stepper(scenario.system, scenario.options);
  for (int i = 0; i < 50; ++i) {
    stepper.step_by(0.004);
    stepper.step_by(0.002);
    stepper.step_by(0.004);
  }
  reference.step(5000);
  EXPECT_NEAR(stepper.time_s(), 0.5, 1e-12);
  EXPECT_EQ(stepper.step_index(), 150);
  for (int part = 0; part < 2; ++part) {
    for (std::size_t i = 0; i < stepper.state(part).size(); ++i) {
      EXPECT_NEAR(stepper.state(part)[i], reference.state(part)[i], 1e-2) << part << " " << i;
    }
  }
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  EXPECT_THROW(stepper.step_by(0.0), std::invalid_argument);
  EXPECT_THROW(stepper.step_by(std::nan("")), std::invalid_argument);
}

TEST(RunUntil, EndsAtTheTimeThatWasAskedFor) {
  const Scenario scenario = example("published_douglas_rachford");
  Stepper stepper(scenario.system, scenario.options);
  stepper.run_until(0.1);
  EXPECT_EQ(stepper.step_index(), 10);
  stepper.run_until(0.1);
  stepper.run_until(0.05);
  EXPECT_EQ(stepper.step_index(), 10);
  stepper.run_until(0.125);
  EXPECT_EQ(stepper.step_index(), 13);
  EXPECT_DOUBLE_EQ(stepper.time_s(), 0.125);
  EXPECT_EQ(stepper.step().step_s, scenario.options.step_s);
}

TEST(Observers, AreToldOfEveryStep) {
  const Scenario scenario = example("published_douglas_rachford");
  Stepper stepper(scenario.system, scenario.options);
  std::vector<double> times;
  stepper.on_step([&](const Stepper& own, const StepReport& report) {
    times.push_back(own.time_s());
    EXPECT_EQ(report.step_s, scenario.options.step_s);
  });
  stepper.step(3);
  EXPECT_EQ(times, (std::vector<double>{0.01, 0.02, 0.03}));
  stepper.on_step([](const Stepper&, const StepReport&) { throw std::runtime_error("enough"); });
  EXPECT_THROW(stepper.step(), std::runtime_error);
  EXPECT_EQ(stepper.step_index(), 4);  // the step stands
  stepper.clear_observers();
  stepper.step(2);
  EXPECT_EQ(times.size(), 4U);
}

/// What is told of an input that is looked for, or of a value that it is given.
template <class Use>
std::string told_of(const Use& use) {
  try {
    use();
  } catch (const std::logic_error& error) {  // std::out_of_range, std::invalid_argument
    return error.what();
  }
  return {};
}

TEST(Inputs, AreFoundOnceByName) {
  SystemBuilder builder;
  builder.add("A", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 5}),
              {.inputs = {{"force", Signal::settable()}}});
  builder.add("B", linear_oscillator({.mass_kg = 2, .stiffness_N_per_m = 5}));
  builder.connect("A.coupling", "B.coupling");
  StepperOptions options;
  options.step_s = 0.01;
  Stepper stepper(builder.build(), options);
  EXPECT_EQ(stepper.find_input("A.force").slot, 0);
  const auto told = [&](const char* name) {
    return told_of([&] { (void)stepper.find_input(name); });
  };
  const std::string unknown = told("A.froce");
  EXPECT_NE(unknown.find("no settable input is named \"A.froce\"."), std::string::npos) << unknown;
  EXPECT_NE(unknown.find("Did you mean \"A.force\"?"), std::string::npos) << unknown;
  // What has the name, but is not settable, comes with what to do about it.
  EXPECT_NE(told("B.force").find("\"inputs\": {\"force\": \"settable\"}"), std::string::npos)
      << told("B.force");
  EXPECT_NE(told("A.q2").find("It is a state"), std::string::npos) << told("A.q2");
  EXPECT_EQ(unknown.find("It is"), std::string::npos) << "control: nothing has this name";
}

/// After states were set step sizes have no solvers of their own any more; restoring made them all.
TEST(Snapshot, HoldsWhatWasSavedAndNoMore) {
  const Scenario own = parse_scenario(R"j({"name": "motor", "method": {"kind": "auto", "stages": 2},
    "time": {"end_s": 1, "step": {"kind": "adaptive", "tolerance": 1e-6}}, "subsystems": [
      {"name": "supply", "type": "effort_source", "parameters": {"domain": "electrical"},
        "inputs": {"effort": -12}},
      {"name": "d", "type": "ideal_diode"},
      {"name": "m", "type": "dc_motor", "parameters": {"inductance_H": 1e-3, "resistance_ohm": 1,
        "motor_constant_Vs_per_rad": 0.05, "inertia_kgm2": 1e-4, "damping_Nms_per_rad": 1e-5}}],
    "couplings": [{"kind": "common_flow", "ports": ["supply.port", "d.terminals", "m.terminals"]},
      {"kind": "free", "ports": ["m.shaft"]}]})j",
                                      "motor.json", ".");
  Stepper stepper(own.system, own.options), other(own.system, own.options);
  for (int n = 0; n < 60; ++n) stepper.step_towards(1.0);
  const std::vector<double> states(stepper.state("m").begin(), stepper.state("m").end());
  stepper.set_states(states);
  for (int k = 0; k < 3; ++k) {
    const Snapshot saved = stepper.snapshot();
    other.restore(saved);
    EXPECT_EQ(other.snapshot().to_bytes(), saved.to_bytes()) << k;
    for (int n = 0; n < 5; ++n) {
      stepper.step_towards(1.0);
      other.step_towards(1.0);
    }
    EXPECT_EQ(stepper.state("m")[0], other.state("m")[0]) << k;
  }
}

TEST(Inputs, NamesWhatIsNotFinite) {
  SystemBuilder builder;
  for (const char* const name : {"A", "B"}) {
    builder.add(name, linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 5}),
                {.inputs = {{"force", Signal::settable()}}});
  }
  builder.connect("A.coupling", "B.coupling");
  StepperOptions options;
  options.step_s = 0.01;
  Stepper stepper(builder.build(), options);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> bad = {1.0, nan}, good = {1.0, 2.0};
  const char* const expected = "the input \"B.force\" must be finite, got nan";
  EXPECT_EQ(told_of([&] { stepper.set_input(stepper.find_input("B.force"), nan); }), expected);
  EXPECT_EQ(told_of([&] { stepper.set_input(1, 0, nan); }), expected);
  EXPECT_EQ(told_of([&] { stepper.set_inputs(bad); }), expected);
  EXPECT_EQ(stepper.input(stepper.find_input("A.force")), 0.0) << "nothing has changed";
  EXPECT_EQ(told_of([&] { stepper.set_inputs(good); }), "") << "control";
}

}  // namespace
}  // namespace portwave::test_snapshot
