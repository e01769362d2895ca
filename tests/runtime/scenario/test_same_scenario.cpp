// One scenario, three ways of coupling its parts: only the method changes.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/coupling/network/collocation.hpp>
#include <portwave/coupling/reference/monolithic.hpp>
#include <portwave/runtime/scenario/scenario.hpp>

#include "support/files/source_folder.hpp"

namespace portwave::test_same_scenario {
namespace {

const std::string kFile = testing::source_file("examples/msd_64x50.json");
constexpr const char* kWaves =
    R"({"kind": "peaceman-rachford", "iterations": 50, "tolerance": 1e-13, "impedance": {"kind": "matched"}})";
constexpr const char* kLionsMercier =
    R"({"kind": "lions-mercier", "iterations": 100, "tolerance": 1e-13, "window_steps": 5})";
constexpr const char* kStrang = R"({"kind": "strang"})";

using State = std::vector<double>;

State state_of(const Stepper& stepper) {
  State out;
  for (int part = 0; part < static_cast<int>(stepper.system().parts().size()); ++part) {
    const auto x = stepper.state(part);
    out.insert(out.end(), x.begin(), x.end());
  }
  return out;
}

/// The states after every `every` of the steps.
std::vector<State> trajectory(const std::string& method, double step_s, int steps, int every,
                              int threads = 1) {
  const Scenario scenario =
      load_scenario(kFile, {{"/method", method}, {"/time", R"({"step_s": 0.001, "steps": 1})"}});
  StepperOptions options = scenario.options;
  options.step_s = step_s;
  options.threads = threads;
  Stepper stepper(scenario.system, options);
  std::vector<State> out;
  for (int n = 1; n <= steps; ++n) {
    stepper.step();
    if (n % every == 0) out.push_back(state_of(stepper));
  }
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds) << method;
  return out;
}

double distance(const State& a, const State& b) {
  double worst = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

double distance(const std::vector<State>& a, const std::vector<State>& b) {
  double worst = a.size() == b.size() ? 0.0 : 1e300;
  for (std::size_t n = 0; n < std::min(a.size(), b.size()); ++n)
    worst = std::max(worst, distance(a[n], b[n]));
  return worst;
}

std::vector<State> monolithic_midpoint(double step_s, int steps, int every) {
  const Scenario scenario = load_scenario(kFile);
  MonolithicReference reference(scenario.system, step_s);
  std::vector<State> out;
  for (int n = 1; n <= steps; ++n) {
    reference.step();
    if (n % every != 0) continue;
    out.emplace_back();
    for (int part = 0; part < static_cast<int>(scenario.system.parts().size()); ++part) {
      const auto x = reference.state(part);
      out.back().insert(out.back().end(), x.begin(), x.end());
    }
  }
  return out;
}

/// The solution at t = 0.2 s, to third order at a fine step.
State fine_solution() {
  const Scenario scenario = load_scenario(kFile);
  const CondensedSystem system(scenario.system);
  CollocationReference fine(system, 2.5e-4, Integrator::radau_iia);
  for (int n = 0; n < 800; ++n) fine.step();
  return {fine.state().begin(), fine.state().end()};
}

TEST(SameScenario, WavesAndDynamicIterationAreTheMonolithicMidpointRule) {
  const std::vector<State> exact = monolithic_midpoint(1e-3, 100, 10);
  ASSERT_EQ(exact.back().size(), 64u * 101u);
  EXPECT_LT(distance(trajectory(kWaves, 1e-3, 100, 10), exact), 1e-10);
  EXPECT_LT(distance(trajectory(kLionsMercier, 1e-3, 100, 10), exact), 1e-10);
  // The control: Strang splitting is another method, and the masses do move.
  EXPECT_GT(distance(trajectory(kStrang, 1e-3, 100, 10), exact), 1e-8);
  EXPECT_GT(distance(exact.front(), exact.back()), 1e-2);
}

TEST(SameScenario, StrangSplittingConvergesToTheSameTrajectoryWithOrderTwo) {
  const State exact = fine_solution();
  const auto error = [&](const char* method, int steps) {
    return distance(trajectory(method, 0.2 / steps, steps, steps).back(), exact);
  };
  const double coarse = error(kStrang, 50), middle = error(kStrang, 100),
               fine = error(kStrang, 200);
  EXPECT_NEAR(std::log2(coarse / middle), 2.0, 0.1);
  EXPECT_NEAR(std::log2(middle / fine), 2.0, 0.1);
  EXPECT_NEAR(std::log2(error(kWaves, 100) / error(kWaves, 200)), 2.0, 0.1);
}

TEST(SameScenario, TwoThreadsGiveTheBitsOfOne) {
  for (const char* method : {kWaves, kLionsMercier, kStrang}) {
    EXPECT_EQ(distance(trajectory(method, 1e-3, 20, 5, 1), trajectory(method, 1e-3, 20, 5, 2)), 0.0)
        << method;
  }
}

}  // namespace
}  // namespace portwave::test_same_scenario
