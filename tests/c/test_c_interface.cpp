// The C interface as a C program sees it: statuses, texts, and the numbers of the C++ one.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "portwave.h"

namespace {

constexpr const char* kServo = "examples/embedding/servo.json";

class Servo : public ::testing::Test {
 protected:
  Servo() { EXPECT_EQ(portwave_load(kServo, nullptr, 0, &servo_), PORTWAVE_OK) << error(); }
  ~Servo() override { portwave_free(servo_); }
  static std::string error() { return portwave_last_error(); }
  double read(const char* name) {
    return portwave_read(servo_, portwave_find_quantity(servo_, name));
  }

  portwave_simulation* servo_ = nullptr;
};

/// The states of a pair after some steps, by a file that ends with `method`.
std::vector<double> states_with(const std::string& method) {
  const std::string text = R"json({"name": "pair", "time": {"step_s": 0.01, "end_s": 1},
    "subsystems": [
      {"name": "A", "type": "linear_oscillator", "initial_state": {"q2": 0.4},
       "parameters": {"mass_kg": 8, "stiffness_N_per_m": 100}},
      {"name": "S", "type": "spring_damper",
       "parameters": {"stiffness_N_per_m": 120, "damping_Ns_per_m": 0.5}}],
    "couplings": [{"kind": "connection", "ports": ["A.coupling", "S.left"]},
                  {"kind": "fixed", "ports": ["S.right"]}])json" +
                           method + "}";
  portwave_simulation* simulation = nullptr;
  EXPECT_EQ(portwave_parse(text.c_str(), nullptr, nullptr, 0, &simulation), PORTWAVE_OK)
      << portwave_last_error();
  EXPECT_EQ(portwave_step_n(simulation, 50), PORTWAVE_OK);
  std::vector<double> states(portwave_state_count(simulation));
  EXPECT_EQ(portwave_states(simulation, states.data(), states.size()), PORTWAVE_OK);
  portwave_free(simulation);
  return states;
}

TEST(Defaults, AFileWithoutAMethodMeansAutoWithTheGuard) {
  const std::vector<double> usual = states_with("");
  EXPECT_EQ(usual,
            states_with(R"(, "method": {"kind": "auto", "guard": true, "tolerance": 1e-10})"));
  EXPECT_NE(usual, states_with(R"(, "method": {"kind": "douglas-rachford", "iterations": 3,
                                   "impedance": {"kind": "uniform", "value": 1}})"));
}

TEST_F(Servo, StepsAndIsRead) {
  EXPECT_EQ(portwave_abi_version(), PORTWAVE_ABI_VERSION);
  ASSERT_EQ(portwave_input_count(servo_), 1);
  const int voltage = portwave_find_input(servo_, "supply.effort");
  ASSERT_EQ(voltage, 0);
  EXPECT_EQ(portwave_set_input(servo_, voltage, 12.0), PORTWAVE_OK);
  EXPECT_EQ(portwave_get_input(servo_, voltage), 12.0);
  EXPECT_EQ(portwave_step_n(servo_, -1), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_step_n(servo_, 1000), PORTWAVE_OK);
  EXPECT_EQ(portwave_step_index(servo_), 1000);
  EXPECT_DOUBLE_EQ(portwave_time(servo_), 1.0);
  // At rest in the long run: 12 V / (0.05 V s/rad) = 240 rad/s, by the gear 4.8 rad/s.
  EXPECT_NEAR(read("motor.speed"), 240.0, 2.0);
  EXPECT_EQ(std::string(portwave_unit(servo_, portwave_find_quantity(servo_, "load.angle"))),
            "rad");
  EXPECT_EQ(portwave_find_quantity(servo_, "load.angle"),
            portwave_find_quantity(servo_, "load.angle"));

  std::vector<double> x(portwave_state_count(servo_));
  EXPECT_EQ(portwave_states(servo_, x.data(), x.size()), PORTWAVE_OK);
  EXPECT_NE(std::count(x.begin(), x.end(), read("load.angle")), 0);

  portwave_energy energy{};
  energy.size = sizeof energy;
  EXPECT_EQ(portwave_get_energy(servo_, &energy), PORTWAVE_OK);
  EXPECT_GT(energy.supplied_J, energy.final_J);
  EXPECT_NEAR(energy.final_J - energy.initial_J,
              energy.supplied_J - energy.dissipated_J - energy.mismatch_J,
              1e-9 * energy.supplied_J);
  EXPECT_EQ(energy.impact_J, 0.0);
  // A program that was compiled before there was this member.
  portwave_energy older{};
  older.size = offsetof(portwave_energy, impact_J);
  older.impact_J = 7.0;
  EXPECT_EQ(portwave_get_energy(servo_, &older), PORTWAVE_OK);
  EXPECT_EQ(older.supplied_J, energy.supplied_J);
  EXPECT_EQ(older.impact_J, 7.0);
  portwave_report report{};
  report.size = sizeof report;
  EXPECT_EQ(portwave_get_report(servo_, &report), PORTWAVE_OK);
  EXPECT_EQ(report.step_s, 0.001);
}

TEST_F(Servo, SaysOfWhichPartAStepFailedAndFromWhere) {
  EXPECT_EQ(portwave_set_input(servo_, 0, 1e308), PORTWAVE_OK);
  ASSERT_EQ(portwave_step_n(servo_, 1000), PORTWAVE_STEP_ERROR);
  EXPECT_NE(error().find(portwave_failed_part()), std::string::npos) << error();
  EXPECT_NE(std::strlen(portwave_failed_part()), 0U);
  double first[2] = {-7.0, -7.0};
  const std::size_t states = portwave_failed_state(first, 1);
  EXPECT_EQ(first[1], -7.0) << "no more than there is room for";
  std::vector<double> x(states);
  EXPECT_EQ(portwave_failed_state(x.data(), x.size()), states);
  EXPECT_EQ(portwave_failed_state(nullptr, 0), states);
  if (states > 0) {
    EXPECT_EQ(first[0], x[0]);
  }

  // A force that is infinite after six steps; before, the state is where it began or near.
  constexpr const char* kFar = R"json({"name": "far", "time": {"step_s": 0.01, "end_s": 1},
    "subsystems": [{"name": "m", "type": "linear_oscillator",
      "parameters": {"mass_kg": 1, "stiffness_N_per_m": 1}, "initial_state": {"q2": 0.5},
      "inputs": {"force": {"kind": "expression", "expression": "if(t < 0.055, 0, 1e308*10)"}}}],
    "couplings": [{"kind": "free", "ports": ["m.coupling"]}], "method": {"kind": "auto"}})json";
  portwave_simulation* far = nullptr;
  ASSERT_EQ(portwave_parse(kFar, nullptr, nullptr, 0, &far), PORTWAVE_OK) << error();
  ASSERT_EQ(portwave_step_n(far, 100), PORTWAVE_STEP_ERROR);
  EXPECT_STREQ(portwave_failed_part(), "m");
  ASSERT_EQ(portwave_failed_state(first, 2), 2U);
  EXPECT_NEAR(first[0], 0.5, 0.01);
  EXPECT_TRUE(std::isnan(portwave_failed_residual()));
  ASSERT_EQ(portwave_failed_inputs(first, 2), 1U);
  EXPECT_TRUE(std::isinf(first[0]));
  EXPECT_NE(error().find("its input \"force\" is not a finite number"), std::string::npos)
      << error();
  EXPECT_EQ(portwave_failed_waves(nullptr, 0), 0U);
  portwave_free(far);
}

TEST_F(Servo, GoesBackAndIsCloned) {
  portwave_set_input(servo_, 0, 5.0);
  portwave_step_n(servo_, 100);
  portwave_snapshot* snapshot = nullptr;
  ASSERT_EQ(portwave_snapshot_new(&snapshot), PORTWAVE_OK);
  EXPECT_EQ(portwave_restore(servo_, snapshot), PORTWAVE_INVALID_ARGUMENT) << "empty";
  ASSERT_EQ(portwave_snapshot_save(servo_, snapshot), PORTWAVE_OK);
  portwave_simulation* clone = nullptr;
  ASSERT_EQ(portwave_clone(servo_, &clone), PORTWAVE_OK);
  portwave_step_n(servo_, 200);
  const double angle = read("load.angle");
  portwave_set_input(servo_, 0, -20.0);
  portwave_run_until(servo_, 0.55);
  EXPECT_NE(read("load.angle"), angle);
  ASSERT_EQ(portwave_restore(servo_, snapshot), PORTWAVE_OK);
  EXPECT_EQ(portwave_get_input(servo_, 0), 5.0);
  portwave_step_n(servo_, 200);
  EXPECT_EQ(read("load.angle"), angle);
  EXPECT_EQ(portwave_set_threads(clone, 2), PORTWAVE_OK);
  portwave_step_n(clone, 200);
  EXPECT_EQ(portwave_read(clone, portwave_find_quantity(clone, "load.angle")), angle);
  portwave_free(clone);
  portwave_snapshot_free(snapshot);
}

TEST_F(Servo, SaysWhatIsWrong) {
  portwave_simulation* none = servo_;
  EXPECT_EQ(portwave_load("no such file.json", nullptr, 0, &none), PORTWAVE_CONFIG_ERROR);
  EXPECT_EQ(none, nullptr);
  EXPECT_NE(error().find("no such file"), std::string::npos);
  const char* const wrong[] = {"/time/step_s=-1", "/subsystems/3/parameters/inertia_kgm2=0"};
  EXPECT_EQ(portwave_load(kServo, wrong, 2, &none), PORTWAVE_CONFIG_ERROR);
  ASSERT_EQ(portwave_issue_count(), 2U) << error();
  EXPECT_EQ(std::string(portwave_issue_where(0)), "/time/step_s");
  EXPECT_NE(std::strlen(portwave_issue_text(1)), 0U);
  EXPECT_EQ(std::string(portwave_issue_text(2)), "");
  EXPECT_EQ(portwave_parse("{", nullptr, nullptr, 0, &none), PORTWAVE_CONFIG_ERROR);
  const char* const no_equals[] = {"/time/step_s"};
  EXPECT_EQ(portwave_load(kServo, no_equals, 1, &none), PORTWAVE_INVALID_ARGUMENT);

  EXPECT_EQ(portwave_find_input(servo_, "supply.efort"), -1);
  EXPECT_NE(error().find("Did you mean \"supply.effort\""), std::string::npos) << error();
  EXPECT_EQ(portwave_find_quantity(servo_, "load.angel"), -1);
  EXPECT_NE(error().find("load.angle"), std::string::npos) << error();
  EXPECT_EQ(portwave_set_input(servo_, 7, 1.0), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_set_input(servo_, 0, std::nan("")), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_TRUE(std::isnan(portwave_read(servo_, 99)));
  EXPECT_TRUE(std::isnan(portwave_get_input(servo_, -1)));
  EXPECT_EQ(portwave_step_by(servo_, -1.0), PORTWAVE_INVALID_ARGUMENT);
  double one = 0.0;
  EXPECT_EQ(portwave_states(servo_, &one, 1), PORTWAVE_INVALID_ARGUMENT);
  portwave_energy unsized{};
  EXPECT_EQ(portwave_get_energy(servo_, &unsized), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_step_index(servo_), 0);
}

TEST(NullPointers, AreRefused) {
  EXPECT_EQ(portwave_load(nullptr, nullptr, 0, nullptr), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_step(nullptr), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_step_n(nullptr, 1), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_clone(nullptr, nullptr), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_snapshot_save(nullptr, nullptr), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_find_input(nullptr, nullptr), -1);
  EXPECT_TRUE(std::isnan(portwave_time(nullptr)));
  portwave_free(nullptr);
  portwave_snapshot_free(nullptr);
}

// A structure of a program that was compiled when it had fewer members.
TEST_F(Servo, FillsAsMuchOfAStructureAsTheCallerKnows) {
  struct {
    portwave_energy known;
    double beyond;
  } own{};
  own.known.size = offsetof(portwave_energy, supplied_J);
  own.known.supplied_J = -7.0;
  portwave_set_input(servo_, 0, 5.0);
  portwave_step_n(servo_, 10);
  EXPECT_EQ(portwave_get_energy(servo_, &own.known), PORTWAVE_OK);
  EXPECT_GT(own.known.final_J, 0.0);
  EXPECT_EQ(own.known.supplied_J, -7.0);
}

TEST_F(Servo, TellsAnObserverWhichMayStopIt) {
  struct Seen {
    int steps = 0;
  } seen;
  const portwave_observer stop_at_five = [](portwave_simulation* simulation, void* context) {
    auto* own = static_cast<Seen*>(context);
    ++own->steps;
    return portwave_step_index(simulation) >= 5 ? 1 : 0;
  };
  EXPECT_EQ(portwave_set_observer(servo_, stop_at_five, &seen), PORTWAVE_OK);
  EXPECT_EQ(portwave_step_n(servo_, 100), PORTWAVE_NOT_POSSIBLE);
  EXPECT_EQ(error(), "stopped by the observer");
  EXPECT_EQ(seen.steps, 5);
  EXPECT_EQ(portwave_step_index(servo_), 5);
  portwave_set_observer(servo_, nullptr, nullptr);
  EXPECT_EQ(portwave_step_n(servo_, 5), PORTWAVE_OK);
}

std::vector<double> states_of(const portwave_simulation* simulation) {
  std::vector<double> x(portwave_state_count(simulation));
  EXPECT_EQ(portwave_states(simulation, x.data(), x.size()), PORTWAVE_OK);
  x.push_back(portwave_time(simulation));
  x.push_back(static_cast<double>(portwave_step_index(simulation)));
  return x;
}

// What an observer tries: a status that is not the one that is expected, or an infinite recursion.
struct Tries {
  portwave_status (*act)(portwave_simulation*, portwave_snapshot*);
  portwave_snapshot* snapshot = nullptr;
  int calls = 0;
  portwave_status status = PORTWAVE_OK;
  std::string said = {};
};
int try_once(portwave_simulation* simulation, void* context) {
  auto& own = *static_cast<Tries*>(context);
  if (own.calls++ > 0) return 0;
  own.status = own.act(simulation, own.snapshot);
  own.said = portwave_last_error();
  return 0;
}

TEST_F(Servo, AnObserverCannotStepOrChangeWhatCallsIt) {
  using Act = portwave_status (*)(portwave_simulation*, portwave_snapshot*);
  const std::vector<std::pair<const char*, Act>> refused = {
      {"step", [](portwave_simulation* s, portwave_snapshot*) { return portwave_step(s); }},
      {"step_by",
       [](portwave_simulation* s, portwave_snapshot*) { return portwave_step_by(s, 1e-4); }},
      {"run", [](portwave_simulation* s, portwave_snapshot*) { return portwave_step_n(s, 1); }},
      {"run 0", [](portwave_simulation* s, portwave_snapshot*) { return portwave_step_n(s, 0); }},
      {"run_until",
       [](portwave_simulation* s, portwave_snapshot*) { return portwave_run_until(s, 1.0); }},
      {"restore",
       [](portwave_simulation* s, portwave_snapshot* at) { return portwave_restore(s, at); }},
      {"threads",
       [](portwave_simulation* s, portwave_snapshot*) { return portwave_set_threads(s, 2); }},
      {"parameter",
       [](portwave_simulation* s, portwave_snapshot*) {
         return portwave_set_parameter(s, "load.inertia_kgm2", 1.0);
       }},
      {"free",
       [](portwave_simulation* s, portwave_snapshot*) {
         portwave_free(s);
         return PORTWAVE_NOT_POSSIBLE;  // it has no status: what counts is that all goes on
       }},
  };
  const std::vector<std::pair<const char*, Act>> allowed = {
      {"nothing", [](portwave_simulation*, portwave_snapshot*) { return PORTWAVE_OK; }},
      {"input",
       [](portwave_simulation* s, portwave_snapshot*) { return portwave_set_input(s, 0, 5.0); }},
      {"take", [](portwave_simulation* s,
                  portwave_snapshot* into) { return portwave_snapshot_save(s, into); }},
      {"clone",
       [](portwave_simulation* s, portwave_snapshot*) {
         portwave_simulation* clone = nullptr;
         const portwave_status status = portwave_clone(s, &clone);
         const portwave_status stepped = portwave_step(clone);  // another one may be stepped
         portwave_free(clone);
         return status == PORTWAVE_OK ? stepped : status;
       }},
  };
  portwave_snapshot *start = nullptr, *other = nullptr;
  ASSERT_EQ(portwave_snapshot_new(&start), PORTWAVE_OK);
  ASSERT_EQ(portwave_snapshot_new(&other), PORTWAVE_OK);
  portwave_set_input(servo_, 0, 5.0);
  ASSERT_EQ(portwave_step_n(servo_, 10), PORTWAVE_OK);
  ASSERT_EQ(portwave_snapshot_save(servo_, start), PORTWAVE_OK);
  ASSERT_EQ(portwave_snapshot_save(servo_, other), PORTWAVE_OK);
  ASSERT_EQ(portwave_step_n(servo_, 4), PORTWAVE_OK);
  const std::vector<double> expected = states_of(servo_);

  const auto after = [&](Act act, int how) {
    EXPECT_EQ(portwave_restore(servo_, start), PORTWAVE_OK);
    Tries tries = {act, other};
    EXPECT_EQ(portwave_set_observer(servo_, try_once, &tries), PORTWAVE_OK);
    portwave_status status = PORTWAVE_OK;
    if (how == 0) status = portwave_step_n(servo_, 4);
    if (how == 1) status = portwave_run_until(servo_, 0.014);
    for (int i = 0; how == 2 && i < 4; ++i) status = portwave_step(servo_);
    EXPECT_EQ(status, PORTWAVE_OK) << error();
    EXPECT_EQ(tries.calls, 4);
    EXPECT_EQ(portwave_set_observer(servo_, nullptr, nullptr), PORTWAVE_OK);
    EXPECT_EQ(states_of(servo_), expected);
    return tries;
  };
  for (int how = 0; how < 3; ++how) {
    for (const auto& [name, act] : refused) {
      const Tries tries = after(act, how);
      EXPECT_EQ(tries.status, PORTWAVE_NOT_POSSIBLE) << name;
      EXPECT_NE(tries.said.find("in a step"), std::string::npos) << name << ": " << tries.said;
    }
    for (const auto& [name, act] : allowed) {
      EXPECT_EQ(after(act, how).status, PORTWAVE_OK) << name << ": " << error();
    }
  }
  portwave_snapshot_free(start);
  portwave_snapshot_free(other);
}

TEST_F(Servo, NumbersThatNoRunCanUseAreRefusedAndChangeNothing) {
  portwave_set_input(servo_, 0, 5.0);
  ASSERT_EQ(portwave_step_n(servo_, 10), PORTWAVE_OK);
  const std::vector<double> before = states_of(servo_);
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double bad : {std::nan(""), infinity, -infinity, 1e300}) {
    EXPECT_EQ(portwave_run_until(servo_, bad), PORTWAVE_INVALID_ARGUMENT) << bad;
    EXPECT_FALSE(error().empty());
  }
  for (const double bad : {std::nan(""), infinity, -infinity, 0.0, -1.0}) {
    EXPECT_EQ(portwave_step_by(servo_, bad), PORTWAVE_INVALID_ARGUMENT) << bad;
  }
  for (const double bad : {std::nan(""), infinity, -infinity}) {
    EXPECT_EQ(portwave_set_input(servo_, 0, bad), PORTWAVE_INVALID_ARGUMENT) << bad;
    EXPECT_EQ(portwave_set_inputs(servo_, &bad, 1), PORTWAVE_INVALID_ARGUMENT) << bad;
    EXPECT_NE(portwave_set_parameter(servo_, "load.inertia_kgm2", bad), PORTWAVE_OK) << bad;
  }
  for (const std::int64_t bad : {std::int64_t{-1}, std::numeric_limits<std::int64_t>::min(),
                                 std::numeric_limits<std::int64_t>::max()}) {
    EXPECT_EQ(portwave_step_n(servo_, bad), PORTWAVE_INVALID_ARGUMENT) << bad;
  }
  const int most = std::numeric_limits<int>::max(), least = std::numeric_limits<int>::min();
  for (const int bad : {0, -1, 1025, most, least}) {
    EXPECT_EQ(portwave_set_threads(servo_, bad), PORTWAVE_INVALID_ARGUMENT) << bad;
  }
  double value = 0.0;
  for (const int bad : {-1, 99, most, least}) {
    EXPECT_EQ(portwave_set_input(servo_, bad, 1.0), PORTWAVE_INVALID_ARGUMENT) << bad;
    EXPECT_TRUE(std::isnan(portwave_get_input(servo_, bad))) << bad;
    EXPECT_TRUE(std::isnan(portwave_read(servo_, bad))) << bad;
    EXPECT_EQ(portwave_read_all(servo_, &bad, 1, &value), PORTWAVE_INVALID_ARGUMENT) << bad;
    EXPECT_STREQ(portwave_unit(servo_, bad), "") << bad;
  }
  EXPECT_EQ(portwave_set_inputs(servo_, &value, 2), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_set_inputs(servo_, &value, 0), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(states_of(servo_), before);
  EXPECT_EQ(portwave_get_input(servo_, 0), 5.0);
  // The control: what is sound is done.
  EXPECT_EQ(portwave_run_until(servo_, 0.02), PORTWAVE_OK);
  EXPECT_EQ(portwave_run_until(servo_, -1.0), PORTWAVE_OK);  // it is later already
  EXPECT_EQ(portwave_step_n(servo_, 0), PORTWAVE_OK);
  EXPECT_EQ(portwave_step_index(servo_), 20);
}

TEST_F(Servo, NullPointersAreRefusedWhereverOneMayBe) {
  EXPECT_EQ(portwave_parse(nullptr, nullptr, nullptr, 0, nullptr), PORTWAVE_INVALID_ARGUMENT);
  portwave_simulation* made = servo_;
  EXPECT_EQ(portwave_load(kServo, nullptr, 1, &made), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(made, nullptr);
  const char* const null_override[] = {nullptr};
  EXPECT_EQ(portwave_load(kServo, null_override, 1, &made), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_set_inputs(servo_, nullptr, 1), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_find_input(servo_, nullptr), -1);
  EXPECT_EQ(portwave_find_quantity(servo_, nullptr), -1);
  EXPECT_EQ(portwave_set_parameter(servo_, nullptr, 1.0), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_get_parameter(servo_, "load.inertia_kgm2", nullptr),
            PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_states(servo_, nullptr, 3), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_read_all(servo_, nullptr, 1, nullptr), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_get_energy(servo_, nullptr), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_get_report(servo_, nullptr), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_snapshot_new(nullptr), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_snapshot_save(servo_, nullptr), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_restore(servo_, nullptr), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_clone(servo_, nullptr), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_set_observer(nullptr, nullptr, nullptr), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_step_by(nullptr, 1.0), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_run_until(nullptr, 1.0), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_set_threads(nullptr, 1), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_state_count(nullptr), 0U);
  EXPECT_EQ(portwave_step_index(nullptr), -1);
  EXPECT_EQ(portwave_input_count(nullptr), -1);
  EXPECT_EQ(portwave_step_index(servo_), 0);
}

TEST_F(Servo, ChangesAParameterBetweenSteps) {
  double value = 0.0;
  portwave_set_input(servo_, 0, 12.0);
  EXPECT_EQ(portwave_step_n(servo_, 500), PORTWAVE_OK);
  EXPECT_EQ(portwave_get_parameter(servo_, "load.inertia_kgm2", &value), PORTWAVE_OK);
  const double angle = read("load.angle"), speed = read("load.speed"),
               stored = read("load.storage");
  EXPECT_EQ(portwave_set_parameter(servo_, "load.inertia_kgm2", 2.0 * value), PORTWAVE_OK);
  EXPECT_EQ(read("load.angle"), angle);
  EXPECT_EQ(read("load.speed"), speed);
  EXPECT_NEAR(read("load.storage"), 2.0 * stored, 1e-12 * stored);
  EXPECT_EQ(portwave_step_n(servo_, 10), PORTWAVE_OK);
  portwave_simulation* clone = nullptr;
  ASSERT_EQ(portwave_clone(servo_, &clone), PORTWAVE_OK) << error();
  double of_clone = 0.0;
  EXPECT_EQ(portwave_get_parameter(clone, "load.inertia_kgm2", &of_clone), PORTWAVE_OK);
  EXPECT_EQ(of_clone, 2.0 * value);
  portwave_free(clone);

  EXPECT_EQ(portwave_set_parameter(servo_, "load.inertia_kgm2", -1.0), PORTWAVE_CONFIG_ERROR);
  EXPECT_EQ(portwave_set_parameter(servo_, "load.inertia", 1.0), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_NE(error().find("inertia_kgm2"), std::string::npos) << error();
  EXPECT_EQ(portwave_set_parameter(servo_, nullptr, 1.0), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_get_parameter(servo_, "load.inertia_kgm2", nullptr),
            PORTWAVE_INVALID_ARGUMENT);
}

// Steps without waves that choose their size: on to a time, back to a snapshot, a clone, another parameter.
TEST(ChosenStepsWithoutWaves, AreSteppedLikeAllOthers) {
  const auto run = [](const char* method) {
    const std::string text = R"json({"name": "pair",
      "time": {"step": {"kind": "adaptive", "tolerance": 1e-8}, "end_s": 5},
      "subsystems": [
        {"name": "A", "type": "linear_oscillator",
         "parameters": {"mass_kg": 2, "stiffness_N_per_m": 50, "damping_Ns_per_m": 0.3},
         "initial_state": {"q2": 0.1},
         "inputs": {"force": {"kind": "settable", "initial": 1}}}],
      "couplings": [{"kind": "free", "ports": ["A.coupling"]}], "method": )json" +
                             std::string(method) + "}";
    portwave_simulation* simulation = nullptr;
    EXPECT_EQ(portwave_parse(text.c_str(), nullptr, nullptr, 0, &simulation), PORTWAVE_OK)
        << portwave_last_error();
    if (simulation == nullptr) return;
    const int place = portwave_find_quantity(simulation, "A.q2");
    EXPECT_EQ(portwave_run_until(simulation, 1.0), PORTWAVE_OK);
    portwave_snapshot* snapshot = nullptr;
    EXPECT_EQ(portwave_snapshot_new(&snapshot), PORTWAVE_OK);
    EXPECT_EQ(portwave_snapshot_save(simulation, snapshot), PORTWAVE_OK);
    portwave_simulation* clone = nullptr;
    EXPECT_EQ(portwave_clone(simulation, &clone), PORTWAVE_OK);
    EXPECT_EQ(portwave_set_parameter(simulation, "A.stiffness_N_per_m", 80.0), PORTWAVE_OK)
        << portwave_last_error();
    EXPECT_EQ(portwave_run_until(simulation, 2.0), PORTWAVE_OK);
    const double stiffer = portwave_read(simulation, place);
    EXPECT_EQ(portwave_restore(simulation, snapshot), PORTWAVE_OK) << portwave_last_error();
    double stiffness = 0.0;
    EXPECT_EQ(portwave_get_parameter(simulation, "A.stiffness_N_per_m", &stiffness), PORTWAVE_OK);
    EXPECT_EQ(stiffness, 50.0);
    EXPECT_EQ(portwave_run_until(simulation, 2.0), PORTWAVE_OK);
    EXPECT_EQ(portwave_run_until(clone, 2.0), PORTWAVE_OK);
    EXPECT_EQ(portwave_read(simulation, place), portwave_read(clone, place));
    EXPECT_GT(std::abs(stiffer - portwave_read(clone, place)), 1e-3) << "control";
    portwave_free(clone);
    portwave_free(simulation);
    portwave_snapshot_free(snapshot);
  };
  run(R"({"kind": "kick-drift", "order": 6})");
  run(R"({"kind": "taylor", "order": 12})");
}

/// A pendulum on a spring, driven by a torque.
constexpr const char* kSwing = R"json({"name": "swing", "time": {"step_s": 0.01, "end_s": 1},
  "method": {"kind": "auto", "tolerance": 1e-13},
  "subsystems": [
    {"name": "pendulum", "type": "pendulum", "initial_state": [1.2, 0.3],
     "parameters": {"mass_kg": 1.0, "length_m": 0.5, "damping_Nms_per_rad": 0.02}},
    {"name": "spring", "type": "torsional_spring", "parameters": {"stiffness_Nm_per_rad": 20.0}},
    {"name": "drive", "type": "effort_source", "parameters": {"domain": "rotation"},
     "inputs": {"effort": {"kind": "settable"}}},
    {"name": "wheel", "type": "inertia", "parameters": {"inertia_kgm2": 0.1}}],
  "couplings": [
    {"kind": "connection", "ports": ["pendulum.shaft", "spring.left"]},
    {"kind": "common_flow", "ports": ["spring.right", "wheel.shaft", "drive.port"]}]})json";

portwave_simulation* swing() {
  portwave_simulation* made = nullptr;
  EXPECT_EQ(portwave_parse(kSwing, "swing.json", nullptr, 0, &made), PORTWAVE_OK)
      << portwave_last_error();
  return made;
}

/// The angle of the pendulum after steps under these torques.
double angle_after(const std::vector<double>& torques, double angle, double length) {
  portwave_simulation* own = swing();
  EXPECT_EQ(portwave_set_parameter(own, "pendulum.length_m", length), PORTWAVE_OK);
  std::vector<double> x(portwave_state_count(own));
  EXPECT_EQ(portwave_states(own, x.data(), x.size()), PORTWAVE_OK);
  x[0] = angle;
  EXPECT_EQ(portwave_set_states(own, x.data(), x.size()), PORTWAVE_OK);
  for (const double torque : torques) {
    EXPECT_EQ(portwave_set_input(own, 0, torque), PORTWAVE_OK);
    EXPECT_EQ(portwave_step(own), PORTWAVE_OK);
  }
  EXPECT_EQ(portwave_states(own, x.data(), x.size()), PORTWAVE_OK);
  portwave_free(own);
  return x[0];
}

TEST(Derivatives, OfARolloutAreThoseOfDifferences) {
  const std::vector<double> torques = {0.7, -0.4, 0.2};
  const char* const names[] = {"pendulum.length_m"};
  portwave_simulation* own = swing();
  portwave_derivatives* made = nullptr;
  ASSERT_EQ(portwave_differentiate(own, 3, torques.data(), names, 1, &made), PORTWAVE_OK)
      << portwave_last_error();
  ASSERT_EQ(portwave_derivatives_steps(made), 3);
  const std::size_t n = portwave_state_count(own);
  std::vector<double> weights(4 * n, 0.0), by_state(n), by_input(3);
  weights[3 * n] = 1.0;  // of the angle at the end
  double by_length = 0.0;
  ASSERT_EQ(portwave_adjoint(made, weights.data(), by_state.data(), by_input.data(), &by_length),
            PORTWAVE_OK);
  const auto difference = [](const auto& run, double at, double by) {
    return (8.0 * (run(at + by) - run(at - by)) - (run(at + 2 * by) - run(at - 2 * by))) /
           (12.0 * by);
  };
  EXPECT_NEAR(by_state[0],
              difference([&](double q) { return angle_after(torques, q, 0.5); }, 1.2, 1e-3), 1e-8);
  EXPECT_NEAR(by_length,
              difference([&](double l) { return angle_after(torques, 1.2, l); }, 0.5, 1e-3), 1e-8);
  for (std::size_t k = 0; k < 3; ++k) {
    const auto with = [&](double torque) {
      std::vector<double> changed = torques;
      changed[k] = torque;
      return angle_after(changed, 1.2, 0.5);
    };
    EXPECT_NEAR(by_input[k], difference(with, torques[k], 1e-2), 1e-8) << k;
  }
  // Forward: the same numbers, and one step is its matrices.
  const std::vector<double> torque_change = {1.0, -2.0, 0.5};
  std::vector<double> x(4 * n), start(n, 0.0), A(n * n), B(n);
  start[0] = 0.3;
  const double length_change = 0.2;
  ASSERT_EQ(portwave_tangent(made, start.data(), torque_change.data(), &length_change, x.data()),
            PORTWAVE_OK);
  double sum = by_state[0] * 0.3 + by_length * length_change;
  for (std::size_t k = 0; k < 3; ++k) sum += by_input[k] * torque_change[k];
  EXPECT_NEAR(x[3 * n], sum, 1e-13);
  ASSERT_EQ(portwave_tangent(made, start.data(), torque_change.data(), nullptr, x.data()),
            PORTWAVE_OK);
  ASSERT_EQ(portwave_get_derivatives(made, 0, A.data(), B.data(), nullptr), PORTWAVE_OK);
  for (std::size_t i = 0; i < n; ++i) {
    EXPECT_NEAR(x[n + i], A[i * n] * 0.3 + B[i] * torque_change[0], 1e-13) << i;
  }
  EXPECT_EQ(portwave_get_derivatives(made, 3, A.data(), nullptr, nullptr),
            PORTWAVE_INVALID_ARGUMENT);
  portwave_derivatives_free(made);
  const char* const unknown[] = {"pendulum.lenght_m"};
  EXPECT_NE(portwave_differentiate(own, 1, nullptr, unknown, 1, &made), PORTWAVE_OK);
  EXPECT_NE(std::string(portwave_last_error()).find("length_m"), std::string::npos)
      << portwave_last_error();
  EXPECT_EQ(made, nullptr);
  portwave_free(own);
}

}  // namespace
