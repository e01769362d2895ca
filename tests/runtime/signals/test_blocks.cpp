// The blocks of signal graphs one by one, against their equations written out here.

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/runtime/signals/block.hpp"
#include "portwave/subsystems/base/error.hpp"

namespace portwave::test_blocks {
namespace {

constexpr double kPeriod_s = 0.01;

// What a block makes of a sequence of inputs, one vector per sample.
std::vector<std::vector<double>> response(const block::Handle& block,
                                          const std::vector<std::vector<double>>& inputs,
                                          double period_s = kPeriod_s) {
  const Block::Shape& shape = block->shape();
  std::vector<double> x(static_cast<std::size_t>(shape.states));
  block->start(x);
  std::vector<std::vector<double>> outputs;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const SampleTime when{static_cast<double>(k) * period_s, period_s,
                          static_cast<std::int64_t>(k)};
    std::vector<double> y(static_cast<std::size_t>(shape.outputs));
    block->output(when, inputs[k], x, y);
    block->update(when, inputs[k], y, x);
    outputs.push_back(y);
  }
  return outputs;
}

std::vector<double> response_of_one(const block::Handle& block, const std::vector<double>& inputs,
                                    double period_s = kPeriod_s) {
  std::vector<std::vector<double>> wide;
  for (const double u : inputs) wide.push_back({u});
  std::vector<double> out;
  for (const auto& y : response(block, wide, period_s)) out.push_back(y[0]);
  return out;
}

double at_time(const block::Handle& block, double time_s, int output = 0) {
  std::vector<double> y(static_cast<std::size_t>(block->shape().outputs));
  block->output({time_s, kPeriod_s, 0}, {}, {}, y);
  return y[static_cast<std::size_t>(output)];
}

TEST(SourceBlocks, AreWhatTheirEquationsSay) {
  const auto step = block::step({.time_s = 2.0, .before = -1.0, .after = 5.0});
  EXPECT_EQ(at_time(step, 1.999), -1.0);
  EXPECT_EQ(at_time(step, 2.0), 5.0);
  const auto ramp = block::ramp({.start_s = 1.0, .slope_per_s = 3.0, .end_s = 2.0, .offset = 0.5});
  EXPECT_EQ(at_time(ramp, 0.0), 0.5);
  EXPECT_DOUBLE_EQ(at_time(ramp, 1.5), 2.0);
  EXPECT_DOUBLE_EQ(at_time(ramp, 1e9), 3.5);
  const auto endless = block::ramp({.start_s = 1.0, .slope_per_s = 3.0});
  EXPECT_DOUBLE_EQ(at_time(endless, 1e9), 3.0 * (1e9 - 1.0));
  const auto pulse =
      block::pulse({.amplitude = 2.0, .period_s = 1.0, .width_s = 0.25, .delay_s = 3.0});
  EXPECT_EQ(at_time(pulse, 2.9), 0.0);
  EXPECT_EQ(at_time(pulse, 3.0), 2.0);
  EXPECT_EQ(at_time(pulse, 3.3), 0.0);
  EXPECT_EQ(at_time(pulse, 1003.1), 2.0);
}

// Times as a run has them: the number of the sample times the time between samples. What is due there
// is known in whole numbers.
TEST(SourceBlocks, EdgesOnTheGridFallOnTheGridHoweverLate) {
  for (const int unit : {10, 100, 1000, 3, 7, 48000}) {  // of all times, 1/unit s
    for (const auto& [step, period, width, delay] : {std::array{1, 10, 5, 0},
                                                     {1, 10, 3, 7},
                                                     {2, 10, 4, 2},
                                                     {3, 21, 9, 6},
                                                     {1, 7, 7, 0},
                                                     {1, 2, 1, 1},
                                                     {5, 35, 30, -10}}) {
      const auto seconds = [unit](std::int64_t count) { return static_cast<double>(count) / unit; };
      const double period_s = seconds(step);
      const auto pulse = block::pulse({1.0, seconds(period), seconds(width), seconds(delay), 0.0});
      for (const std::int64_t from : {0LL, 1'000'000LL, 10'000'000'000'000LL}) {
        for (std::int64_t k = from; k < from + 500; ++k) {
          const SampleTime when{static_cast<double>(k) * period_s, period_s, k};
          const std::int64_t since = k * step - delay;
          const double due = since >= 0 && since % period < width ? 1.0 : 0.0;
          double y = -1.0;
          pulse->output(when, {}, {}, {&y, 1});
          ASSERT_EQ(y, due) << "unit " << unit << ", pulses of " << width << " every " << period
                            << " from " << delay << ", sample " << k << " of " << step;
          const double edge_s = seconds(k * step);
          block::step({edge_s, 0.0, 1.0})->output(when, {}, {}, {&y, 1});
          ASSERT_EQ(y, 1.0) << edge_s;
          block::step({edge_s + 0.01 * period_s, 0.0, 1.0})->output(when, {}, {}, {&y, 1});
          if (k > 10'000'000) continue;  // what is off the grid by a hundredth
          ASSERT_EQ(y, 0.0) << edge_s;
          std::array<double, 2> q = {};
          block::trajectory({{edge_s - 1.0, 0.0}, {edge_s, 1.0}, {edge_s + 1.0, -2.0}},
                            block::TrajectoryShape::linear)
              ->output(when, {}, {}, q);
          ASSERT_NEAR(q[1], -3.0, 1e-9) << edge_s;
        }
      }
    }
  }
}

// Edges off the grid stay where they are, and a pulse between two samples is not seen.
TEST(SourceBlocks, EdgesOffTheGridAreNotMovedToIt) {
  const auto pulse = block::pulse({1.0, 1.0, 0.004, 0.003, 0.0});
  EXPECT_EQ(at_time(pulse, 0.0), 0.0);
  EXPECT_EQ(at_time(pulse, 0.01), 0.0);
  EXPECT_EQ(at_time(pulse, 1.003 - 1e-9), 0.0);
  EXPECT_EQ(at_time(pulse, 1.003 + 1e-9), 1.0);
  EXPECT_EQ(at_time(pulse, 1.007 - 1e-9), 1.0);
  EXPECT_EQ(at_time(pulse, 1.007 + 1e-9), 0.0);
  const auto always = block::pulse({1.0, 0.1, 0.1, 0.0, 0.0});
  const auto never = block::pulse({1.0, 0.1, 0.0, 0.0, 0.0});
  for (int k = 0; k < 1000; ++k) {
    EXPECT_EQ(at_time(always, k * kPeriod_s), 1.0) << k;
    EXPECT_EQ(at_time(never, k * kPeriod_s), 0.0) << k;
  }
}

TEST(SourceBlocks, ATrajectoryGoesThroughItsWaypointsWithTheRateOfItsValue) {
  const std::vector<block::Waypoint> points = {{1.0, 2.0}, {3.0, -4.0}, {3.5, 10.0}};
  for (const auto shape : {block::TrajectoryShape::linear, block::TrajectoryShape::cubic,
                           block::TrajectoryShape::quintic}) {
    const auto trajectory = block::trajectory(points, shape);
    for (const block::Waypoint& point : points) {
      EXPECT_NEAR(at_time(trajectory, point.time_s), point.value, 1e-12);
    }
    EXPECT_EQ(at_time(trajectory, -5.0), 2.0);
    EXPECT_EQ(at_time(trajectory, 50.0), 10.0);
    for (const double t : {1.1, 1.9, 2.7, 3.2, 3.45}) {
      const double d = 1e-6;
      const double rate = (at_time(trajectory, t + d) - at_time(trajectory, t - d)) / (2.0 * d);
      EXPECT_NEAR(at_time(trajectory, t, 1), rate, 1e-6 * (1.0 + std::abs(rate))) << t;
    }
    if (shape == block::TrajectoryShape::linear) continue;
    EXPECT_NEAR(at_time(trajectory, 3.0, 1), 0.0, 1e-12);  // from rest to rest
  }
  // Golden: the quintic is halfway at half time with 15/8 of the mean rate.
  const auto quintic = block::trajectory({{0.0, 0.0}, {2.0, 4.0}}, block::TrajectoryShape::quintic);
  EXPECT_NEAR(at_time(quintic, 1.0), 2.0, 1e-14);
  EXPECT_NEAR(at_time(quintic, 1.0, 1), 2.0 * 15.0 / 8.0, 1e-14);
}

TEST(OperationBlocks, AreWhatTheirEquationsSay) {
  EXPECT_EQ(response_of_one(block::gain(3.0, 1.0), {2.0, -1.0}), (std::vector{7.0, -2.0}));
  EXPECT_EQ(response(block::sum({1.0, -2.0}), {{5.0, 1.5}})[0][0], 2.0);
  EXPECT_EQ(response(block::product(3), {{2.0, 3.0, -4.0}})[0][0], -24.0);
  EXPECT_EQ(response_of_one(block::saturation(-1.0, 2.0), {-5.0, 0.5, 7.0}),
            (std::vector{-1.0, 0.5, 2.0}));
  EXPECT_EQ(response_of_one(block::delay(2, 9.0), {1.0, 2.0, 3.0, 4.0}),
            (std::vector{9.0, 9.0, 1.0, 2.0}));
  EXPECT_EQ(response_of_one(block::integrator({.initial = 1.0, .maximum = 4.0}),
                            {2.0, 2.0, 2.0, -1.0, 0.0}, 1.0),
            (std::vector{1.0, 3.0, 4.0, 4.0, 3.0}));
  EXPECT_EQ(response_of_one(block::rate_limit({.rising_per_s = 1.0, .falling_per_s = 2.0}),
                            {5.0, 7.0, 0.0, 5.5}, 1.0),
            (std::vector{5.0, 6.0, 4.0, 5.0}));
  EXPECT_EQ(response_of_one(block::lookup({{0.0, 1.0}, {2.0, 5.0}}), {-1.0, 1.0, 3.0}),
            (std::vector{1.0, 3.0, 5.0}));
  EXPECT_EQ(response(block::selector(0.5), {{1.0, 3.0, 4.0}})[0][0], 3.0);
  EXPECT_EQ(response(block::selector(0.5), {{0.5, 3.0, 4.0}})[0][0], 4.0);
}

TEST(OperationBlocks, AnExpressionIsItsFormulaOfTimeAndInputs) {
  const auto block = block::expression("2*x - y*sin(t) + (t > 0.015)", {"x", "y"});
  EXPECT_TRUE(block->shape().feeds_through);
  EXPECT_EQ(block->shape().inputs, 2);
  EXPECT_EQ(block->shape().states, 0);
  const auto outputs = response(block, {{5.0, 1.5}, {-1.0, 4.0}, {0.0, -2.0}});
  for (int k = 0; k < 3; ++k) {
    const double t = k * kPeriod_s;
    const double x[] = {5.0, -1.0, 0.0}, y[] = {1.5, 4.0, -2.0};
    EXPECT_EQ(outputs[static_cast<std::size_t>(k)][0],
              2 * x[k] - y[k] * std::sin(t) + (t > 0.015 ? 1.0 : 0.0));
  }
  const auto source = block::expression("3*t^2", {});
  EXPECT_FALSE(source->shape().feeds_through);
  EXPECT_EQ(at_time(source, 2.0), 12.0);
}

TEST(OperationBlocks, AnExpressionNamesWhatIsWrong) {
  const auto issues = [](const char* text, const std::vector<std::string>& names) {
    try {
      (void)block::expression(text, names);
    } catch (const ConfigError& error) {
      return error.issues();
    }
    return Issues();
  };
  const Issues unknown = issues("2*u2", {"u1"});
  ASSERT_EQ(unknown.size(), 1U);
  EXPECT_EQ(unknown[0].where, "/expression");
  EXPECT_NE(unknown[0].what.find("Did you mean \"u1\"?"), std::string::npos) << unknown[0].what;
  EXPECT_EQ(issues("t", {"t", "sin", "a b", "x", "x"}).size(), 4U);
  EXPECT_EQ(issues("t", {"x", "y"}).size(), 0U);
}

TEST(OperationBlocks, ASwitchKeepsItsStateBetweenItsThresholds) {
  const auto thermostat = block::hysteresis({.on_above = 2.0, .off_below = 1.0, .on = 7.0});
  EXPECT_EQ(response_of_one(thermostat, {1.5, 2.1, 1.5, 0.9, 1.5, 2.0}),
            (std::vector{0.0, 7.0, 7.0, 0.0, 0.0, 0.0}));
}

TEST(OperationBlocks, ADerivativeIsThatOfAnExponentialFilter) {
  // u = t: y tends to 1 as 1 − (T_f/(T_f + T))ᵏ.
  std::vector<double> ramp;
  for (int k = 0; k < 50; ++k) ramp.push_back(kPeriod_s * k + 1e6);
  const double filter_s = 0.05;
  const auto y = response_of_one(block::derivative(filter_s), ramp);
  for (int k = 0; k < 50; ++k) {
    const double expected = 1.0 - std::pow(filter_s / (filter_s + kPeriod_s), k);
    EXPECT_NEAR(y[static_cast<std::size_t>(k)], expected, 1e-7) << k;  // 1e6 + t: round-off of t
  }
}

TEST(ControllerBlocks, StateSpaceIsItsRecursion) {
  Eigen::MatrixXd A(2, 2), B(2, 1), C(2, 2), D(2, 1);
  A << 0.9, 0.1, -0.2, 0.8;
  B << 1.0, 0.5;
  C << 1.0, 0.0, 0.0, 2.0;
  D << 0.0, 3.0;
  const auto block = block::state_space({A, B, C, D, Eigen::Vector2d(1.0, -1.0)});
  EXPECT_TRUE(block->shape().feeds_through);
  EXPECT_FALSE(block::state_space({A, B, C, {}})->shape().feeds_through);
  double x1 = 1.0, x2 = -1.0;
  std::vector<std::vector<double>> inputs;
  for (int k = 0; k < 20; ++k) inputs.push_back({std::sin(0.3 * k)});
  const auto outputs = response(block, inputs);
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const double u = inputs[k][0];
    EXPECT_NEAR(outputs[k][0], x1, 1e-14);
    EXPECT_NEAR(outputs[k][1], 2.0 * x2 + 3.0 * u, 1e-14);
    const double next = 0.9 * x1 + 0.1 * x2 + u;
    x2 = -0.2 * x1 + 0.8 * x2 + 0.5 * u;
    x1 = next;
  }
}

TEST(ControllerBlocks, PidIsItsThreePartsUnbounded) {
  block::Pid p;
  p.proportional = 4.0;
  p.integral = 10.0;
  p.derivative = 0.3;
  p.derivative_filter_s = 0.02;
  p.setpoint_weight = 0.6;
  std::vector<std::vector<double>> inputs;
  for (int k = 0; k < 60; ++k) inputs.push_back({k < 10 ? 0.0 : 1.0, std::sin(0.2 * k) + 100.0});
  const auto y = response(block::pid(p), inputs);
  double integral = 0.0, slope = 0.0;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const double r = inputs[k][0], m = inputs[k][1];
    if (k > 0)
      slope += (-(m - inputs[k - 1][1]) / kPeriod_s - slope) * kPeriod_s / (0.02 + kPeriod_s);
    EXPECT_NEAR(y[k][0], 4.0 * (0.6 * r - m) + integral + 0.3 * slope, 1e-9) << k;
    integral += 10.0 * kPeriod_s * (r - m);
  }
}

TEST(ControllerBlocks, PidDoesNotWindUp) {
  // A long time at the bound; then the error turns, and the output leaves the bound at once.
  block::Pid p;
  p.proportional = 1.0;
  p.integral = 5.0;
  p.minimum = -1.0;
  p.maximum = 1.0;
  std::vector<std::vector<double>> inputs(1000, {10.0, 0.0});
  for (int k = 0; k < 50; ++k) inputs.push_back({-0.5, 0.0});
  const auto y = response(block::pid(p), inputs);
  EXPECT_EQ(y[999][0], 1.0);
  EXPECT_LT(y[1000][0], 0.0);
  // The control: without bounds of its own the integral has grown to 500 by then.
  block::Pid endless = p;
  endless.minimum = -std::numeric_limits<double>::infinity();
  endless.maximum = std::numeric_limits<double>::infinity();
  EXPECT_GT(response(block::pid(endless), inputs)[1000][0], 400.0);
}

TEST(ControllerBlocks, APureGainHasNoIntegralToWind) {
  block::Pid p;
  p.proportional = 2.0;
  p.maximum = 1.0;
  const auto y = response(block::pid(p), {{5.0, 0.0}, {0.25, 0.0}});
  EXPECT_EQ(y[0][0], 1.0);
  EXPECT_EQ(y[1][0], 0.5);
}

TEST(BlockOptions, AllDefectsAreReportedAtOnce) {
  try {
    block::Pid p;
    p.derivative_filter_s = -1.0;
    p.setpoint_weight = 2.0;
    p.minimum = 3.0;
    p.maximum = 1.0;
    p.integral = std::nan("");
    (void)block::pid(p);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.issues().size(), 4U);
  }
  EXPECT_THROW((void)block::pulse({.period_s = 0.0}), ConfigError);
  EXPECT_THROW((void)block::pulse({.period_s = 1.0, .width_s = 2.0}), ConfigError);
  EXPECT_THROW((void)block::delay(0), ConfigError);
  EXPECT_THROW((void)block::trajectory({}, block::TrajectoryShape::cubic), ConfigError);
  EXPECT_THROW((void)block::hysteresis({.on_above = 1.0, .off_below = 2.0}), ConfigError);
  EXPECT_THROW((void)block::state_space({Eigen::MatrixXd::Zero(2, 2),
                                         Eigen::MatrixXd::Zero(1, 1),
                                         Eigen::MatrixXd::Zero(1, 2),
                                         {}}),
               ConfigError);
  EXPECT_THROW((void)block::callback(1, 1, {}), ConfigError);
  const auto nothing = [](const SampleTime&, std::span<const double>, std::span<double>,
                          std::span<double>) {};
  EXPECT_THROW((void)block::callback(1, 1, {std::nan("")}, nothing), ConfigError);
  EXPECT_THROW((void)block::callback(1, 0, {0.0}, nothing), ConfigError);
}

TEST(Blocks, ACallbackGivesOutputsAndTheNextStateInOneOrInTwoCalls) {
  const auto sums = block::callback(
      1, 1, {2.0},
      [](const SampleTime&, std::span<const double> u, std::span<double> y, std::span<double> x) {
        y[0] = 10.0 * x[0];
        x[0] += u[0];
      });
  EXPECT_EQ(response_of_one(sums, {1.0, 5.0, 0.0}), (std::vector<double>{20.0, 30.0, 80.0}));
  std::vector<double> x(1), y(1), all;
  sums->start(x);
  for (const double u : {1.0, 5.0, 0.0}) {
    sums->sample({}, std::span(&u, 1), y, x);
    all.push_back(y[0]);
  }
  EXPECT_EQ(all, (std::vector<double>{20.0, 30.0, 80.0}));
}

TEST(Signals, AChirpHasTheFrequencyThatItSays) {
  const Signal chirp = Signal::chirp(
      {.amplitude = 2.0, .from_Hz = 1.0, .to_Hz = 3.0, .duration_s = 10.0, .offset = 5.0});
  for (const double t : {-2.0, 0.0, 1.3, 9.9, 10.0, 17.25}) {
    double turns = t <= 0.0 ? t : t <= 10.0 ? t + 0.1 * t * t : 20.0 + 3.0 * (t - 10.0);
    EXPECT_NEAR(chirp(t), 5.0 + 2.0 * std::sin(2.0 * std::numbers::pi * turns), 1e-12) << t;
  }
  EXPECT_EQ(chirp.highest_frequency_Hz(), 3.0);
  EXPECT_EQ(chirp.next_kink(0.0), 10.0);
}

TEST(Signals, NoiseHasItsMomentsAndIsAFunctionOfTimeAndSeed) {
  const Signal noise =
      Signal::noise({.standard_deviation = 2.0, .interval_s = 0.5, .seed = 7, .mean = 3.0});
  const Signal same =
      Signal::noise({.standard_deviation = 2.0, .interval_s = 0.5, .seed = 7, .mean = 3.0});
  const Signal other =
      Signal::noise({.standard_deviation = 2.0, .interval_s = 0.5, .seed = 8, .mean = 3.0});
  double sum = 0.0, squares = 0.0, products = 0.0, apart = 0.0;
  constexpr int kMany = 20000;
  for (int k = 0; k < kMany; ++k) {
    const double t = 0.5 * k - 1000.0;
    const double value = noise(t) - 3.0;
    EXPECT_EQ(noise(t), same(t));
    sum += value;
    squares += value * value;
    products += value * (noise(t + 0.5) - 3.0);
    apart += value * (other(t) - 3.0);
  }
  // Five standard errors.
  EXPECT_NEAR(sum / kMany, 0.0, 5.0 * 2.0 / std::sqrt(kMany));
  EXPECT_NEAR(squares / kMany, 4.0, 5.0 * 4.0 * std::sqrt(2.0 / kMany));
  EXPECT_NEAR(products / kMany, 0.0, 5.0 * 4.0 / std::sqrt(kMany));
  EXPECT_NEAR(apart / kMany, 0.0, 5.0 * 4.0 / std::sqrt(kMany));
  // Linear in between; knots where it says.
  EXPECT_NEAR(noise(0.2), 0.6 * noise(0.0) + 0.4 * noise(0.5), 1e-12);
  EXPECT_EQ(noise.next_kink(0.2), 0.5);
  EXPECT_EQ(noise.next_kink(0.5), 1.0);
}

}  // namespace
}  // namespace portwave::test_blocks
