// The summary of methods that couple without waves.

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <portwave/runtime/output/summary.hpp>

#include "support/systems/linear_networks.hpp"

namespace portwave::test_network_summary {
namespace {

using Json = nlohmann::ordered_json;

RunSummary summary_of(const CouplingMethod& method, int steps = 20) {
  const System system = testing::two_masses();
  StepperOptions options;
  options.start = Start::as_given;
  options.step_s = 0.01;
  options.method = method;
  Stepper stepper(system, options);
  stepper.step(steps);
  return summarize("masses", options, stepper, 0.25);
}

bool says(const std::string& text, const std::string& what) {
  return text.find(what) != std::string::npos;
}

TEST(NetworkSummary, OfASplitting) {
  const Splitting method{.kind = SplittingKind::impulse, .fast = {"second"}};
  const RunSummary summary = summary_of(method);
  const Json json = summary_json(summary);
  EXPECT_EQ(json["method"], "impulse");
  EXPECT_EQ(json["method_options"], (Json{{"order", 2}, {"fast", {"second"}}, {"factor", 10}}));
  EXPECT_EQ(json["method_description"], summary.choice.reason);
  EXPECT_TRUE(json["method_remarks"].is_null());
  EXPECT_TRUE(json["iterations"].is_null());
  EXPECT_TRUE(json["guard"].is_null());
  EXPECT_TRUE(json["tuning"].is_null());
  EXPECT_TRUE(json["choice"].is_null());
  EXPECT_EQ(json["certificate"]["status"], "holds");
  EXPECT_TRUE(json["certificate"]["worst_passivity_part"].is_null());
  EXPECT_TRUE(json["certificate"]["worst_passivity_step"].is_number());
  EXPECT_TRUE(json["energy"]["mismatch_J"].is_number());
  const std::string text = summary_text(summary);
  EXPECT_TRUE(says(text, "  method       impulse\n               " + summary.choice.reason))
      << text;
  EXPECT_TRUE(says(text, "holds: largest passivity residual")) << text;
  EXPECT_TRUE(says(text, "J; nearest to its limit in step ")) << text;
  for (const char* word : {"impedance", "guard", "iterations", "tank", "interface"}) {
    EXPECT_FALSE(says(text, word)) << word << "\n" << text;
  }
  EXPECT_EQ(summary_json(summary_of(Splitting{}))["method_options"],
            (Json{{"order", 2}, {"coupling_flow", "auto"}, {"split_dissipation", false}}));
}

TEST(NetworkSummary, OfADynamicIteration) {
  DynamicIteration method;
  method.kind = IterationKind::lions_mercier;
  method.iterations = 3000;
  method.tolerance = 1e-9;
  method.window_steps = 4;
  method.mu = 2.0;
  method.omega = 2.2;
  const RunSummary summary = summary_of(method);
  const Json json = summary_json(summary);
  EXPECT_EQ(json["method_options"], (Json{{"iterations", 3000},
                                          {"tolerance", 1e-9},
                                          {"window_steps", 4},
                                          {"integrator", "auto"},
                                          {"lambda", nullptr},
                                          {"mu", 2.0},
                                          {"omega", 2.2},
                                          {"alpha", 0.5},
                                          {"metric", "auto"}}));
  EXPECT_GT(json["iterations"]["mean"].get<double>(), 1.0);
  EXPECT_EQ(json["iterations"]["not_converged"], 0);
  EXPECT_EQ(json["iterations"]["windows"], 5);
  EXPECT_EQ(json["iterations"]["total"], summary.iterations.total);
  EXPECT_EQ(json["iterations"]["stop_reasons"]["tolerance"], 5);
  EXPECT_EQ(json["iterations"]["stop_reasons"]["round_off"], 0);
  const std::string text = summary_text(summary);
  EXPECT_TRUE(says(text,
                   "lions-mercier, at most 3000 iterations of a window of 4 steps, tolerance "
                   "1e-09\n"))
      << text;
  EXPECT_TRUE(says(text, "windows ended by tolerance 5; 0 of 5 windows missed the tolerance"))
      << text;

  method.kind = IterationKind::jacobi;
  method.divergence_limit = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(summary_json(summary_of(method))["method_options"]["divergence_limit"].is_null());
}

TEST(NetworkSummary, TellsOfIterationsPerWindowAndPerStep) {
  DynamicIteration method;
  method.kind = IterationKind::jacobi;
  method.iterations = 30;
  method.window_steps = 500;
  const std::string text = summary_text(summary_of(method, 1000));
  EXPECT_TRUE(says(text,
                   "  iterations   30 per window of 500 steps (0.06 per step): 30 (p50) 30 (p95) "
                   "30 (max)\n"))
      << text;
  method.window_steps = 1;
  const std::string by_step = summary_text(summary_of(method, 10));
  EXPECT_TRUE(says(by_step, "  iterations   30 per step: 30 (p50) 30 (p95) 30 (max)\n")) << by_step;
}

TEST(NetworkSummary, TellsWhatStoppedWindowsAndWhatTheRunShowed) {
  DynamicIteration method;
  method.kind = IterationKind::gauss_seidel;
  method.tolerance = 1e-3;
  RunSummary summary = summary_of(method);
  summary.iterations.reasons = {1, 16, 0, 0, 3};
  summary.iterations.not_converged = 4;
  summary.remarks = "largest change ratio 0.31";
  const std::string text = summary_text(summary);
  EXPECT_TRUE(says(text,
                   "steps ended by budget 1, tolerance 16, round-off 3; 4 of 20 steps missed the "
                   "tolerance"))
      << text;
  EXPECT_TRUE(says(text, summary.choice.reason + "\n               largest change ratio 0.31\n"))
      << text;
  const Json json = summary_json(summary);
  EXPECT_EQ(json["iterations"]["stop_reasons"]["round_off"], 3);
  EXPECT_EQ(json["method_remarks"], "largest change ratio 0.31");
}

TEST(NetworkSummary, TellsOfEnergyThatAnIterationCreated) {
  DynamicIteration method;
  method.kind = IterationKind::jacobi;
  RunSummary summary = summary_of(method);
  summary.certificate.status = CertificateStatus::conditional;
  summary.certificate.steps_with_excess = 3;
  summary.certificate.max_passivity_residual_J = 0.125;
  EXPECT_EQ(summary_json(summary)["certificate"]["steps_with_excess"], 3);
  const std::string text = summary_text(summary);
  EXPECT_TRUE(says(text,
                   "conditional: largest passivity residual 0.125 J; farthest beyond its "
                   "limit in step "))
      << text;
  EXPECT_TRUE(
      says(text, "in 3 of 20 steps the error of the iteration created energy: at most 0.125 J"))
      << text;
}

}  // namespace
}  // namespace portwave::test_network_summary
