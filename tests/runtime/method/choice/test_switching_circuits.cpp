// Circuits with diodes and switches: steps converge where a current changes over from one to the other, and the
// voltages are those of an independent solver.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include <Eigen/Dense>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/parts.hpp"

namespace portwave::test_switching_circuits {
namespace {

constexpr double kPeriod_s = 50e-6, kTravel_s = 1e-6;

/// From 12 V at a duty of one half into 100 µF beside 20 Ω, at rest at first: the switch takes 1 µs to close and to
/// open.
System boost_converter() {
  SystemBuilder builder;
  SystemBuilder::PartOptions source, speed;
  source.inputs["effort"] = Signal::constant(12.0);
  const std::string period = fmt::format("mod(t, {})", kPeriod_s);
  speed.inputs["speed"] = Signal::expression(
      fmt::format("if({0} < {1}, 1/{1}, if({0} >= {2}, if({0} < {2} + {1}, -1/{1}, 0), 0))", period,
                  kTravel_s, 0.5 * kPeriod_s));
  builder.add("v", parts::effort_source({.domain = "electrical"}), source);
  builder.add("l", parts::inductor({.inductance_H = 100e-6}));
  builder.add("s", parts::electrical_switch({.on_S = 100.0, .off_S = 1e-9}), speed);
  builder.add("d", parts::diode({.saturation_current_A = 1e-9, .emission_coefficient = 1.8}));
  builder.add("c", parts::capacitor({.capacitance_F = 100e-6}));
  builder.add("r", parts::resistor({.resistance_ohm = 20.0, .gives = "current"}));
  joint::Kernel kernel;
  kernel.E = kernel.F = Eigen::MatrixXd::Zero(6, 6);
  kernel.E.topRows(3) << 1, -1, -1, 0, 0, 0,  //
      0, 0, 1, -1, -1, 0,                     //
      0, 0, 0, 0, 1, -1;
  kernel.F.bottomRows(3) << 1, 1, 0, 0, 0, 0,  //
      0, -1, 1, 1, 0, 0,                       //
      0, 0, 0, -1, 1, 1;
  builder.join(std::move(kernel), {"v.port", "l.terminals", "s.terminals", "d.terminals",
                                   "c.terminals", "r.terminals"});
  return builder.build();
}

struct Outcome {
  std::int64_t not_converged = 0;
  double evaluations = 0.0;  ///< by step
  double largest_A = 0.0;
  double end_V = 0.0;
  double open_share = 0.0;
};

Outcome run(double step_s) {
  const System system = boost_converter();
  StepperOptions options;
  options.step_s = step_s;
  Stepper stepper(system, options);
  Outcome out;
  const auto steps = static_cast<std::int64_t>(std::llround(4e-4 / step_s));
  for (std::int64_t n = 0; n < steps; ++n) {
    out.evaluations += static_cast<double>(stepper.step().iterations);
    out.largest_A = std::max(out.largest_A, stepper.state("l")[0]);
  }
  out.evaluations /= static_cast<double>(steps);
  out.not_converged = stepper.iterations().not_converged;
  out.end_V = stepper.state("c")[0];
  const EnergyTotals e = stepper.energy();
  out.open_share = std::abs(e.final_J - e.initial_J - e.supplied_J + e.dissipated_J + e.mismatch_J +
                            e.numerical_dissipation_J) /
                   (e.max_J + std::abs(e.supplied_J));
  return out;
}

// SciPy, RK45 from one change of the switch to the next, rtol 1e-7: 25.4056 A, 31.3671 V.
TEST(SwitchingCircuits, ABoostConverterConvergesInEveryStep) {
  for (const double step_s : {1e-6, 2e-7}) {
    const Outcome own = run(step_s);
    EXPECT_EQ(own.not_converged, 0) << step_s;
    EXPECT_LE(own.evaluations, 8.0) << step_s;
    const double tolerance = step_s > 5e-7 ? 0.01 : 0.003;
    EXPECT_NEAR(own.largest_A, 25.4056, tolerance * 25.4) << step_s;
    EXPECT_NEAR(own.end_V, 31.3671, tolerance * 31.4) << step_s;
    EXPECT_LE(own.open_share, 1e-8) << step_s;
  }
}

}  // namespace
}  // namespace portwave::test_switching_circuits
