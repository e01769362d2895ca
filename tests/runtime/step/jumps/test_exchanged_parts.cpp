// Parameters that change in a loop: each change costs its part alone, and what goes on has the bits of a
// stepper that is made with the new parameters from that state. Snapshots hold them.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <portwave/runtime/scenario/part_recipes.hpp>
#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/runtime/step/stepper.hpp>

namespace portwave::test_exchanged_parts {
namespace {

/// A ring of cells, each a mass, a spring, a Duffing oscillator and friction.
Scenario ring(int cells, double first_mass = 2.0) {
  std::string parts, couplings;
  for (int i = 0; i < cells; ++i) {
    parts += fmt::format(
        R"({}{{"name": "mass{}", "type": "mass", "parameters": {{"mass_kg": {}, "ports": 4}},
             "initial_state": {{"velocity": {}}}}},
           {{"name": "spring{}", "type": "spring_damper",
             "parameters": {{"stiffness_N_per_m": 40, "damping_Ns_per_m": 0.2}}}},
           {{"name": "duffing{}", "type": "duffing_oscillator",
             "parameters": {{"mass_kg": 1, "stiffness_N_per_m": 30, "cubic_stiffness_N_per_m3": 200,
               "coupling_stiffness_N_per_m": 50, "coupling_damping_Ns_per_m": 0.1}}}},
           {{"name": "friction{}", "type": "coulomb_damper",
             "parameters": {{"friction_N": 0.3, "creep_speed_m_per_s": 0.05{}}}}})",
        i == 0 ? "" : ", ", i, i == 0 ? first_mass : 2.0, i % 7 == 0 ? 1.0 : 0.0, i, i, i,
        i % 3 == 0 ? R"(, "static_friction_N": 0.5, "stribeck_speed_m_per_s": 0.2)" : "");
    couplings += fmt::format(
        R"({}{{"kind": "connection", "ports": ["mass{}.port_1", "spring{}.right"]}},
           {{"kind": "connection", "ports": ["mass{}.port_2", "spring{}.left"]}},
           {{"kind": "connection", "ports": ["mass{}.port_3", "duffing{}.coupling"]}},
           {{"kind": "connection", "ports": ["mass{}.port_4", "friction{}.end"]}})",
        i == 0 ? "" : ", ", i, (i + cells - 1) % cells, i, i, i, i, i, i);
  }
  return parse_scenario(fmt::format(R"({{"name": "ring", "time": {{"step_s": 0.004, "end_s": 1}},
    "method": {{"kind": "auto"}}, "subsystems": [{}], "couplings": [{}]}})",
                                    parts, couplings),
                        "ring.json", ".");
}

std::vector<double> states_of(const Stepper& stepper) {
  std::vector<double> out;
  for (int i = 0; i < static_cast<int>(stepper.system().parts().size()); ++i) {
    const auto own = stepper.state(i);
    out.insert(out.end(), own.begin(), own.end());
  }
  out.push_back(stepper.energy().final_J);
  out.push_back(stepper.energy().supplied_J);
  return out;
}

struct Change {
  const char* path;
  double value;
};
constexpr Change kChanges[] = {{"mass3.mass_kg", 2.5},
                               {"spring0.stiffness_N_per_m", 35.0},
                               {"duffing9.cubic_stiffness_N_per_m3", 250.0},
                               {"friction11.friction_N", 0.4},
                               {"friction9.static_friction_N", 0.6},
                               {"mass3.damping_Ns_per_m", 0.1},  // entries at other places
                               {"duffing4.stiffness_N_per_m", 28.0},
                               {"spring0.damping_Ns_per_m", 0.3}};

struct Setting {
  std::string name;
  std::function<void(StepperOptions&)> change;
};

std::vector<Setting> settings() {
  const auto waves = [](auto change) {
    return [change](StepperOptions& options) { change(options.method.waves()); };
  };
  return {{"automatic", [](StepperOptions&) {}},
          {"threads",
           [](StepperOptions& options) {
             options.threads = 2;
             options.executor = ExecutorKind::async;
             options.certify = Certify::full;
           }},
          {"stages", waves([](WaveCoupling& m) {
             m = WaveCoupling::automatic(1e-11);
             m.stages = 2;
           })},
          {"interface", waves([](WaveCoupling& m) {
             m = WaveCoupling::automatic(1e-11);
             m.kind = WaveUpdate::interface;
           })},
          {"reflections", waves([](WaveCoupling& m) {
             m = WaveCoupling::automatic(1e-9);
             m.kind = WaveUpdate::peaceman_rachford;
           })},
          {"adaptive", [](StepperOptions& options) {
             options.sizes = StepSizes{.tolerance = 1e-6};
             options.step_s = 0.02;
           }}};
}

class ExchangedParts : public ::testing::TestWithParam<Setting> {
 protected:
  static constexpr int kCells = 20;
  StepperOptions options_of(const Scenario& scenario) const {
    StepperOptions options = scenario.options;
    GetParam().change(options);
    return options;
  }
};

TEST_P(ExchangedParts, GoOnAsAStepperThatIsMadeWithThem) {
  Scenario scenario = ring(kCells);
  const StepperOptions options = options_of(scenario);
  std::vector<ParameterChange> changes;
  for (const Change& own : kChanges) changes.push_back({own.path, own.value});
  const System other = changed_system(scenario.system, scenario, changes);
  Stepper unchanged(changed_system(scenario.system, scenario, {}), options);
  Stepper stepper(std::move(scenario.system), options);
  stepper.step(10);
  unchanged.step(10);
  for (const Change& own : kChanges) {
    set_parameter(stepper, scenario, own.path, own.value);
    EXPECT_EQ(parameter(stepper, scenario, own.path), own.value);
  }
  Stepper made(other, options);
  made.restore(stepper.snapshot());
  EXPECT_EQ(states_of(made), states_of(stepper));
  for (int n = 0; n < 5; ++n) {
    stepper.step(4);
    made.step(4);
    ASSERT_EQ(states_of(made), states_of(stepper)) << n;
  }
  EXPECT_EQ(stepper.certificate().status, made.certificate().status);
  unchanged.step(20);
  EXPECT_NE(states_of(unchanged), states_of(stepper));
}

TEST_P(ExchangedParts, AreUndoneBySnapshotsFromBefore) {
  Scenario scenario = ring(kCells);
  const StepperOptions options = options_of(scenario);
  Stepper stepper(std::move(scenario.system), options);
  stepper.step(6);
  const Snapshot before = stepper.snapshot();
  stepper.step(8);
  const std::vector<double> there = states_of(stepper);
  std::vector<Snapshot> on_the_way;
  for (const Change& own : kChanges) {
    set_parameter(stepper, scenario, own.path, own.value);
    on_the_way.push_back(stepper.snapshot());
    stepper.step();
  }
  const std::vector<double> at_the_end = states_of(stepper);
  for (int twice = 0; twice < 2; ++twice) {
    stepper.restore(before);
    EXPECT_EQ(stepper.step_index(), 6);
    EXPECT_EQ(parameter(stepper, scenario, "mass3.mass_kg"), 2.0);
    stepper.step(8);
    EXPECT_EQ(states_of(stepper), there);
    stepper.restore(on_the_way[2]);
    EXPECT_EQ(parameter(stepper, scenario, "mass3.mass_kg"), 2.5);
    EXPECT_EQ(parameter(stepper, scenario, "friction11.friction_N"), 0.3);
    stepper.step();
    for (std::size_t k = 3; k < std::size(kChanges); ++k) {
      set_parameter(stepper, scenario, kChanges[k].path, kChanges[k].value);
      stepper.step();
    }
    EXPECT_EQ(states_of(stepper), at_the_end);
  }
}

TEST_P(ExchangedParts, AreBroughtToAFreshStepperBySnapshots) {
  Scenario scenario = ring(kCells);
  const StepperOptions options = options_of(scenario);
  Stepper stepper(std::move(scenario.system), options);
  stepper.step(6);
  for (const Change& own : kChanges) set_parameter(stepper, scenario, own.path, own.value);
  stepper.step(2);
  const Snapshot snapshot = stepper.snapshot();
  stepper.step(6);
  for (const bool as_bytes : {false, true}) {
    Scenario again = ring(kCells);
    Stepper fresh(std::move(again.system), options);
    fresh.restore(as_bytes ? Snapshot::from_bytes(snapshot.to_bytes()) : snapshot);
    for (const Change& own : kChanges) {
      EXPECT_EQ(parameter(fresh, again, own.path), own.value) << as_bytes;
    }
    EXPECT_EQ(parameter(fresh, again, "mass4.mass_kg"), 2.0);
    fresh.step(6);
    EXPECT_EQ(states_of(fresh), states_of(stepper)) << as_bytes;
    // They can be changed on, and undone.
    const Snapshot here = fresh.snapshot();
    set_parameter(fresh, again, "mass3.mass_kg", 2.7);
    fresh.step();
    fresh.restore(here);
    EXPECT_EQ(parameter(fresh, again, "mass3.mass_kg"), 2.5);
    EXPECT_EQ(states_of(fresh), states_of(stepper)) << as_bytes;
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, ExchangedParts, ::testing::ValuesIn(settings()),
                         [](const auto& test) { return test.param.name; });

std::string refusal(Stepper& stepper, const Snapshot& snapshot) {
  try {
    stepper.restore(snapshot);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

// Who takes the state of a plant into a model with other parameters would otherwise have those of the plant.
TEST(ExchangedPartsOfOthers, AreRefusedWhereTheRunBeganOtherwise) {
  Scenario scenario = ring(5), heavier = ring(5, 3.0), borrowed = ring(5);
  Stepper stepper(std::move(scenario.system), scenario.options);
  stepper.step(3);
  const Snapshot before = stepper.snapshot();
  set_parameter(stepper, scenario, "mass1.mass_kg", 2.5);
  const Snapshot after = stepper.snapshot();
  Stepper model(std::move(heavier.system), heavier.options);
  const std::string why = "part \"mass0\": mass_kg is 3 here, and 2 there";
  for (const Snapshot& own : {before, after, Snapshot::from_bytes(after.to_bytes())}) {
    EXPECT_NE(refusal(model, own).find(why), std::string::npos) << refusal(model, own);
  }
  EXPECT_EQ(model.step_index(), 0);
  // Nor can a stepper exchange parts of a system that is somebody else's.
  Stepper of_others(borrowed.system, borrowed.options);
  for (const Snapshot& own : {after, Snapshot::from_bytes(after.to_bytes())}) {
    EXPECT_NE(refusal(of_others, own).find("part \"mass1\": mass_kg is 2 here, and 2.5 there"),
              std::string::npos);
  }
  EXPECT_EQ(refusal(of_others, before), "");
  EXPECT_EQ(of_others.step_index(), 3);
}

TEST(ExchangedPartsOfOthers, AreKnownToClones) {
  Scenario scenario = ring(5);
  Stepper stepper(std::move(scenario.system), scenario.options);
  stepper.step(3);
  const Snapshot before = stepper.snapshot();
  set_parameter(stepper, scenario, "mass1.mass_kg", 2.5);
  Stepper clone = stepper.clone();
  EXPECT_EQ(parameter(clone, scenario, "mass1.mass_kg"), 2.5);
  clone.restore(before);
  EXPECT_EQ(parameter(clone, scenario, "mass1.mass_kg"), 2.0);
  EXPECT_EQ(parameter(stepper, scenario, "mass1.mass_kg"), 2.5);
}

TEST(ParameterSlots, AreFoundOnce) {
  Scenario scenario = ring(5);
  Stepper stepper(std::move(scenario.system), scenario.options);
  const ParameterSlot slot = find_parameter(stepper, scenario, "spring2.stiffness_N_per_m");
  for (int i = 0; i < 3000; ++i) set_parameter(stepper, scenario, slot, 40.0 + 1e-3 * i);
  EXPECT_EQ(parameter(stepper, scenario, "spring2.stiffness_N_per_m"), 40.0 + 1e-3 * 2999);
  stepper.step(3);
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  EXPECT_THROW(find_parameter(stepper, scenario, "spring2.stiffness"), std::out_of_range);
  EXPECT_THROW(set_parameter(stepper, scenario, ParameterSlot{}, 1.0), std::out_of_range);
  const std::vector<double> before = states_of(stepper);
  EXPECT_THROW(set_parameter(stepper, scenario, slot, -1.0), ConfigError);
  EXPECT_EQ(states_of(stepper), before);
  EXPECT_EQ(parameter(stepper, scenario, "spring2.stiffness_N_per_m"), 40.0 + 1e-3 * 2999);
}

// States.

std::vector<double> all_states(const Stepper& stepper) {
  std::vector<double> out = states_of(stepper);
  out.resize(out.size() - 2);
  return out;
}

double stored(const Stepper& stepper) {
  double sum = 0.0;
  for (int i = 0; i < static_cast<int>(stepper.system().parts().size()); ++i) {
    sum += stepper.storage(i);
  }
  return sum;
}

TEST_P(ExchangedParts, StatesThatAreSetAreABeginning) {
  Scenario scenario = ring(kCells);
  StepperOptions options = options_of(scenario);
  Stepper first(scenario.system, options);
  options.method = first.method().method;  // fixed, so that it does not follow the state
  if (options.method.waves().impedance_kind != ImpedanceKind::given) {
    options.method.waves().impedance_kind = ImpedanceKind::given;
  }
  options.method.waves().retune_factor = 0.0;
  options.method.waves().guard = false;  // whose tanks go on
  Stepper stepper(scenario.system, options);
  Stepper fresh(scenario.system, options);
  const std::vector<double> start = all_states(fresh);
  stepper.step(7);
  const double before = stored(stepper), supplied = stepper.energy().supplied_J;
  stepper.set_states(start);
  EXPECT_EQ(all_states(stepper), start);
  EXPECT_EQ(stepper.step_index(), 7);
  EXPECT_NEAR(stepper.energy().supplied_J - supplied, stored(stepper) - before, 1e-12 * before);
  EXPECT_NEAR(stepper.energy().final_J, stored(stepper), 1e-12 * before);
  if (GetParam().name == "adaptive") return;  // whose steps end at other times
  for (int n = 0; n < 4; ++n) {
    stepper.step(2);
    fresh.step(2);
    ASSERT_EQ(all_states(stepper), all_states(fresh)) << n;
  }
  EXPECT_NEAR(stepper.energy().final_J, stored(stepper), 1e-11 * before);
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
}

TEST(SetStates, BeforeTheFirstStepAreThoseOfTheStart) {
  Scenario scenario = ring(5);
  Stepper stepper(scenario.system, scenario.options);
  std::vector<double> states = all_states(stepper);
  for (double& x : states) x += 0.01;
  stepper.set_states(states);
  EXPECT_EQ(all_states(stepper), states);
  const Snapshot snapshot = stepper.snapshot();
  stepper.step(5);
  const std::vector<double> there = states_of(stepper);
  stepper.restore(snapshot);
  EXPECT_EQ(all_states(stepper), states);
  stepper.step(5);
  EXPECT_EQ(states_of(stepper), there);
}

TEST(SetStates, RefusesWhatIsNoState) {
  Scenario scenario = ring(5);
  Stepper stepper(scenario.system, scenario.options), other(scenario.system, scenario.options);
  stepper.step(3);
  other.step(3);
  std::vector<double> states = all_states(stepper);
  states[0] = std::numeric_limits<double>::quiet_NaN();
  states[3] = std::numeric_limits<double>::infinity();
  try {
    stepper.set_states(states);
    FAIL() << "these are no states";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "part \"mass0\": state \"position\" must be finite, got nan; part \"duffing0\": "
                 "state \"q1\" must be finite, got inf");
  }
  std::ranges::fill(states, std::numeric_limits<double>::quiet_NaN());
  try {
    stepper.set_states(states);
    FAIL() << "these are no states";
  } catch (const std::invalid_argument& error) {  // a few of them are told
    const std::string text = error.what();
    EXPECT_TRUE(text.ends_with(fmt::format("; and {} more", states.size() - 8))) << text;
    EXPECT_EQ(std::ranges::count(text, ';'), 8);
  }
  states.pop_back();
  EXPECT_THROW(stepper.set_states(states), std::invalid_argument);
  stepper.step(3);
  other.step(3);
  EXPECT_EQ(states_of(stepper), states_of(other));
}

}  // namespace
}  // namespace portwave::test_exchanged_parts
