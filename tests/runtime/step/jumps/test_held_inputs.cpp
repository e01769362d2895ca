// Inputs that are held over every step, as those of sampled blocks are, where rigid joints prescribe a motion.

#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/runtime/signals/block.hpp"
#include "portwave/runtime/signals/signal_graph.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/parts.hpp"

namespace portwave::test_held_inputs {
namespace {

StepperOptions options_of(double step_s) {
  StepperOptions options;
  options.step_s = step_s;
  return options;
}

/// The speed of an inertia of 1 kg m² under a block that is sampled every step; its rows, and those of the block.
struct Staircase {
  std::vector<double> held, speed;
  EnergyTotals energy;
  std::int64_t impulses = 0;
};
Staircase staircase(std::shared_ptr<const Block> block, int steps, StepperOptions options) {
  SystemBuilder network;
  SystemBuilder::PartOptions source;
  source.inputs["flow"] = Signal::settable(0.0);
  network.add("q", parts::flow_source({.domain = "rotation"}), source);
  network.add("j", parts::inertia({.inertia_kgm2 = 1.0}));
  network.join(joint::CommonFlow{}, {"q.port", "j.shaft"});
  const System system = network.build();
  SignalGraphBuilder builder(system);
  builder.block("reference", std::move(block), {});
  builder.actuate("reference", 0, 0);
  options.signals = std::make_shared<const SignalGraph>(builder.build());
  Stepper stepper(system, options);
  Staircase out;
  for (int n = 0; n < steps; ++n) {
    out.held.push_back(stepper.signals()[0]);
    stepper.step();
    out.speed.push_back(stepper.state("j")[1]);
  }
  out.energy = stepper.energy();
  const EnergyTotals& e = out.energy;
  const double open =
      e.final_J - e.initial_J - e.supplied_J + e.dissipated_J + e.mismatch_J + e.impact_J;
  EXPECT_LE(std::abs(open), 1e-14 * (e.max_J + std::abs(e.supplied_J)));
  out.impulses = stepper.impulses().count;
  return out;
}

// A speed that is held over every step is a staircase: each of its steps is an impulse, however smooth the signal
// that it follows. Of each, by its change c to v, v c is supplied, and ½c² is lost.
TEST(HeldInputs, AHeldSpeedIsAnImpulseAtEverySample) {
  const std::vector<std::pair<const char*, std::shared_ptr<const Block>>> blocks = {
      {"step", block::step({.time_s = 0.505, .before = 0.0, .after = 5.0})},
      {"ramp", block::ramp({.start_s = 0.2, .slope_per_s = 3.0, .end_s = 0.8})},
      {"pulse", block::pulse({.amplitude = 5.0, .period_s = 0.2, .width_s = 0.07})},
      {"sine", block::source(Signal::sine_product(3.0, {{1.0, 0.0}}))}};
  for (const auto& [name, block] : blocks) {
    // The last of these runs ends with the step after the jump of the first block.
    for (const int steps : {100, 57, 52}) {
      const Staircase run = staircase(block, steps, options_of(0.01));
      double supplied_J = 0.0, lost_J = 0.0, before = 0.0;
      std::int64_t changes = 0;
      for (std::size_t n = 0; n < run.held.size(); ++n) {
        EXPECT_NEAR(run.speed[n], run.held[n], 1e-9) << name << ", step " << n;
        const double change = run.held[n] - before;
        supplied_J += run.held[n] * change;
        lost_J += 0.5 * change * change;
        changes += std::abs(change) > 1e-9 ? 1 : 0;
        before = run.held[n];
      }
      EXPECT_GT(changes, 0) << name;
      EXPECT_EQ(run.impulses, changes) << name << " " << steps;
      EXPECT_NEAR(run.energy.supplied_J, supplied_J, 1e-8) << name << " " << steps;
      EXPECT_NEAR(run.energy.impact_J, lost_J, 1e-8) << name << " " << steps;
    }
  }
}

TEST(HeldInputsControl, WithoutThemAHeldSpeedIsMetInTheMeanOnly) {
  StepperOptions options = options_of(0.01);
  options.start = Start::as_given;
  const Staircase run =
      staircase(block::step({.time_s = 0.505, .before = 0.0, .after = 5.0}), 100, options);
  EXPECT_NEAR(run.speed[51], 10.0, 1e-8);
  EXPECT_NEAR(run.speed[52], 0.0, 1e-8);
}

}  // namespace
}  // namespace portwave::test_held_inputs
