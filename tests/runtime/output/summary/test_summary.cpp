#include <cmath>
#include <limits>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <portwave/runtime/output/summary.hpp>
#include <portwave/subsystems/catalogue/oscillators.hpp>

#include "support/systems/oscillator_pair.hpp"

namespace portwave::test_summary {
namespace {

using Json = nlohmann::ordered_json;
using testing::duffing_linear_pair;
using testing::pair_options;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

RunSummary run_pair(Certify certify, int threads, int steps = 50) {
  const System system = duffing_linear_pair();
  StepperOptions options = pair_options(8, threads);
  options.certify = certify;
  Stepper stepper(system, options);
  stepper.step(steps);
  return summarize("pair", options, stepper, 0.25);
}

TEST(Summary, HasTheKeysThatReadersRelyOn) {
  const Json json = summary_json(run_pair(Certify::full, 1));
  for (const char* pointer : {"/scenario",
                              "/version",
                              "/steps",
                              "/step_s",
                              "/completed",
                              "/method",
                              "/method_options/iterations",
                              "/method_options/relaxation",
                              "/method_options/tolerance",
                              "/iterations/mean",
                              "/iterations/max",
                              "/iterations/not_converged",
                              "/energy/initial_J",
                              "/energy/final_J",
                              "/energy/max_J",
                              "/energy/supplied_J",
                              "/energy/dissipated_J",
                              "/energy/mismatch_J",
                              "/energy/impact_J",
                              "/energy/tank_J",
                              "/energy/max_energy_ratio",
                              "/certificate/status",
                              "/certificate/max_passivity_residual_J",
                              "/certificate/max_augmented_residual_J",
                              "/certificate/max_fejer_residual_J",
                              "/certificate/min_fne_margin",
                              "/certificate/steps_without_fixed_point",
                              "/certificate/steps_without_margin",
                              "/method_options/energy_tolerance_J",
                              "/iterations/p50",
                              "/iterations/p95",
                              "/iterations/histogram",
                              "/iterations/stop_reasons/budget",
                              "/iterations/stop_reasons/tolerance",
                              "/iterations/stop_reasons/energy_tolerance",
                              "/iterations/stop_reasons/deadline",
                              "/iterations/stop_reasons/round_off",
                              "/iterations/windows",
                              "/iterations/total",
                              "/execution/description",
                              "/execution/executor",
                              "/execution/grain",
                              "/execution/threads",
                              "/execution/tasks",
                              "/execution/instruction_set",
                              "/threads",
                              "/wall_s",
                              "/steps_per_s",
                              "/real_time_factor"}) {
    ASSERT_TRUE(json.contains(Json::json_pointer(pointer))) << pointer;
    EXPECT_FALSE(json.at(Json::json_pointer(pointer)).is_null()) << pointer;
  }
}

TEST(Summary, SaysWhatTheStepperDid) {
  const System system = duffing_linear_pair();
  StepperOptions options = pair_options(8);
  options.method.waves().relaxation = 0.9;
  Stepper stepper(system, options);
  stepper.step(50);
  const Json json = summary_json(summarize("pair", options, stepper, 0.25));
  EXPECT_EQ(json["scenario"], "pair");
  EXPECT_EQ(json["steps"], 50);
  EXPECT_EQ(json["step_s"], 0.01);
  EXPECT_EQ(json["completed"], true);
  EXPECT_TRUE(json.at("failure").is_null());
  EXPECT_EQ(json["method"], "douglas-rachford");
  EXPECT_EQ(json["method_options"]["iterations"], 8);
  EXPECT_EQ(json["method_options"]["relaxation"], 0.9);
  EXPECT_EQ(json["iterations"]["mean"], 8.0);
  EXPECT_EQ(json["iterations"]["max"], 8);
  EXPECT_EQ(json["energy"]["initial_J"], stepper.energy().initial_J);
  EXPECT_EQ(json["energy"]["final_J"], stepper.energy().final_J);
  EXPECT_EQ(json["energy"]["mismatch_J"], stepper.energy().mismatch_J);
  EXPECT_EQ(json["certificate"]["status"], std::string(to_string(stepper.certificate().status)));
  EXPECT_EQ(json["wall_s"], 0.25);
  EXPECT_EQ(json["steps_per_s"], 200.0);
  EXPECT_EQ(json["real_time_factor"], 2.0);
}

TEST(Summary, SaysWhatMethodWasAskedFor) {
  RunSummary summary = run_pair(Certify::energy, 1, 2);
  Json options = summary_json(summary)["method_options"];
  EXPECT_EQ(options["impedance"], (Json{{"kind", "uniform"}, {"value", 0.4}}));
  EXPECT_EQ(options["guard"], false);  // as published
  EXPECT_EQ(options["acceleration"], 0);
  EXPECT_EQ(options["tank"],
            (Json{{"initial_J", nullptr}, {"initial_fraction", 0.0}, {"cap_J", nullptr}}));
  EXPECT_NE(summary_text(summary).find("impedance    0.4 at every port"), std::string::npos);

  summary.method = WaveCoupling{.kind = WaveUpdate::peaceman_rachford,
                                .impedance_kind = ImpedanceKind::leaf,
                                .acceleration = 5,
                                .guard = false,
                                .tank = {.initial_J = 1.0, .initial_fraction = 0.5, .cap_J = 3.0}};
  const Json json = summary_json(summary);
  options = json["method_options"];
  EXPECT_EQ(json["method"], "peaceman-rachford");
  EXPECT_EQ(options["impedance"], (Json{{"kind", "leaf"}, {"retune_factor", 2.0}}));
  EXPECT_EQ(options["guard"], false);
  EXPECT_EQ(options["acceleration"], 5);
  EXPECT_EQ(options["tank"], (Json{{"initial_J", 1.0}, {"initial_fraction", 0.5}, {"cap_J", 3.0}}));
  EXPECT_NE(summary_text(summary).find("guard        off"), std::string::npos);

  summary.method.waves().guard = true;
  EXPECT_NE(summary_text(summary).find("on, tank 1 J and 0.5 of the stored energy, at most 3 J"),
            std::string::npos)
      << summary_text(summary);
  summary.method =
      WaveCoupling{.kind = WaveUpdate::automatic, .impedance_kind = ImpedanceKind::automatic};
  options = summary_json(summary)["method_options"];
  EXPECT_TRUE(options["relaxation"].is_null());
  EXPECT_TRUE(options["acceleration"].is_null());
  EXPECT_EQ(summary_text(summary).find("relaxation"), std::string::npos);
}

TEST(Summary, LeavesOutWhatWasNotSampled) {
  for (const Certify certify : {Certify::energy, Certify::full}) {
    const Json certificate = summary_json(run_pair(certify, 1))["certificate"];
    const bool sampled = certify == Certify::full;
    EXPECT_EQ(certificate["max_augmented_residual_J"].is_number(), sampled);
    EXPECT_EQ(certificate["max_fejer_residual_J"].is_number(), sampled);
    EXPECT_EQ(certificate["min_fne_margin"].is_number(), sampled);
    EXPECT_TRUE(certificate["max_passivity_residual_J"].is_number());
  }
}

TEST(Summary, IsTheSameBitByBitForAnyNumberOfThreads) {
  const auto text = [](int threads, int steps) {
    Json json = summary_json(run_pair(Certify::full, threads, steps));
    for (const char* timing : {"threads", "execution", "wall_s", "recording_wait_s", "steps_per_s",
                               "real_time_factor"}) {
      json.erase(timing);
    }
    return json.dump();
  };
  for (const int threads : {2, 4}) EXPECT_EQ(text(1, 50), text(threads, 50)) << threads;
  EXPECT_NE(text(1, 50), text(1, 51)) << "the comparison sees nothing";
}

TEST(Summary, CountsIterationsByStep) {
  const System system = duffing_linear_pair();
  StepperOptions options = pair_options(60);
  options.method.waves().tolerance = 1e-6;
  Stepper stepper(system, options);
  std::map<int, int> counted;
  for (int n = 0; n < 50; ++n) ++counted[stepper.step().iterations];
  const RunSummary summary = summarize("pair", options, stepper, 0.25);
  const Json json = summary_json(summary)["iterations"];
  std::map<int, int> told;
  for (const Json& bin : json["histogram"]) told[bin[0]] = bin[1];
  EXPECT_EQ(told, counted);
  EXPECT_GT(counted.size(), 1U) << "the tolerance makes no difference between steps";
  EXPECT_EQ(json["stop_reasons"]["tolerance"], 50);
  EXPECT_EQ(json["max"], counted.rbegin()->first);
  const std::string text = summary_text(summary);
  for (const char* word : {"(p50)", "(p95)", "(max)", "steps ended by tolerance 50"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word << " in\n" << text;
  }
}

TEST(Summary, QuantilesOfIterationsAreCountsThatOccurred) {
  IterationStatistics iterations;
  EXPECT_EQ(iteration_quantile(iterations, 0.5), 0);
  iterations.steps = 100;
  iterations.histogram[3] = 60;
  iterations.histogram[7] = 36;
  iterations.histogram[12] = 4;
  EXPECT_EQ(iteration_quantile(iterations, 0.0), 3);
  EXPECT_EQ(iteration_quantile(iterations, 0.5), 3);
  EXPECT_EQ(iteration_quantile(iterations, 0.6), 3);
  EXPECT_EQ(iteration_quantile(iterations, 0.95), 7);
  EXPECT_EQ(iteration_quantile(iterations, 0.97), 12);
  EXPECT_EQ(iteration_quantile(iterations, 1.0), 12);

  RunSummary summary;
  summary.iterations = iterations;
  summary.iterations.max = 12;
  EXPECT_NE(summary_text(summary).find("3 (p50) 7 (p95) 12 (max)"), std::string::npos);
  summary.iterations.histogram.assign(IterationStatistics::kHistogram, 0);
  summary.iterations.histogram.back() = 100;
  summary.iterations.max = 4000;
  EXPECT_NE(summary_text(summary).find("256 or more (p50) 256 or more (p95) 4000 (max)"),
            std::string::npos);
}

TEST(Summary, TellsOfATimeBudgetAndOfPhases) {
  RunSummary summary = run_pair(Certify::energy, 1);
  EXPECT_TRUE(summary_json(summary)["time_budget"].is_null());
  EXPECT_TRUE(summary_json(summary)["times"].is_null());
  summary.time = {.deadline_s = 200e-6, .pace = 2.0};
  summary.deadline = DeadlineScheduler::Statistics{.steps = 50,
                                                   .misses = 5,
                                                   .preempted_misses = 3,
                                                   .guard_misses = 1,
                                                   .trial_misses = 1,
                                                   .unused_share = 0.25,
                                                   .worst_slack_s = -40e-6,
                                                   .slack_p01_s = -20e-6,
                                                   .slack_p50_s = 10e-6,
                                                   .slack_p99_s = 30e-6};
  summary.timed = true;
  summary.times = {50e-6, 500e-6, 100e-6};
  const Json json = summary_json(summary);
  EXPECT_EQ(json["time_budget"]["misses"], 5);
  EXPECT_EQ(json["time_budget"]["unexplained_misses"], 2);
  EXPECT_EQ(json["time_budget"]["guard_misses"], 1);
  EXPECT_EQ(json["time_budget"]["trial_misses"], 1);
  EXPECT_EQ(json["time_budget"]["unused_share"], 0.25);
  EXPECT_NEAR(json["time_budget"]["jitter_s"].get<double>(), 50e-6, 1e-12);
  EXPECT_EQ(json["time_budget"]["slack_p50_s"], 10e-6);
  EXPECT_EQ(json["times"]["iterate_s"], 500e-6);
  const std::string text = summary_text(summary);
  for (const char* word :
       {"200 us, pace 2 (a step every 5000 us)", "5 of 50 steps missed it, 2 not explained",
        "preemption (1 by the guard or an examination of the run, 1 by a trial)",
        "could have used more time left 25 % of it",
        "-20 us (p1) 10 us (p50) 30 us (p99), worst -40 us",
        "begin 1 us, iterate 10 us, commit 2 us per step", "depend on the clock"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word << " in\n" << text;
  }
}

// Without an evaluation nobody knows what the waves disagree about: the account has no mismatch.
TEST(Summary, StepsWithoutTimeForAnEvaluationAreTold) {
  RunSummary summary = run_pair(Certify::energy, 1);
  ASSERT_FALSE(summary.is_coupled_poorly());
  summary.time.deadline_s = 1e-6;
  summary.iterations.windows = 100;
  summary.iterations.reasons[static_cast<std::size_t>(StopReason::deadline)] = 6;
  summary.iterations.histogram.front() = 6;
  EXPECT_DOUBLE_EQ(summary.blind_share(), 0.06);
  EXPECT_TRUE(summary.is_coupled_poorly());
  EXPECT_FALSE(summary.is_all_well());
  EXPECT_EQ(summary_json(summary)["coupling"]["poor"], true);
  EXPECT_EQ(summary_json(summary)["coupling"]["blind_share"], 0.06);
  const std::string text = summary_text(summary);
  EXPECT_NE(text.find("poor: 6 % of the steps had no time for an evaluation"), std::string::npos)
      << text;
  // Control: asked for by K = 0, they are what was wanted.
  summary.iterations.reasons = {};
  summary.iterations.reasons[static_cast<std::size_t>(StopReason::budget)] = 6;
  EXPECT_EQ(summary.blind_share(), 0.0);
  EXPECT_FALSE(summary.is_coupled_poorly());
}

TEST(Summary, ClaimsNothingThatWasNotChecked) {
  const RunSummary summary = run_pair(Certify::none, 1);
  const Json json = summary_json(summary);
  EXPECT_TRUE(json["energy"].is_null());
  EXPECT_EQ(json["certificate"]["status"], "not_checked");
  EXPECT_TRUE(json["certificate"]["max_passivity_residual_J"].is_null());
  EXPECT_EQ(summary_text(summary).find("holds"), std::string::npos);
}

TEST(Summary, WritesNumbersThatAreNotFiniteAsNull) {
  RunSummary summary;
  summary.wall_s = 0.0;  // 0/0 steps per second
  summary.energy.final_J = kInfinity;
  summary.energy.max_energy_ratio = kNaN;
  summary.certificate.max_passivity_residual_J = -kInfinity;
  summary.certificate.min_fne_margin = kNaN;
  const Json json = summary_json(summary);
  for (const char* pointer :
       {"/energy/final_J", "/energy/max_energy_ratio", "/certificate/max_passivity_residual_J",
        "/certificate/min_fne_margin", "/certificate/worst_passivity_part", "/steps_per_s",
        "/real_time_factor"}) {
    EXPECT_TRUE(json.at(Json::json_pointer(pointer)).is_null()) << pointer;
  }
  EXPECT_EQ(json["energy"]["initial_J"], 0.0);
}

TEST(Summary, ReadsBackToTheSameDoubles) {
  RunSummary summary;
  summary.energy.initial_J = 1.0 / 3.0;
  summary.energy.mismatch_J = -5e-324;
  const Json json = Json::parse(summary_json(summary).dump(2));
  EXPECT_EQ(json["energy"]["initial_J"].get<double>(), 1.0 / 3.0);
  EXPECT_EQ(json["energy"]["mismatch_J"].get<double>(), -5e-324);
}

RunSummary run_lossless(int iterations, double tolerance = 0.0, double amplitude = 1.0) {
  SystemBuilder builder;
  for (const double mass : {1.0, 1.5}) {
    builder.add(
        mass == 1.0 ? "A" : "B",
        linear_oscillator({.mass_kg = mass, .stiffness_N_per_m = mass == 1.0 ? 10.0 : 20.0}),
        {.initial_state = {mass == 1.0 ? amplitude : -amplitude, 0}});
  }
  builder.connect("A.coupling", "B.coupling");
  const System system = builder.build();
  WaveCoupling method{.iterations = iterations, .impedance = {20.0}, .guard = true};
  method.tolerance = tolerance;
  const StepperOptions options{.step_s = 0.01, .method = method};
  Stepper stepper(system, options);
  stepper.step(1000);
  return summarize("lossless", options, stepper, 1.0);
}

TEST(Summary, ARunThatLosesItsEnergyBetweenThePartsIsPoor) {
  for (const double amplitude : {1e-6, 1.0, 1e5}) {
    const RunSummary poor = run_lossless(1, 0.0, amplitude);
    EXPECT_GT(poor.mismatch_share(), RunSummary::kPoorMismatch) << amplitude;
    EXPECT_FALSE(poor.is_all_well());
    ASSERT_FALSE(poor.shortcomings().empty());
    EXPECT_TRUE(poor.shortcomings().back().starts_with("the coupling is poor: "))
        << poor.shortcomings().back();
    EXPECT_NE(summary_text(poor).find("poor: "), std::string::npos) << summary_text(poor);
    EXPECT_EQ(summary_json(poor)["coupling"]["poor"], true);
    EXPECT_EQ(summary_json(poor)["all_well"], false);
    const RunSummary good = run_lossless(200, 1e-10, amplitude);
    EXPECT_LT(good.mismatch_share(), 1e-6) << "control, amplitude " << amplitude;
    EXPECT_TRUE(good.shortcomings().empty());
    EXPECT_EQ(summary_text(good).find("coupling  "), std::string::npos);
    // All of the energy is moved at some time, within parts that keep most of theirs.
    EXPECT_GT(good.moved_J, 0.5 * good.energy.initial_J);
  }
  EXPECT_EQ(run_lossless(1, 0.0, 0.0).mismatch_share(), 0.0) << "at rest";
}

TEST(Summary, ABudgetWithoutAToleranceTellsItsResidual) {
  const RunSummary open = run_lossless(5);
  EXPECT_GT(open.coupling.residual, 1e-3);
  EXPECT_NE(summary_text(open).find("no tolerance was set"), std::string::npos);
  EXPECT_LT(run_lossless(100).coupling.residual, 1e-6);
  EXPECT_EQ(summary_text(run_lossless(100, 1e-10)).find("nobody"), std::string::npos) << "control";
  EXPECT_EQ(open.coupling.count, 10) << "after 1, 2, 4, …, 512 steps";
}

TEST(SummaryText, NamesWhatAReaderLooksFor) {
  RunSummary summary = run_pair(Certify::full, 1);
  std::string text = summary_text(summary);
  for (const char* word :
       {"pair: 50 steps", "douglas-rachford", "8 per step", "68.8 J", "certificate", "steps/s",
        "real time", "firm-nonexpansiveness", "augmented residual", "Fejer residual"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word << " in\n" << text;
  }
  EXPECT_EQ(text.find("interrupted"), std::string::npos);
  EXPECT_EQ(text.find(", tolerance "), std::string::npos);
  EXPECT_EQ(text.find("margin not sampled"), std::string::npos);
  EXPECT_EQ(text.back(), '\n');

  summary.completed = false;
  summary.method.waves().tolerance = 1e-9;
  summary.iterations.not_converged = 3;
  summary.certificate.status = CertificateStatus::violated;
  summary.certificate.steps_without_margin = 7;
  EXPECT_EQ(summary_json(summary)["certificate"]["steps_without_margin"], 7);
  text = summary_text(summary);
  for (const char* word : {"interrupted", "3 of 50 steps missed the tolerance", "violated",
                           "margin not sampled in 7 steps"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word << " in\n" << text;
  }
}

TEST(SummaryText, EscapesWhatATerminalWouldObey) {
  RunSummary summary = run_pair(Certify::energy, 1, 1);
  summary.scenario = "a\x1b[2Jb\r\xC2\x9B c\u00e4";
  summary.worst_passivity_part = "p\x07";
  const std::string text = summary_text(summary);
  EXPECT_EQ(text.find_first_of("\x1b\r\x07"), std::string::npos) << text;
  EXPECT_EQ(text.find("\xC2\x9B"), std::string::npos) << text;
  for (const char* word : {R"(a\u001b[2Jb\u000d\u009b c)", "c\u00e4:", R"("p\u0007")"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word << " in\n" << text;
  }
  EXPECT_EQ(summary_json(summary)["scenario"], summary.scenario) << "data is not changed";
}

TEST(SummaryText, ReadsWellBeforeTheFirstStep) {
  const std::string text = summary_text(run_pair(Certify::energy, 1, 0));
  for (const char* word : {"nan", "inf"}) {
    EXPECT_EQ(text.find(word), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace portwave::test_summary
