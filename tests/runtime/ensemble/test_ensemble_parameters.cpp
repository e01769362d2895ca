// Parameters of one replica: it takes the steps of an ensemble that was made with them, and the others keep
// theirs. What is refused names the replica and the part.

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/runtime/ensemble/ensemble.hpp"
#include "portwave/runtime/scenario/part_recipes.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"

namespace portwave::testing::test_ensemble_parameters {
namespace {

constexpr int kReplicas = 11, kSteps = 20;

Scenario drive(const std::string& time, const std::string& method) {
  return parse_scenario(fmt::format(R"({{"name": "drive", "time": {}, "method": {},
        "subsystems": [
          {{"name": "A", "type": "duffing_oscillator", "initial_state": {{"q1": 0.3, "delta": -0.3}},
            "parameters": {{"mass_kg": 2, "stiffness_N_per_m": 30, "cubic_stiffness_N_per_m3": 90,
              "coupling_stiffness_N_per_m": 40, "coupling_damping_Ns_per_m": 0.1}}}},
          {{"name": "B", "type": "linear_oscillator", "parameters":
            {{"mass_kg": 4, "stiffness_N_per_m": 50}},
            "inputs": {{"force": {{"kind": "settable", "initial": 0.5}}}}}}],
        "couplings": [{{"kind": "connection", "ports": ["A.coupling", "B.coupling"]}}]}})",
                                    time, method),
                        "drive.json", ".");
}

struct Case {
  std::string name, time, method;
  bool in_lanes;
};

std::vector<Case> cases() {
  const std::string equal = R"({"step_s": 0.01, "end_s": 1})";
  return {{"budget", equal, R"({"kind": "peaceman-rachford", "iterations": 3,
            "impedance": {"kind": "matched", "retune_factor": 0}})",
           true},
          {"tolerance", equal, R"({"kind": "douglas-rachford", "tolerance": 1e-9, "iterations": 200,
            "impedance": {"kind": "matched", "retune_factor": 0}})",
           true},
          {"alone",
           R"({"step": {"kind": "adaptive", "tolerance": 1e-6, "largest_s": 0.02}, "end_s": 1})",
           R"({"kind": "auto"})", false}};
}

struct Change {
  int replica;
  const char* path;
  double value;
};
constexpr Change kChanges[] = {{3, "A.mass_kg", 2.5},
                               {9, "B.stiffness_N_per_m", 61.0},
                               {3, "A.cubic_stiffness_N_per_m3", 0.0},
                               {10, "B.damping_Ns_per_m", 0.4}};

Ensemble made(const Scenario& scenario, std::size_t changes, int threads = 1) {
  return {kReplicas,
          [&, changes](int i) {
            std::vector<ParameterChange> own;
            for (std::size_t k = 0; k < changes; ++k) {
              if (kChanges[k].replica == i) own.push_back({kChanges[k].path, kChanges[k].value});
            }
            return changed_system(scenario.system, scenario, own);
          },
          scenario.options,
          {.threads = threads, .chunk = 4}};
}

std::vector<double> rollout_of(Ensemble& ensemble) {
  std::vector<double> x(static_cast<std::size_t>(kReplicas * kSteps * ensemble.state_size()));
  ensemble.rollout({}, {}, kSteps, x);
  for (int i = 0; i < kReplicas; ++i) {
    x.push_back(ensemble.energy(i).final_J);
    EXPECT_EQ(ensemble.status(i).error, "");
  }
  return x;
}

class EnsembleParameters : public ::testing::TestWithParam<Case> {};

TEST_P(EnsembleParameters, OfOneReplicaAreThoseOfAnEnsembleMadeWithThem) {
  const Scenario scenario = drive(GetParam().time, GetParam().method);
  Ensemble ensemble = made(scenario, 0, 2);
  ASSERT_EQ(ensemble.in_lanes(), GetParam().in_lanes) << ensemble.execution();
  const std::vector<double> before = rollout_of(ensemble);
  std::vector<double> last = before;
  for (std::size_t k = 0; k < std::size(kChanges); ++k) {
    const Change& own = kChanges[k];
    set_parameter(ensemble, scenario, own.replica, own.path, own.value);
    EXPECT_EQ(parameter(ensemble, scenario, own.replica, own.path), own.value);
    EXPECT_NE(parameter(ensemble, scenario, 1, own.path), own.value);
    Ensemble other = made(scenario, k + 1);
    const std::vector<double> ours = rollout_of(ensemble);
    EXPECT_EQ(ours, rollout_of(other)) << own.path;
    EXPECT_NE(ours, last) << own.path;
    last = ours;
  }
  for (const Change& own : kChanges) {
    set_parameter(ensemble, scenario, own.replica, own.path,
                  parameter(ensemble, scenario, 1, own.path));
  }
  EXPECT_EQ(rollout_of(ensemble), before);
}

// Also the first one, for which the method was chosen: the method stays.
TEST_P(EnsembleParameters, OfAReplicaAreThoseOfItsStepper) {
  const Scenario scenario = drive(GetParam().time, GetParam().method);
  Ensemble ensemble = made(scenario, 0);
  for (const int replica : {0, 6}) set_parameter(ensemble, scenario, replica, "B.mass_kg", 3.0);
  ensemble.step(kSteps);
  for (const int replica : {0, 1, 6}) {
    const ParameterChange change[] = {{"B.mass_kg", replica == 1 ? 4.0 : 3.0}};
    const System one = changed_system(scenario.system, scenario, change);
    Stepper stepper(one, ensemble.options_of(replica));
    if (GetParam().in_lanes) {
      stepper.step(kSteps);
    } else {
      for (int n = 1; n <= kSteps; ++n) stepper.run_until(n * scenario.options.step_s);
    }
    std::vector<double> state(static_cast<std::size_t>(ensemble.state_size()));
    ensemble.get_state(replica, state);
    EXPECT_EQ(state[0], stepper.state(0)[0]) << replica;
    EXPECT_EQ(state[3], stepper.state(1)[0]) << replica;
    EXPECT_EQ(ensemble.energy(replica).final_J, stepper.energy().final_J) << replica;
  }
}

TEST_P(EnsembleParameters, HoldFromTheNextRunOn) {
  const Scenario scenario = drive(GetParam().time, GetParam().method);
  Ensemble ensemble = made(scenario, 0), other = made(scenario, 0), changed = made(scenario, 1);
  const auto state_of = [](const Ensemble& own) {
    std::vector<double> out(static_cast<std::size_t>(own.state_size()));
    own.get_state(kChanges[0].replica, out);
    return out;
  };
  ensemble.step(5);
  set_parameter(ensemble, scenario, kChanges[0].replica, kChanges[0].path, kChanges[0].value);
  ensemble.step(5);
  other.step(10);
  EXPECT_EQ(state_of(ensemble), state_of(other));
  ensemble.reset();
  ensemble.step(10);
  changed.step(10);
  EXPECT_EQ(state_of(ensemble), state_of(changed));
  EXPECT_NE(state_of(ensemble), state_of(other));
}

INSTANTIATE_TEST_SUITE_P(Cases, EnsembleParameters, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

template <class Error, class Act>
std::string said(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(EnsembleRefusals, NameReplicaAndPart) {
  const Scenario scenario = drive(cases()[0].time, cases()[0].method);
  Ensemble ensemble = made(scenario, 0);
  const std::vector<double> before = rollout_of(ensemble);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto set = [&](int replica, const char* path, double value) {
    return [&ensemble, &scenario, replica, path, value] {
      set_parameter(ensemble, scenario, replica, path, value);
    };
  };
  EXPECT_NE(said<ConfigError>(set(3, "A.mass_kg", -1.0)).find("replica 3, A.mass_kg: "),
            std::string::npos);
  EXPECT_NE(said<ConfigError>(set(3, "A.mass_kg", nan)).find("replica 3, A.mass_kg: "),
            std::string::npos);
  EXPECT_EQ(said<std::out_of_range>(set(11, "A.mass_kg", 1.0)), "there is no replica 11 of 11");
  EXPECT_NE(said<std::out_of_range>(set(3, "A.mass", 1.0)), "");
  EXPECT_EQ(said<std::invalid_argument>([&] { ensemble.set_component(2, 0, nullptr); }),
            "replica 2: the component cannot take the place of part \"A\": there is none");
  std::vector<double> states(static_cast<std::size_t>(kReplicas * ensemble.state_size()), 0.1);
  states[2 * 5 + 1] = nan;
  states[7 * 5 + 3] = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(said<std::invalid_argument>([&] { ensemble.set_states(states); }),
            "replica 2, part \"A\": state \"v1\" is not finite: nan; "
            "replica 7, part \"B\": state \"q2\" is not finite: -inf");
  EXPECT_EQ(said<std::invalid_argument>([&] {
              ensemble.set_state(4, {{0.0, nan, 0.0, 0.0, 0.0}});
            }),
            "replica 4, part \"A\": state \"v1\" is not finite: nan");
  EXPECT_EQ(said<std::invalid_argument>([&] {
              ensemble.set_state(4, 1, {{0.0, nan}});
            }),
            "replica 4, part \"B\": state \"v2\" is not finite: nan");
  EXPECT_EQ(said<std::invalid_argument>([&] { ensemble.set_input(5, 0, nan); }),
            "replica 5: input \"B.force\" must be finite, got nan");
  states.pop_back();
  EXPECT_NE(said<std::invalid_argument>([&] { ensemble.set_states(states); }), "");
  EXPECT_EQ(rollout_of(ensemble), before);
}

TEST_P(EnsembleParameters, FailuresNameReplicaPartAndInput) {
  const Scenario scenario = drive(GetParam().time, GetParam().method);
  Ensemble ensemble = made(scenario, 0);
  const auto n = static_cast<std::size_t>(ensemble.state_size());
  std::vector<double> x0(kReplicas * n, 0.01), u(kReplicas * kSteps, 1.0),
      x(kReplicas * kSteps * n);
  x0[1 * n + 3] = std::numeric_limits<double>::infinity();
  u[4 * kSteps + 6] = std::numeric_limits<double>::quiet_NaN();
  ensemble.rollout(x0, u, kSteps, x);
  EXPECT_EQ(ensemble.failures(), 2);
  EXPECT_EQ(ensemble.status(1).error,
            "replica 1: part \"B\" cannot start from this state: state \"q2\" is not finite: inf");
  EXPECT_EQ(ensemble.status(1).part, "B");
  EXPECT_TRUE(ensemble.status(4).error.starts_with("replica 4: ")) << ensemble.status(4).error;
  EXPECT_NE(ensemble.status(4).error.find("settable input \"B.force\" is not finite"),
            std::string::npos)
      << ensemble.status(4).error;
  EXPECT_EQ(ensemble.status(4).part, "B");
}

}  // namespace
}  // namespace portwave::testing::test_ensemble_parameters
