// Networks, deadlines, arenas, plugins and ensembles as a C program sees them.

#include <cmath>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave.h"

namespace {

constexpr const char* kPairText = R"json({"name": "pair", "time": {"step_s": 0.01, "end_s": 1},
  "subsystems": [
    {"name": "A", "type": "mass", "initial_state": {"velocity": 1},
     "parameters": {"mass_kg": 2, "ports": 2}, "inputs": {"force": {"kind": "settable"}}},
    {"name": "S", "type": "spring_damper",
     "parameters": {"stiffness_N_per_m": 50, "damping_Ns_per_m": 0.5},
     "inputs": {}},
    {"name": "B", "type": "mass", "initial_state": {"velocity": 1}, "parameters": {"mass_kg": 1}}],
  "couplings": [{"kind": "connection", "ports": ["A.port_1", "S.left"]},
                {"kind": "common_flow", "ports": ["A.port_2", "B.port"]},
                {"kind": "fixed", "ports": ["S.right"]}]})json";

portwave_builder* pair() {
  portwave_builder* builder = nullptr;
  EXPECT_EQ(portwave_builder_new("pair", 0.01, &builder), PORTWAVE_OK);
  const int A = portwave_builder_add(builder, "A", "mass", R"({"mass_kg": 7, "ports": 2})");
  const int S = portwave_builder_add(builder, "S", "spring_damper", nullptr);
  const int B = portwave_builder_add(builder, "B", "mass", nullptr);
  EXPECT_EQ(portwave_builder_set_parameter(builder, A, "mass_kg", 2.0), PORTWAVE_OK);
  EXPECT_EQ(portwave_builder_set_parameter(builder, S, "stiffness_N_per_m", 50.0), PORTWAVE_OK);
  EXPECT_EQ(portwave_builder_set_parameter(builder, S, "damping_Ns_per_m", 0.5), PORTWAVE_OK);
  EXPECT_EQ(portwave_builder_set_parameter(builder, B, "mass_kg", 1.0), PORTWAVE_OK);
  EXPECT_EQ(portwave_builder_set_state(builder, A, "velocity", 1.0), PORTWAVE_OK);
  EXPECT_EQ(portwave_builder_set_state(builder, B, "velocity", 1.0), PORTWAVE_OK);
  EXPECT_EQ(portwave_builder_set_input(builder, A, "force", nullptr), PORTWAVE_OK);
  EXPECT_EQ(portwave_builder_connect(builder, A, "port_1", S, "left"), PORTWAVE_OK);
  const portwave_port together[] = {{A, "port_2"}, {B, "port"}};
  EXPECT_EQ(portwave_builder_join(builder, "common_flow", together, 2, nullptr), PORTWAVE_OK);
  const portwave_port wall[] = {{S, "right"}};
  EXPECT_EQ(portwave_builder_join(builder, "fixed", wall, 1, nullptr), PORTWAVE_OK);
  return builder;
}

portwave_simulation* built(const portwave_builder* builder,
                           const portwave_options* options = nullptr) {
  portwave_simulation* simulation = nullptr;
  EXPECT_EQ(portwave_builder_build(builder, options, &simulation), PORTWAVE_OK)
      << portwave_last_error();
  return simulation;
}

std::vector<double> states_after(portwave_simulation* simulation, int steps) {
  EXPECT_EQ(portwave_set_input(simulation, 0, 3.0), PORTWAVE_OK);
  EXPECT_EQ(portwave_step_n(simulation, steps), PORTWAVE_OK) << portwave_last_error();
  std::vector<double> x(portwave_state_count(simulation));
  EXPECT_EQ(portwave_states(simulation, x.data(), x.size()), PORTWAVE_OK);
  return x;
}

TEST(Builder, GivesTheBitsOfTheScenarioThatSaysTheSame) {
  portwave_builder* builder = pair();
  portwave_simulation* own = built(builder);
  portwave_simulation* again = built(builder);
  portwave_simulation* read = nullptr;
  ASSERT_EQ(portwave_parse(kPairText, nullptr, nullptr, 0, &read), PORTWAVE_OK);
  const std::vector<double> expected = states_after(read, 100);
  EXPECT_EQ(expected.size(), 5U);
  EXPECT_EQ(states_after(own, 100), expected);
  EXPECT_EQ(states_after(again, 100), expected) << "a builder may build again";
  EXPECT_EQ(portwave_builder_set(builder, "/time/step_s", "0.02"), PORTWAVE_OK);
  portwave_simulation* other = built(builder);
  EXPECT_NE(states_after(other, 100), expected);
  EXPECT_EQ(portwave_set_parameter(other, "B.mass_kg", 3.0), PORTWAVE_OK) << portwave_last_error();
  double mass = 0.0;
  EXPECT_EQ(portwave_get_parameter(other, "B.mass_kg", &mass), PORTWAVE_OK);
  EXPECT_EQ(mass, 3.0);
  for (portwave_simulation* each : {own, again, read, other}) portwave_free(each);
  portwave_builder_free(builder);
}

/// A line of forty masses between two springs, struck at one end; cut into pieces where there are more than none.
portwave_builder* line(int pieces) {
  portwave_builder* builder = nullptr;
  EXPECT_EQ(portwave_builder_new("line", 0.01, &builder), PORTWAVE_OK);
  const int spring = portwave_builder_add(builder, "spring", "spring_damper",
                                          R"({"stiffness_N_per_m": 30, "damping_Ns_per_m": 0.1})");
  const int bar = portwave_builder_add(
      builder, "bar", "mass_spring_damper_chain",
      R"({"masses": 40, "mass_kg": 0.5, "stiffness_N_per_m": 200, "right_end": "mass"})");
  const int load = portwave_builder_add(builder, "load", "mass", R"({"mass_kg": 2})");
  EXPECT_EQ(portwave_builder_set_state(builder, load, "velocity", 1.0), PORTWAVE_OK);
  if (pieces > 0) {
    EXPECT_EQ(portwave_builder_cut(builder, bar, pieces), PORTWAVE_OK) << portwave_last_error();
  }
  const portwave_port left[] = {{spring, "right"}, {bar, "left"}};
  const portwave_port right[] = {{bar, "right"}, {load, "port"}};
  const portwave_port wall[] = {{spring, "left"}};
  EXPECT_EQ(portwave_builder_join(builder, "connection", left, 2, nullptr), PORTWAVE_OK);
  EXPECT_EQ(portwave_builder_join(builder, "common_flow", right, 2, nullptr), PORTWAVE_OK);
  EXPECT_EQ(portwave_builder_join(builder, "fixed", wall, 1, nullptr), PORTWAVE_OK);
  EXPECT_EQ(
      portwave_builder_set(builder, "/method", R"({"kind": "interface", "tolerance": 1e-12})"),
      PORTWAVE_OK);
  return builder;
}

TEST(Builder, CutsAPartThatKeepsItsNames) {
  const char* const names[] = {"bar.q1", "bar.q20", "bar.v40", "bar.right.flow", "load.velocity"};
  std::vector<double> whole;
  for (const int pieces : {0, 1, 4}) {
    portwave_builder* builder = line(pieces);
    portwave_simulation* own = built(builder);
    ASSERT_NE(own, nullptr) << pieces;
    ASSERT_EQ(portwave_step_n(own, 300), PORTWAVE_OK) << portwave_last_error();
    std::vector<double> values;
    for (const char* name : names) {
      const int quantity = portwave_find_quantity(own, name);
      ASSERT_GE(quantity, 0) << name << " in " << pieces << ": " << portwave_last_error();
      values.push_back(portwave_read(own, quantity));
    }
    if (pieces == 0) {
      whole = values;
      EXPECT_GT(std::abs(whole[0]), 1e-3) << "control: nothing has come so far";
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(values[i], whole[i], 1e-7) << names[i] << " in " << pieces;
    }
    // Control: of four pieces there are more parts.
    double unused = 0.0;
    const portwave_status found = portwave_get_parameter(own, "bar.mass_kg", &unused);
    EXPECT_EQ(found == PORTWAVE_OK, pieces == 0) << pieces;
    portwave_free(own);
    portwave_builder_free(builder);
  }
}

TEST(Builder, SaysWhatCannotBeCut) {
  portwave_builder* builder = line(0);
  EXPECT_EQ(portwave_builder_cut(nullptr, 1, 2), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_builder_cut(builder, 1, 0), PORTWAVE_OK);  // building reports it
  EXPECT_EQ(portwave_builder_cut(builder, 77, 2), PORTWAVE_INVALID_ARGUMENT);
  portwave_simulation* simulation = nullptr;
  EXPECT_EQ(portwave_builder_build(builder, nullptr, &simulation), PORTWAVE_CONFIG_ERROR);
  const std::string message = portwave_last_error();
  EXPECT_NE(message.find("/subsystems/1/cut"), std::string::npos) << message;
  EXPECT_NE(message.find("\"bar\""), std::string::npos) << message;
  EXPECT_NE(message.find("no part of number 77"), std::string::npos) << message;
  portwave_builder_free(builder);
}

TEST(Builder, LetsParametersFollowSignals) {
  portwave_builder* builder = pair();
  const char* const follows = R"({"kind": "signal", "signal": "damping"})";
  const char* const signals =
      R"json({"blocks": [{"name": "damping", "kind": "expression", "expression": "0.5 + if(v > 0, 2, 0)",
               "signals": {"v": "B.velocity"}}]})json";
  EXPECT_EQ(portwave_builder_set_input(builder, 1, "damping_Ns_per_m", follows), PORTWAVE_OK);
  EXPECT_EQ(portwave_builder_set(builder, "/signals", signals), PORTWAVE_OK);
  portwave_simulation* own = built(builder);
  double damping = 0.0;
  EXPECT_EQ(portwave_step(own), PORTWAVE_OK) << portwave_last_error();
  EXPECT_EQ(portwave_get_parameter(own, "S.damping_Ns_per_m", &damping), PORTWAVE_OK);
  EXPECT_EQ(damping, 2.5);
  for (int n = 0; n < 200 && damping == 2.5; ++n) {
    EXPECT_EQ(portwave_step(own), PORTWAVE_OK) << portwave_last_error();
    portwave_get_parameter(own, "S.damping_Ns_per_m", &damping);
  }
  EXPECT_EQ(damping, 0.5) << "B has turned round";
  portwave_free(own);
  portwave_builder_free(builder);
}

TEST(Builder, TellsWhatIsProbablyNotMeant) {
  portwave_builder* builder = nullptr;
  EXPECT_EQ(portwave_builder_new("shafts", 0.01, &builder), PORTWAVE_OK);
  const int a = portwave_builder_add(builder, "a", "inertia", R"({"inertia_kgm2": 1})");
  const int b = portwave_builder_add(builder, "b", "inertia", R"({"inertia_kgm2": 2})");
  EXPECT_EQ(portwave_builder_connect(builder, a, "shaft", b, "shaft"), PORTWAVE_OK);
  portwave_simulation* against = built(builder);
  ASSERT_EQ(portwave_note_count(against), 1U);
  EXPECT_EQ(std::string(portwave_note_where(against, 0)), "/couplings/0");
  EXPECT_NE(std::string(portwave_note_text(against, 0)).find("against"), std::string::npos);
  EXPECT_EQ(std::string(portwave_note_text(against, 1)), "");
  EXPECT_EQ(portwave_note_count(nullptr), 0U);
  portwave_builder* other = pair();
  portwave_simulation* together = built(other);
  EXPECT_EQ(portwave_note_count(together), 0U);
  for (portwave_simulation* each : {against, together}) portwave_free(each);
  for (portwave_builder* each : {builder, other}) portwave_builder_free(each);
}

TEST(Builder, ReportsEveryDefectAtOnceAndNamesTheParts) {
  portwave_builder* builder = pair();
  EXPECT_EQ(portwave_builder_set_parameter(builder, 0, "mass_kg", -1.0), PORTWAVE_OK);
  EXPECT_EQ(portwave_builder_set_state(builder, 2, "speed", 1.0), PORTWAVE_OK);
  const int torn = portwave_builder_add(builder, "torn", "spring", "{\"stiffness");
  EXPECT_EQ(torn, 3);
  EXPECT_NE(std::string(portwave_last_error()).find("is no JSON"), std::string::npos);
  portwave_builder_add(builder, "s", "spring", "{\"stiffness_N_per_m\": 1, \"stiffness\": 1}");
  EXPECT_EQ(portwave_builder_connect(builder, 77, "port", torn, "left"), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_builder_set(builder, "/method", "{"), PORTWAVE_INVALID_ARGUMENT);
  for (const char* taken : {"", "/name", "/subsystems", "/subsystems/0", "/subsystems/0/name",
                            "/subsystems/9/substeps", "/couplings/0", "time"}) {
    EXPECT_EQ(portwave_builder_set(builder, taken, "3"), PORTWAVE_INVALID_ARGUMENT) << taken;
  }
  portwave_simulation* simulation = nullptr;
  EXPECT_EQ(portwave_builder_build(builder, nullptr, &simulation), PORTWAVE_CONFIG_ERROR);
  EXPECT_EQ(simulation, nullptr);
  std::string all;
  for (std::size_t i = 0; i < portwave_issue_count(); ++i) {
    all += std::string(portwave_issue_where(i)) + ": " + portwave_issue_text(i) + "\n";
  }
  for (const char* expected :
       {"/subsystems/0/parameters/mass_kg: \"A\" (mass): must be > 0 kg, got -1",
        "/subsystems/2/initial_state/speed: \"B\" (mass): mass has no state \"speed\"",
        "/subsystems/3/parameters: \"torn\" (spring): is no JSON: \"{\"stiffness\"\n",
        "/subsystems/4/parameters/stiffness: \"s\" (spring): spring has no parameter \"stiffness\"",
        "/couplings/3/ports/0: there is no part of number 77\n", "/method: is no JSON"}) {
    EXPECT_NE(all.find(expected), std::string::npos) << expected << "\nin\n" << all;
  }
  EXPECT_EQ(all.find("is required"), std::string::npos) << "an echo\n" << all;
  portwave_builder_free(builder);
  portwave_builder_free(nullptr);
  EXPECT_EQ(portwave_builder_new(nullptr, 0.1, &builder), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_builder_add(nullptr, "a", "mass", nullptr), -1);
}

TEST(Options, ADeadlineIsKeptAndAnArenaIsShared) {
  portwave_arena* arena = nullptr;
  ASSERT_EQ(portwave_arena_new(2, &arena), PORTWAVE_OK);
  EXPECT_EQ(portwave_arena_new(0, &arena), PORTWAVE_INVALID_ARGUMENT);
  ASSERT_EQ(portwave_arena_new(2, &arena), PORTWAVE_OK);
  portwave_options options{};
  options.size = sizeof options;
  options.threads = 2;
  options.deadline_s = 0.5;
  options.arena = arena;
  portwave_builder* builder = pair();
  portwave_simulation* hurried = built(builder, &options);
  portwave_arena_free(arena);  // the simulation keeps it
  portwave_simulation* free = built(builder);
  portwave_deadline deadline{};
  deadline.size = sizeof deadline;
  EXPECT_EQ(portwave_get_deadline(free, &deadline), PORTWAVE_NOT_POSSIBLE);
  (void)states_after(hurried, 20);
  ASSERT_EQ(portwave_get_deadline(hurried, &deadline), PORTWAVE_OK);
  EXPECT_EQ(deadline.steps, 20);
  EXPECT_LE(deadline.worst_slack_s, 0.5);
  EXPECT_EQ(deadline.guard_misses + deadline.late_misses + deadline.trial_misses, 0);
  EXPECT_GE(deadline.unused_share, 0.0);
  EXPECT_EQ(deadline.jitter_s, deadline.slack_p99_s - deadline.slack_p01_s);
  // Of an older caller, whose structure ends before these.
  portwave_deadline old{};
  old.size = offsetof(portwave_deadline, guard_misses);
  old.guard_misses = 7;
  ASSERT_EQ(portwave_get_deadline(hurried, &old), PORTWAVE_OK);
  EXPECT_EQ(old.steps, 20);
  EXPECT_EQ(old.guard_misses, 7);
  options.deadline_s = -1.0;
  portwave_simulation* none = nullptr;
  options.arena = nullptr;
  EXPECT_EQ(portwave_builder_build(builder, &options, &none), PORTWAVE_CONFIG_ERROR);
  EXPECT_NE(std::string(portwave_last_error()).find("deadline_s"), std::string::npos);
  EXPECT_NE(std::string(portwave_last_error()).find("got -1 s"), std::string::npos);
  options.deadline_s = 0.0;
  options.threads = -1;
  EXPECT_EQ(portwave_builder_build(builder, &options, &none), PORTWAVE_INVALID_ARGUMENT);
  options.size = 0;
  EXPECT_EQ(portwave_builder_build(builder, &options, &none), PORTWAVE_INVALID_ARGUMENT);
  // Of an older caller, which knows the size and the threads alone.
  options.size = offsetof(portwave_options, deadline_s);
  options.threads = 1;
  options.deadline_s = -1.0;
  EXPECT_EQ(portwave_parse_with(kPairText, nullptr, nullptr, 0, &options, &none), PORTWAVE_OK);
  for (portwave_simulation* each : {hurried, free, none}) portwave_free(each);
  portwave_builder_free(builder);
}

TEST(Options, ForeignCodeIsLoadedOnlyWhereThatIsAllowed) {
  constexpr const char* kForeign =
      R"({"time": {"step_s": 0.01, "end_s": 1}, "subsystems":
          [{"name": "a", "type": "fmu", "path": "nowhere.fmu"}]})";
  portwave_simulation* none = nullptr;
  const auto refusal = [&](const portwave_options* options) {
    EXPECT_EQ(portwave_parse_with(kForeign, nullptr, nullptr, 0, options, &none),
              PORTWAVE_CONFIG_ERROR);
    return std::string(portwave_last_error());
  };
  portwave_options options{};
  options.size = sizeof options;
  for (const portwave_options* each : {static_cast<const portwave_options*>(nullptr),
                                       static_cast<const portwave_options*>(&options)}) {
    EXPECT_NE(refusal(each).find("portwave_options.allow_plugins"), std::string::npos);
  }
  options.allow_plugins = 1;
  EXPECT_EQ(refusal(&options).find("allow_plugins"), std::string::npos) << portwave_last_error();
  options.size = offsetof(portwave_options, allow_plugins);  // of an older caller
  EXPECT_NE(refusal(&options).find("allow_plugins"), std::string::npos);
}

TEST(Networks, StepsOfNoLengthAndNumbersOfNoQuantityAreRefusedAtOnce) {
  for (const double step_s : {0.0, -1.0, std::nan("")}) {
    portwave_builder* builder = nullptr;
    EXPECT_EQ(portwave_builder_new("none", step_s, &builder), PORTWAVE_INVALID_ARGUMENT);
    EXPECT_EQ(builder, nullptr);
    EXPECT_NE(std::string(portwave_last_error()).find("step_s"), std::string::npos);
  }
  portwave_builder* builder = pair();
  portwave_simulation* simulation = built(builder);
  EXPECT_EQ(portwave_find_input(simulation, "A.frce"), -1);  // an error of its own
  EXPECT_TRUE(std::isnan(portwave_read(simulation, 99)));
  EXPECT_STREQ(portwave_last_error(), "there is no quantity of number 99");
  EXPECT_EQ(portwave_set_parameter(simulation, "A.mass_kg", -1.0), PORTWAVE_CONFIG_ERROR);
  EXPECT_NE(std::string(portwave_last_error()).find("\"A\" (mass)"), std::string::npos);
  portwave_free(simulation);
  portwave_builder_free(builder);
}

TEST(Ensemble, ReplicasAreTheSimulationsWithTheirParameters) {
  portwave_builder* builder = pair();
  portwave_simulation* one = built(builder);
  const char* const names[] = {"B.mass_kg", "S.stiffness_N_per_m"};
  const double values[] = {1, 50, 2, 60, 3, 70};
  portwave_ensemble* ensemble = nullptr;
  ASSERT_EQ(portwave_ensemble_new(one, 3, names, 2, values, nullptr, &ensemble), PORTWAVE_OK)
      << portwave_last_error();
  EXPECT_EQ(portwave_ensemble_replicas(ensemble), 3);
  ASSERT_EQ(portwave_ensemble_state_count(ensemble), portwave_state_count(one));
  ASSERT_EQ(portwave_ensemble_input_count(ensemble), 1);
  const double inputs[] = {3, 3, 3};
  EXPECT_EQ(portwave_ensemble_set_inputs(ensemble, inputs, 3), PORTWAVE_OK);
  EXPECT_EQ(portwave_ensemble_set_inputs(ensemble, inputs, 2), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_ensemble_step_n(ensemble, 50), PORTWAVE_OK);
  EXPECT_EQ(portwave_ensemble_step_index(ensemble), 50);
  const std::size_t n = portwave_ensemble_state_count(ensemble);
  std::vector<double> x(3 * n);
  EXPECT_EQ(portwave_ensemble_states(ensemble, x.data(), x.size()), PORTWAVE_OK);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(portwave_builder_set_parameter(builder, 2, "mass_kg", values[2 * i]), PORTWAVE_OK);
    EXPECT_EQ(portwave_builder_set_parameter(builder, 1, "stiffness_N_per_m", values[2 * i + 1]),
              PORTWAVE_OK);
    portwave_simulation* alone = built(builder);
    const std::vector<double> expected = states_after(alone, 50);
    EXPECT_EQ(std::vector<double>(x.begin() + i * n, x.begin() + (i + 1) * n), expected) << i;
    portwave_free(alone);
  }
  portwave_energy energy{};
  energy.size = sizeof energy;
  EXPECT_EQ(portwave_ensemble_get_energy(ensemble, 2, &energy), PORTWAVE_OK);
  EXPECT_GT(energy.supplied_J, 0.0);
  EXPECT_EQ(portwave_ensemble_get_energy(ensemble, 3, &energy), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_ensemble_failures(ensemble), 0);
  EXPECT_STREQ(portwave_ensemble_error(ensemble, 0), "");
  std::vector<double> start(3 * n, 0.0), now(3 * n, -1.0);
  start[n] = 0.5;  // a position of the second
  EXPECT_EQ(portwave_ensemble_set_states(ensemble, start.data(), start.size()), PORTWAVE_OK);
  EXPECT_EQ(portwave_ensemble_step_index(ensemble), 0);
  EXPECT_EQ(portwave_ensemble_step_n(ensemble, 0), PORTWAVE_OK);
  EXPECT_EQ(portwave_ensemble_states(ensemble, now.data(), now.size()), PORTWAVE_OK);
  EXPECT_EQ(now, start);
  EXPECT_EQ(portwave_ensemble_set_states(ensemble, start.data(), 3), PORTWAVE_INVALID_ARGUMENT);
  // The same run with its inputs given, and the states kept at every tenth step.
  const std::vector<double> u(3 * 50, 3.0);
  std::vector<double> rows(3 * 5 * n), first(3 * n);
  for (std::size_t i = 0; i < 3; ++i) first[i * n + 1] = first[i * n + 4] = 1.0;
  EXPECT_EQ(
      portwave_ensemble_rollout(ensemble, first.data(), u.data(), 50, 10, rows.data(), rows.size()),
      PORTWAVE_OK)
      << portwave_last_error();
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t k = 0; k < n; ++k) EXPECT_EQ(rows[(i * 5 + 4) * n + k], x[i * n + k]);
  }
  EXPECT_EQ(portwave_ensemble_rollout(ensemble, nullptr, nullptr, 50, 10, rows.data(), 3),
            PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_ensemble_rollout(ensemble, nullptr, nullptr, -1, 1, rows.data(), 3),
            PORTWAVE_INVALID_ARGUMENT);
  portwave_ensemble_free(ensemble);
  const double bad[] = {-1.0};
  EXPECT_EQ(portwave_ensemble_new(one, 1, names, 1, bad, nullptr, &ensemble),
            PORTWAVE_CONFIG_ERROR);
  EXPECT_EQ(ensemble, nullptr);
  portwave_ensemble_free(nullptr);
  portwave_free(one);
  portwave_builder_free(builder);
}

/// The account closes with what damped steps took, and runs go on from snapshots and in ensembles with the same bits.
TEST(DampedSteps, AreSteppedAndTold) {
  std::vector<double> conserving;
  for (int stages = 0; stages <= 3; ++stages) {  // 0: one that conserves
    const std::string method =
        stages == 0 ? R"(/method={"kind": "auto", "integrator": "gauss"})"
                    : R"(/method={"kind": "auto", "integrator": "damped", "stages": )" +
                          std::to_string(stages) + "}";
    const char* const overrides[] = {method.c_str()};
    portwave_simulation* own = nullptr;
    ASSERT_EQ(portwave_parse(kPairText, nullptr, overrides, 1, &own), PORTWAVE_OK)
        << portwave_last_error();
    portwave_ensemble* ensemble = nullptr;
    ASSERT_EQ(portwave_ensemble_new(own, 2, nullptr, 0, nullptr, nullptr, &ensemble), PORTWAVE_OK)
        << portwave_last_error();
    portwave_snapshot* snapshot = nullptr;
    ASSERT_EQ(portwave_snapshot_new(&snapshot), PORTWAVE_OK);
    states_after(own, 30);
    ASSERT_EQ(portwave_snapshot_save(own, snapshot), PORTWAVE_OK);
    const std::vector<double> x = states_after(own, 70);
    portwave_energy energy{};
    energy.size = sizeof energy;
    ASSERT_EQ(portwave_get_energy(own, &energy), PORTWAVE_OK);
    EXPECT_NEAR(energy.final_J - energy.initial_J,
                energy.supplied_J - energy.dissipated_J - energy.numerical_dissipation_J -
                    energy.mismatch_J - energy.impact_J,
                1e-12 * energy.initial_J)
        << stages;
    EXPECT_EQ(energy.certificate, 0);
    if (stages == 0) {
      conserving = x;
      EXPECT_EQ(energy.numerical_dissipation_J, 0.0);
    } else {
      EXPECT_GT(energy.numerical_dissipation_J, 1e-12 * energy.initial_J) << stages;
      EXPECT_NE(x, conserving) << stages;
    }
    ASSERT_EQ(portwave_restore(own, snapshot), PORTWAVE_OK) << portwave_last_error();
    EXPECT_EQ(states_after(own, 70), x) << stages;
    const double inputs[] = {3, 3};
    EXPECT_EQ(portwave_ensemble_set_inputs(ensemble, inputs, 2), PORTWAVE_OK);
    EXPECT_EQ(portwave_ensemble_step_n(ensemble, 100), PORTWAVE_OK);
    std::vector<double> both(2 * x.size());
    EXPECT_EQ(portwave_ensemble_states(ensemble, both.data(), both.size()), PORTWAVE_OK);
    EXPECT_EQ(std::vector<double>(both.begin(), both.begin() + x.size()), x) << stages;
    EXPECT_EQ(std::vector<double>(both.begin() + x.size(), both.end()), x) << stages;
    portwave_energy of_replica{};
    of_replica.size = sizeof of_replica;
    EXPECT_EQ(portwave_ensemble_get_energy(ensemble, 1, &of_replica), PORTWAVE_OK);
    EXPECT_EQ(of_replica.numerical_dissipation_J, energy.numerical_dissipation_J) << stages;
    portwave_ensemble_free(ensemble);
    portwave_snapshot_free(snapshot);
    portwave_free(own);
  }
}

TEST(Plugins, ThoseThatBringPortwaveAreLoaded) {
  EXPECT_EQ(portwave_load_plugin("there/is/none.so"), PORTWAVE_CONFIG_ERROR);
  EXPECT_EQ(portwave_load_plugin(nullptr), PORTWAVE_INVALID_ARGUMENT);
  ASSERT_EQ(portwave_load_plugin(PORTWAVE_PLUGINS "/solenoid_with_copy.so"), PORTWAVE_OK)
      << portwave_last_error();
  portwave_builder* builder = nullptr;
  ASSERT_EQ(portwave_builder_new("coil", 1e-4, &builder), PORTWAVE_OK);
  const int coil = portwave_builder_add(builder, "coil", "solenoid", nullptr);
  EXPECT_EQ(portwave_builder_set_parameter(builder, coil, "no_such_parameter", 1.0), PORTWAVE_OK);
  portwave_simulation* simulation = nullptr;
  EXPECT_EQ(portwave_builder_build(builder, nullptr, &simulation), PORTWAVE_CONFIG_ERROR);
  EXPECT_NE(std::string(portwave_last_error()).find("solenoid has no parameter"), std::string::npos)
      << portwave_last_error();
  portwave_builder_free(builder);
}

}  // namespace
