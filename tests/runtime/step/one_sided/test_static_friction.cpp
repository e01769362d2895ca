// Static friction: a block that a slow spring pulls sticks and slips. Compared with Radau of SciPy on the law
// itself (tests/tools/play_and_friction_golden.py), and with formulas.

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/runtime/ensemble/ensemble.hpp"
#include "portwave/runtime/scenario/part_recipes.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/snapshot.hpp"
#include "portwave/runtime/step/stepper.hpp"

namespace portwave::test_static_friction {
namespace {

constexpr double kStiffness = 100.0, kPull_m_per_s = 0.005, kSliding_N = 2.0, kAtRest_N = 3.0;

/// A mass of 1 kg on the ground; the far end of a spring moves at a constant speed.
Scenario block(double step_s, double at_rest_N, const std::string& method = R"({"kind": "auto"})",
               const std::string& more = "") {
  return parse_scenario(
      fmt::format(R"({{"name": "stick_slip", "time": {{"step_s": {}, "end_s": 30}},
  "subsystems": [
    {{"name": "belt", "type": "flow_source", "parameters": {{"domain": "translation"}},
      "inputs": {{"flow": {{"kind": "constant", "value": {}}}}}}},
    {{"name": "spring", "type": "spring", "parameters": {{"stiffness_N_per_m": {}}}}},
    {{"name": "block", "type": "mass", "parameters": {{"mass_kg": 1, "ports": 2}}}},
    {{"name": "friction", "type": "coulomb_damper",
      "parameters": {{"friction_N": {}, "static_friction_N": {}, "stribeck_speed_m_per_s": 0.02,
                      "creep_speed_m_per_s": 2e-4}}}}],
  "couplings": [{{"kind": "connection", "ports": ["belt.port", "spring.left"]}},
                {{"kind": "connection", "ports": ["spring.right", "block.port_1"]}},
                {{"kind": "connection", "ports": ["block.port_2", "friction.end"]}}],
  "method": {}{}}})",
                  step_s, kPull_m_per_s, kStiffness, kSliding_N, at_rest_N, method, more),
      "stick_slip.json", ".");
}

/// The force of the spring on the block.
double load_N(const Stepper& stepper) { return -kStiffness * stepper.state("spring")[0]; }

struct Cycle {
  std::vector<double> breaks_s;  ///< when the block becomes twice as fast as the belt
  double least_N = 1e9, most_N = 0.0, fastest_m_per_s = 0.0;  ///< after 12 s
  double worst_balance_J = 0.0;
};

/// Its position over one step as a speed: what the friction knows, too.
Cycle cycle_of(Stepper& stepper, double end_s) {
  Cycle out;
  double before_m = 0.0, before_m_per_s = 0.0, before_J = 0.0;
  while (stepper.time_s() < end_s) {
    const double from_s = stepper.time_s();
    const StepReport report = stepper.step();
    const double x = stepper.state("block")[0], v = stepper.state("block")[1];
    const double d = stepper.state("spring")[0], h = stepper.time_s() - from_s;
    const double speed = (x - before_m) / h;
    if (before_m_per_s < 2.0 * kPull_m_per_s && speed >= 2.0 * kPull_m_per_s) {
      if (out.breaks_s.empty() || from_s > out.breaks_s.back() + 1.0)
        out.breaks_s.push_back(from_s);
    }
    before_m = x;
    before_m_per_s = speed;
    if (stepper.time_s() > 12.0) {
      out.least_N = std::min(out.least_N, load_N(stepper));
      out.most_N = std::max(out.most_N, load_N(stepper));
      out.fastest_m_per_s = std::max(out.fastest_m_per_s, speed);
    }
    const double after_J = 0.5 * v * v + 0.5 * kStiffness * d * d;
    out.worst_balance_J = std::max(
        out.worst_balance_J,
        std::abs(after_J - before_J - report.energy.supplied_J + report.energy.dissipated_J +
                 report.energy.mismatch_J + report.energy.numerical_dissipation_J));
    before_J = after_J;
  }
  return out;
}

double period_s(const Cycle& cycle) {
  return (cycle.breaks_s.back() - cycle.breaks_s[1]) /
         static_cast<double>(cycle.breaks_s.size() - 2);
}

TEST(StaticFriction, ABlockOnABeltSticksAndSlipsAsBySciPy) {
  for (const int stages : {1, 2, 3}) {
    SCOPED_TRACE(std::to_string(stages) + " stages");
    const Scenario scenario =
        block(1e-3, kAtRest_N, fmt::format(R"({{"kind": "auto", "stages": {}}})", stages));
    Stepper stepper(scenario.system, scenario.options);
    const Cycle cycle = cycle_of(stepper, 26.0);
    ASSERT_GE(cycle.breaks_s.size(), 5U);
    EXPECT_NEAR(period_s(cycle), 4.63340459, 0.01 * 4.6334);
    EXPECT_NEAR(cycle.breaks_s[0], 6.325818, 0.02);
    // It breaks away at the friction at rest, and by formulas the spring falls by about twice the difference.
    EXPECT_NEAR(cycle.most_N, 3.035107, 0.01 * kAtRest_N);
    EXPECT_NEAR(cycle.most_N, kAtRest_N, 0.03 * kAtRest_N);
    EXPECT_NEAR(cycle.least_N, 0.999344, 0.03);
    EXPECT_NEAR(cycle.fastest_m_per_s, 0.105984, 2e-3);
    EXPECT_LT(cycle.worst_balance_J, 1e-12);
    EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  }
}

/// A block that friction alone stops, from 0.1 m/s: its speed at a time.
double slowed_m_per_s(double time_s, double step_s, int stages) {
  const Scenario scenario =
      parse_scenario(fmt::format(R"({{"name": "slowed", "time": {{"step_s": {}, "end_s": 1}},
  "subsystems": [
    {{"name": "block", "type": "mass", "parameters": {{"mass_kg": 1}},
      "initial_state": {{"velocity": 0.1}}}},
    {{"name": "friction", "type": "coulomb_damper", "initial_state": {{"speed": 0.1}},
      "parameters": {{"friction_N": 2, "static_friction_N": 3, "stribeck_speed_m_per_s": 0.05,
                      "creep_speed_m_per_s": 0.004}}}}],
  "couplings": [{{"kind": "connection", "ports": ["block.port", "friction.end"]}}],
  "method": {{"kind": "auto", "stages": {}}}}})",
                                 step_s, stages),
                     "slowed.json", ".");
  Stepper stepper(scenario.system, scenario.options);
  stepper.step(static_cast<int>(std::llround(time_s / step_s)));
  return stepper.state("block")[1];
}

/// The same by Runge–Kutta of order 4 on the law itself.
double slowed_by_runge_kutta(double time_s, int steps) {
  const auto rate = [](double v) {
    return -(2.0 + std::exp(-(v / 0.05) * (v / 0.05))) * std::tanh(v / 0.004);
  };
  double v = 0.1;
  const double h = time_s / steps;
  for (int n = 0; n < steps; ++n) {
    const double k1 = rate(v), k2 = rate(v + h / 2 * k1), k3 = rate(v + h / 2 * k2);
    const double k4 = rate(v + h * k3);
    v += h / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
  }
  return v;
}

TEST(StaticFriction, TheLevelIsOfOrderOneWithAnyStages) {
  const double exact = slowed_by_runge_kutta(0.036, 20000);
  for (const int stages : {1, 2, 3}) {
    const double coarse = slowed_m_per_s(0.036, 5e-4, stages) - exact;
    const double fine = slowed_m_per_s(0.036, 2.5e-4, stages) - exact;
    EXPECT_NEAR(std::log2(coarse / fine), 1.0, 0.1) << stages << ' ' << coarse << ' ' << fine;
    EXPECT_LT(std::abs(fine), 1e-3) << stages;
  }
}

TEST(StaticFrictionControl, WithoutItTheBlockFollowsTheBelt) {
  const Scenario scenario = block(1e-3, kSliding_N);
  Stepper stepper(scenario.system, scenario.options);
  const Cycle cycle = cycle_of(stepper, 20.0);
  EXPECT_GT(cycle.least_N, 0.95 * kSliding_N);  // SciPy: 1.9599 to 2.0400
  EXPECT_LT(cycle.most_N, 1.05 * kSliding_N);
}

/// A load that is switched on at 0.1 s pulls the block on its own.
Scenario pulled(double load_N) {
  return parse_scenario(fmt::format(R"({{"name": "pulled", "time": {{"step_s": 1e-3, "end_s": 2}},
  "subsystems": [
    {{"name": "block", "type": "mass", "parameters": {{"mass_kg": 1}},
      "inputs": {{"force": {{"kind": "expression", "expression": "if(t < 0.1, 0, {}) "}}}}}},
    {{"name": "friction", "type": "coulomb_damper",
      "parameters": {{"friction_N": 2, "static_friction_N": 3, "stribeck_speed_m_per_s": 0.02,
                      "creep_speed_m_per_s": 2e-4}}}}],
  "couplings": [{{"kind": "connection", "ports": ["block.port", "friction.end"]}}],
  "method": {{"kind": "auto"}}}})",
                                    load_N),
                        "pulled.json", ".");
}

TEST(StaticFriction, BelowItABlockCreepsAndAboveItSlides) {
  for (const double load_N : {1.0, 2.5, 2.9}) {
    const Scenario scenario = pulled(load_N);
    Stepper stepper(scenario.system, scenario.options);
    stepper.step(2000);
    // Where it creeps at v = v₀ atanh(load/L) the level L is almost that at rest.
    const double creep = 2e-4 * std::atanh(load_N / (2.0 + std::exp(-4e-4)));
    EXPECT_NEAR(stepper.state("block")[0], 1.9 * creep, 0.02 * 1.9 * creep) << load_N;
    EXPECT_NEAR(stepper.state("friction")[0], creep, 1e-3 * creep) << load_N;
  }
  const Scenario scenario = pulled(3.1);
  Stepper stepper(scenario.system, scenario.options);
  stepper.step(2000);
  EXPECT_NEAR(stepper.state("block")[1], 1.1 * 1.9, 0.2);  // (3.1 N − 2 N)/1 kg, once it slides
}

std::vector<double> states_of(const Stepper& stepper) {
  std::vector<double> out;
  for (int i = 0; i < static_cast<int>(stepper.system().parts().size()); ++i) {
    const auto own = stepper.state(i);
    out.insert(out.end(), own.begin(), own.end());
  }
  return out;
}

TEST(StaticFriction, ItsMemoryIsPartOfASnapshot) {
  const Scenario scenario = block(2e-3, kAtRest_N);
  Stepper stepper(scenario.system, scenario.options);
  while (std::abs(stepper.state("friction")[0]) < 0.05) stepper.step();  // it slips
  const Snapshot there = stepper.snapshot();
  stepper.step(300);
  const std::vector<double> expected = states_of(stepper);
  Stepper other(scenario.system, scenario.options);
  other.restore(Snapshot::from_bytes(there.to_bytes()));
  EXPECT_EQ(other.state("friction")[0], Stepper(other.clone()).state("friction")[0]);
  EXPECT_GE(std::abs(other.state("friction")[0]), 0.05);
  other.step(300);
  EXPECT_EQ(states_of(other), expected);
}

TEST(StaticFriction, OfEveryReplicaIsItsOwn) {
  const auto replica = [](int i) { return block(2e-3, 2.2 + 0.1 * i).system; };
  StepperOptions options = block(2e-3, kAtRest_N).options;
  options.method.waves().retune_factor = 0.0;
  Ensemble ensemble(11, replica, options);
  ensemble.step(3200);
  std::set<double> speeds;
  for (int i = 0; i < 11; ++i) {
    const System system = replica(i);
    Stepper stepper(system, ensemble.options_of(i));
    stepper.step(3200);
    const std::vector<double> expected = states_of(stepper);
    std::vector<double> own(expected.size());
    ensemble.get_state(i, own);
    EXPECT_EQ(own, expected) << i;
    speeds.insert(own.back());
  }
  EXPECT_GT(speeds.size(), 5U);  // they break away at different times
}

TEST(StaticFriction, ChangesDuringARunWhileItStaysAboveThatOfSliding) {
  Scenario scenario = block(1e-3, kAtRest_N);
  Stepper stepper(std::move(scenario.system), scenario.options);
  stepper.step(3000);
  set_parameter(stepper, scenario, "friction.static_friction_N", 2.5);
  const Cycle cycle = cycle_of(stepper, 20.0);
  EXPECT_NEAR(cycle.most_N, 2.5, 0.05);
  // As much as while it slides is a part without a memory.
  try {
    set_parameter(stepper, scenario, "friction.static_friction_N", kSliding_N);
    ADD_FAILURE() << "another number of states was taken";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(
        error.what(),
        "the component cannot take the place of part \"friction\": its states are others: it "
        "has none, and the part \"speed\"");
  }
}

}  // namespace
}  // namespace portwave::test_static_friction
