// Events, states within a step, and states and parameters from outside, as a C program sees them.

#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave.h"

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr const char* kFixed = R"({"step_s": 0.01, "end_s": 2})";
constexpr const char* kChosen =
    R"({"step": {"kind": "adaptive", "tolerance": 1e-9, "largest_s": 0.05}, "end_s": 2})";

/// q2 = cos 2t, v2 = −2 sin 2t. Its first event is at asin(3/4)/2, its second one, with `end_run`, at π/6.
class Swing {
 public:
  explicit Swing(const std::string& time, const char* ends = "true",
                 const std::string& method = R"({"kind": "auto"})") {
    const std::string text = R"({"name": "swing", "time": )" + time + R"(, "method": )" + method +
                             R"(, "subsystems": [{"name": "A", "type": "linear_oscillator",
      "parameters": {"mass_kg": 1, "stiffness_N_per_m": 4}, "initial_state": {"q2": 1}}],
      "couplings": [{"kind": "free", "ports": ["A.coupling"]}],
      "events": [{"name": "half", "of": "A.q2", "level": 0.5, "direction": "falling", "end_run": )" +
                             ends + R"(}, {"of": "A.v2", "level": -1.5}]})";
    EXPECT_EQ(portwave_parse(text.c_str(), nullptr, nullptr, 0, &own_), PORTWAVE_OK)
        << portwave_last_error();
  }
  ~Swing() { portwave_free(own_); }
  Swing(const Swing&) = delete;
  Swing& operator=(const Swing&) = delete;

  operator portwave_simulation*() const { return own_; }
  portwave_event event(std::size_t i) const {
    portwave_event out{};
    out.size = sizeof out;
    EXPECT_EQ(portwave_get_event(own_, i, &out), PORTWAVE_OK) << portwave_last_error();
    return out;
  }
  double step_s() const {
    portwave_report report{};
    report.size = sizeof report;
    EXPECT_EQ(portwave_get_report(own_, &report), PORTWAVE_OK);
    return report.step_s;
  }

 private:
  portwave_simulation* own_ = nullptr;
};

/// Its derivatives are those of the steps up to the event, and the simulation stands there.
TEST(Events, EndARolloutWithDerivatives) {
  const Swing swing(kFixed), control(kFixed, "false");
  portwave_derivatives* made = nullptr;
  ASSERT_EQ(portwave_differentiate(swing, 100, nullptr, nullptr, 0, &made), PORTWAVE_OK)
      << portwave_last_error();
  EXPECT_EQ(portwave_derivatives_steps(made), portwave_step_index(swing));
  // cos 2t passes ½ at π/6.
  EXPECT_EQ(portwave_derivatives_steps(made), 53);
  portwave_derivatives_free(made);
  ASSERT_EQ(portwave_differentiate(control, 100, nullptr, nullptr, 0, &made), PORTWAVE_OK);
  EXPECT_EQ(portwave_derivatives_steps(made), 100);
  portwave_derivatives_free(made);
}

TEST(Events, EndTheCallInWhichTheyHappen) {
  for (const bool by_count : {false, true}) {
    const Swing swing(kFixed), control(kFixed, "false");
    const auto run = [&](portwave_simulation* of) {
      return by_count ? portwave_step_n(of, 200) : portwave_run_until(of, 2.0);
    };
    ASSERT_EQ(run(swing), PORTWAVE_OK) << portwave_last_error();
    EXPECT_NEAR(portwave_time(swing), 0.53, 1e-12);
    EXPECT_STREQ(portwave_ended_by(swing), "half");
    ASSERT_EQ(portwave_event_count(swing), 2U);
    EXPECT_STREQ(swing.event(0).name, "A.v2");
    EXPECT_STREQ(swing.event(1).name, "half");
    EXPECT_STREQ(swing.event(1).direction, "falling");
    EXPECT_EQ(swing.event(1).rising, 0);
    EXPECT_EQ(swing.event(1).ends_run, 1);
    EXPECT_EQ(swing.event(0).ends_run, 0);
    EXPECT_NEAR(swing.event(1).time_s, std::numbers::pi / 6.0, 1e-4);
    portwave_event none{};
    none.size = sizeof none;
    EXPECT_EQ(portwave_get_event(swing, 2, &none), PORTWAVE_INVALID_ARGUMENT);
    none.size = 0;
    EXPECT_EQ(portwave_get_event(swing, 0, &none), PORTWAVE_INVALID_ARGUMENT);
    EXPECT_EQ(portwave_get_event(swing, 0, nullptr), PORTWAVE_INVALID_ARGUMENT);

    ASSERT_EQ(run(control), PORTWAVE_OK);
    EXPECT_NEAR(portwave_time(control), 2.0, 1e-12);
    EXPECT_STREQ(portwave_ended_by(control), "");
    // A later call goes on.
    ASSERT_EQ(portwave_step(swing), PORTWAVE_OK);
    EXPECT_STREQ(portwave_ended_by(swing), "");
    EXPECT_EQ(portwave_event_count(swing), 0U);
    ASSERT_EQ(portwave_run_until(swing, 2.0), PORTWAVE_OK);
    EXPECT_NEAR(portwave_time(swing), 2.0, 1e-12);
  }
  EXPECT_EQ(portwave_event_count(nullptr), 0U);
  EXPECT_STREQ(portwave_ended_by(nullptr), "");
}

TEST(Events, AreThoseOfTheLastStepAfterGoingBack) {
  const Swing swing(kChosen);
  ASSERT_EQ(portwave_run_until(swing, 2.0), PORTWAVE_OK);
  EXPECT_NEAR(swing.event(0).time_s, std::asin(0.75) / 2.0, 1e-7);
  EXPECT_NEAR(portwave_time(swing), std::numbers::pi / 6.0, 1e-7);
  portwave_snapshot* snapshot = nullptr;
  ASSERT_EQ(portwave_snapshot_new(&snapshot), PORTWAVE_OK);
  ASSERT_EQ(portwave_snapshot_save(swing, snapshot), PORTWAVE_OK);
  ASSERT_EQ(portwave_step_n(swing, 3), PORTWAVE_OK);
  EXPECT_EQ(portwave_event_count(swing), 0U);
  ASSERT_EQ(portwave_restore(swing, snapshot), PORTWAVE_OK);
  ASSERT_EQ(portwave_event_count(swing), 1U);
  EXPECT_STREQ(swing.event(0).name, "half");
  EXPECT_STREQ(portwave_ended_by(swing), "half");
  portwave_snapshot_free(snapshot);
}

TEST(Shortcomings, AreToldInWords) {
  const Swing well(kFixed, "false");
  ASSERT_EQ(portwave_step_n(well, 100), PORTWAVE_OK);
  EXPECT_STREQ(portwave_shortcomings(well), "");
  const Swing coarse(R"({"step_s": 2, "end_s": 200})", "false");
  ASSERT_EQ(portwave_step_n(coarse, 100), PORTWAVE_OK);
  EXPECT_NE(std::string(portwave_shortcomings(coarse)).find("A"), std::string::npos)
      << portwave_shortcomings(coarse);
  EXPECT_STREQ(portwave_shortcomings(nullptr), "");
}

TEST(States, AreKnownWithinAStep) {
  for (const bool is_chosen : {false, true}) {
    const Swing swing(is_chosen ? kChosen : kFixed, "false",
                      is_chosen ? R"({"kind": "auto"})" : R"({"kind": "kick-drift", "order": 4})");
    ASSERT_EQ(portwave_step_n(swing, 20), PORTWAVE_OK) << portwave_last_error();
    const double end_s = portwave_time(swing), step_s = swing.step_s();
    ASSERT_GT(step_s, 0.0);
    std::vector<double> x(portwave_state_count(swing));
    for (const double share : {0.0, 0.4, 1.0}) {
      const double time_s = end_s - share * step_s;
      ASSERT_EQ(portwave_state_at(swing, time_s, x.data(), x.size()), PORTWAVE_OK)
          << portwave_last_error();
      EXPECT_NEAR(x[0], std::cos(2.0 * time_s), 1e-6) << is_chosen << ' ' << share;
      EXPECT_NEAR(x[1], -2.0 * std::sin(2.0 * time_s), 1e-6) << is_chosen << ' ' << share;
    }
    EXPECT_EQ(portwave_state_at(swing, end_s + 0.01, x.data(), x.size()),
              PORTWAVE_INVALID_ARGUMENT);
    EXPECT_EQ(portwave_state_at(swing, end_s, x.data(), 1), PORTWAVE_INVALID_ARGUMENT);
    EXPECT_EQ(portwave_state_at(swing, end_s, nullptr, x.size()), PORTWAVE_INVALID_ARGUMENT);
  }
  const Swing fixed(kFixed);
  ASSERT_EQ(portwave_step(fixed), PORTWAVE_OK);
  double x[2];
  EXPECT_EQ(portwave_state_at(fixed, 0.01, x, 2), PORTWAVE_NOT_POSSIBLE);
}

TEST(States, AreSetInTheirOrder) {
  const Swing swing(kFixed, "false");
  ASSERT_EQ(portwave_step_n(swing, 10), PORTWAVE_OK);
  const double given[] = {0.25, -3.0};
  ASSERT_EQ(portwave_set_states(swing, given, 2), PORTWAVE_OK) << portwave_last_error();
  double x[2];
  ASSERT_EQ(portwave_states(swing, x, 2), PORTWAVE_OK);
  EXPECT_EQ(x[0], 0.25);
  EXPECT_EQ(x[1], -3.0);
  EXPECT_EQ(portwave_read(swing, portwave_find_quantity(swing, "A.q2")), 0.25);
  EXPECT_EQ(portwave_step_index(swing), 10);
  portwave_energy energy{};
  energy.size = sizeof energy;
  ASSERT_EQ(portwave_get_energy(swing, &energy), PORTWAVE_OK);
  // H = 2 q² + v²/2: from 2 J to 4.625 J.
  EXPECT_NEAR(energy.supplied_J, 2.625, 1e-9);

  const double bad[] = {kNaN, 0.0};
  EXPECT_EQ(portwave_set_states(swing, bad, 2), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_NE(std::string(portwave_last_error()).find("\"A\""), std::string::npos)
      << portwave_last_error();
  EXPECT_NE(std::string(portwave_last_error()).find("\"q2\""), std::string::npos);
  EXPECT_EQ(portwave_set_states(swing, given, 1), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_NE(std::string(portwave_last_error()).find("2 states"), std::string::npos);
  EXPECT_EQ(portwave_set_states(swing, nullptr, 2), PORTWAVE_INVALID_ARGUMENT);
  ASSERT_EQ(portwave_states(swing, x, 2), PORTWAVE_OK);
  EXPECT_EQ(x[1], -3.0) << "nothing has changed";
}

TEST(Reports, TellTheStepSizeOfEveryMethod) {
  for (const char* const method : {R"({"kind": "auto"})", R"({"kind": "kick-drift", "order": 4})",
                                   R"({"kind": "taylor"})", R"({"kind": "strang"})"}) {
    const Swing swing(kFixed, "false", method);
    ASSERT_EQ(portwave_step_n(swing, 3), PORTWAVE_OK) << method;
    EXPECT_EQ(swing.step_s(), 0.01) << method;
    if (portwave_step_by(swing, 0.004) != PORTWAVE_OK) continue;
    EXPECT_EQ(swing.step_s(), 0.004) << method;
  }
}

TEST(EnsembleParameters, OfOneReplicaAreSetAndErrorsNameIt) {
  const Swing swing(kFixed, "false");
  portwave_ensemble* ensemble = nullptr;
  EXPECT_EQ(portwave_ensemble_new(swing, 3, nullptr, 0, nullptr, nullptr, &ensemble),
            PORTWAVE_CONFIG_ERROR);
  EXPECT_STREQ(portwave_issue_where(0), "/events");
  EXPECT_NE(std::string(portwave_issue_text(0)).find("\"half\", \"A.v2\""), std::string::npos);

  const char* const none[] = {"/events=[]"};
  portwave_simulation* one = nullptr;
  ASSERT_EQ(portwave_load("examples/embedding/servo.json", none, 1, &one), PORTWAVE_OK);
  const char* const paths[] = {"motor.resistance_ohm", "load.inertia_kgm2"};
  const double wrong[] = {1, 1, -1, -2, -3, 1};
  EXPECT_EQ(portwave_ensemble_new(one, 3, paths, 2, wrong, nullptr, &ensemble),
            PORTWAVE_CONFIG_ERROR);
  ASSERT_EQ(portwave_issue_count(), 3U);
  const auto told = [](std::size_t i) { return std::string(portwave_issue_text(i)); };
  EXPECT_TRUE(told(0).starts_with("replica 1, motor.resistance_ohm: must be >= 0 ohm, got -1"))
      << told(0);
  EXPECT_TRUE(told(1).starts_with("replica 1, load.inertia_kgm2: ")) << told(1);
  EXPECT_TRUE(told(2).starts_with("replica 2, motor.resistance_ohm: ")) << told(2);

  const double right[] = {1, 1, 2, 1, 3, 1};
  ASSERT_EQ(portwave_ensemble_new(one, 3, paths, 2, right, nullptr, &ensemble), PORTWAVE_OK)
      << portwave_last_error();
  EXPECT_EQ(portwave_ensemble_set_parameter(ensemble, 1, "load.inertia_kgm2", 0.5), PORTWAVE_OK);
  double value = 0.0;
  for (const int replica : {0, 1, 2}) {
    EXPECT_EQ(portwave_ensemble_get_parameter(ensemble, replica, "load.inertia_kgm2", &value),
              PORTWAVE_OK);
    EXPECT_EQ(value, replica == 1 ? 0.5 : 1.0);
  }
  // It has the bits of an ensemble that began so.
  const double as_well[] = {1, 1, 2, 0.5, 3, 1}, volts[] = {12, 12, 12};
  portwave_ensemble* other = nullptr;
  ASSERT_EQ(portwave_ensemble_new(one, 3, paths, 2, as_well, nullptr, &other), PORTWAVE_OK);
  std::vector<double> x(3 * portwave_ensemble_state_count(ensemble)), y(x.size(), 7.0);
  for (portwave_ensemble* const own : {ensemble, other}) {
    ASSERT_EQ(portwave_ensemble_set_inputs(own, volts, 3), PORTWAVE_OK);
    ASSERT_EQ(portwave_ensemble_step_n(own, 20), PORTWAVE_OK);
    ASSERT_EQ(portwave_ensemble_states(own, own == other ? y.data() : x.data(), x.size()),
              PORTWAVE_OK);
  }
  EXPECT_EQ(x, y);
  // An input that is not finite: nothing changes, the first replica's neither.
  const double infinite[] = {24, kNaN, 24};
  EXPECT_EQ(portwave_ensemble_set_inputs(ensemble, infinite, 3), PORTWAVE_INVALID_ARGUMENT);
  EXPECT_NE(std::string(portwave_last_error()).find("replica 1"), std::string::npos);
  for (portwave_ensemble* const own : {ensemble, other}) {
    ASSERT_EQ(portwave_ensemble_step_n(own, 5), PORTWAVE_OK);
    ASSERT_EQ(portwave_ensemble_states(own, own == other ? y.data() : x.data(), x.size()),
              PORTWAVE_OK);
  }
  EXPECT_EQ(x, y);
  EXPECT_EQ(portwave_ensemble_set_parameter(ensemble, 1, "load.inertia_kgm2", -1.0),
            PORTWAVE_CONFIG_ERROR);
  EXPECT_TRUE(told(0).starts_with("replica 1, load.inertia_kgm2: ")) << told(0);
  EXPECT_EQ(portwave_ensemble_set_parameter(ensemble, 3, "load.inertia_kgm2", 1.0),
            PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_ensemble_set_parameter(ensemble, 1, "load.inertia", 1.0),
            PORTWAVE_INVALID_ARGUMENT);
  EXPECT_EQ(portwave_ensemble_set_parameter(nullptr, 1, "load.inertia", 1.0),
            PORTWAVE_INVALID_ARGUMENT);
  portwave_ensemble_free(other);
  portwave_ensemble_free(ensemble);
  portwave_free(one);
}

}  // namespace
