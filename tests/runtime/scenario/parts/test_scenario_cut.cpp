// "cut" in scenario files: a part that is cut is used as if it were not, by its names, and moves as
// it would.

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "portwave/runtime/output/recorder.hpp"
#include "portwave/runtime/scenario/scenario.hpp"

namespace portwave::test_scenario_cut {
namespace {

using Json = nlohmann::json;
constexpr int kSize = 40;

Json entry(int row, int column, double value) { return Json::array({row, column, value}); }

/// A floating bar with consistent mass, driven at its ends and by a controller, beside a mass.
Json bar(int pieces) {
  Json M = Json::array(), K = Json::array(), D = Json::array(), B = Json::array();
  for (int i = 0; i < kSize; ++i) {
    const bool is_end = i == 0 || i == kSize - 1;
    M.push_back(entry(i, i, is_end ? 0.2 : 0.4));
    K.push_back(entry(i, i, is_end ? 300.0 : 600.0));
    D.push_back(entry(i, i, is_end ? 0.3 : 0.6));
    if (i + 1 == kSize) continue;
    for (const auto& [row, column] : {std::pair(i, i + 1), std::pair(i + 1, i)}) {
      M.push_back(entry(row, column, 0.1));
      K.push_back(entry(row, column, -300.0));
      D.push_back(entry(row, column, -0.3));
    }
    B.push_back(entry(i, 2, 0.05));
  }
  B.push_back(entry(0, 0, 1.0));
  B.push_back(entry(kSize - 1, 1, 1.0));
  Json port = {{"domain", "translation"}, {"causality", "effort_in"}};
  Json left = port, right = port;
  left["name"] = "left";
  right["name"] = "right";
  Json scenario = {
      {"name", "bar"},
      {"time", {{"step_s", 0.002}, {"end_s", 0.5}}},
      {"method", {{"kind", "auto"}, {"tolerance", 1e-12}}},
      {"subsystems",
       {{{"name", "bar"},
         {"type", "second_order_system"},
         {"parameters",
          {{"coordinates", {{"count", kSize}, {"name", "q"}}},
           {"ports", {left, right}},
           {"inputs", {{{"name", "load"}, {"unit", "N"}}}},
           {"M", {{"entries", M}}},
           {"K", {{"entries", K}}},
           {"D", {{"entries", D}}},
           {"B", {{"entries", B}}}}},
         {"initial_state", {{"q3", 0.01}, {"q3_rate", 0.2}, {"q40", -0.02}}},
         {"inputs", {{"load", {{"kind", "signal"}, {"signal", "push"}}}}}},
        {{"name", "post"},
         {"type", "linear_oscillator"},
         {"parameters", {{"mass_kg", 1.5}, {"stiffness_N_per_m", 20}}},
         {"initial_state", {{"v2", -0.5}}}},
        {{"name", "spring"}, {"type", "spring"}, {"parameters", {{"stiffness_N_per_m", 90}}}}}},
      {"couplings",
       {{{"kind", "free"}, {"ports", {"bar.left"}}},
        {{"kind", "connection"}, {"ports", {"bar.right", "spring.left"}}},
        {{"kind", "connection"}, {"ports", {"spring.right", "post.coupling"}}}}},
      {"signals",
       {{"blocks", {{{"name", "push"}, {"kind", "gain"}, {"signal", "bar.q20"}, {"factor", -3}}}}}},
      {"outputs",
       {{"observe",
         {"bar.q1", "bar.q3", "bar.q20_rate", "bar.q40", "bar.right.effort", "bar.left.flow",
          "bar.storage", "push", "post.q2"}}}}};
  if (pieces > 0) scenario["subsystems"][0]["cut"] = {{"parts", pieces}};
  return scenario;
}

std::vector<std::vector<double>> observed(const Json& scenario, std::size_t* parts = nullptr) {
  const Scenario read = parse_scenario(scenario.dump(), "bar.json", ".");
  Stepper stepper(read.system, read.options);
  if (parts != nullptr) *parts = read.system.parts().size();
  std::vector<std::vector<double>> rows;
  for (int n = 0; n < 250; ++n) {
    stepper.step();
    std::vector<double>& row = rows.emplace_back();
    for (const Quantity& each : read.recording.quantities) row.push_back(observe(stepper, each));
  }
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  return rows;
}

double largest_difference(const std::vector<std::vector<double>>& a,
                          const std::vector<std::vector<double>>& b) {
  std::vector<double> size(a.front().size(), 0.0);
  double most = 0.0;
  for (std::size_t k = 0; k < size.size(); ++k) {
    double difference = 0.0;
    for (std::size_t n = 0; n < a.size(); ++n) {
      size[k] = std::max(size[k], std::abs(a[n][k]));
      difference = std::max(difference, std::abs(a[n][k] - b[n][k]));
    }
    most = std::max(most, difference / size[k]);
  }
  return most;
}

TEST(ScenarioCut, IsTheUncutPartUnderItsOwnNames) {
  const auto whole = observed(bar(0));
  for (const int pieces : {1, 2, 5}) {
    std::size_t parts = 0;
    EXPECT_LT(largest_difference(whole, observed(bar(pieces), &parts)), 1e-9) << pieces;
    EXPECT_GE(parts, 2U + static_cast<std::size_t>(pieces));
  }
}

TEST(ScenarioCutControl, AnotherBarMovesOtherwise) {
  Json other = bar(5);
  other["subsystems"][0]["initial_state"]["q3"] = 0.0101;
  EXPECT_GT(largest_difference(observed(bar(0)), observed(other)), 1e-5);
}

TEST(ScenarioCut, AllStatesAreRecordedOnce) {
  Json scenario = bar(4);
  scenario.erase("outputs");
  const Scenario cut = parse_scenario(scenario.dump(), "bar.json", ".");
  Json uncut = bar(0);
  uncut.erase("outputs");
  const Scenario whole = parse_scenario(uncut.dump(), "bar.json", ".");
  ASSERT_EQ(cut.recording.quantities.size(), whole.recording.quantities.size());
  for (std::size_t i = 0; i < whole.recording.quantities.size(); ++i) {
    EXPECT_EQ(cut.recording.quantities[i].label, whole.recording.quantities[i].label);
    EXPECT_EQ(cut.recording.quantities[i].unit, whole.recording.quantities[i].unit);
  }
}

std::string defects_of_bar(const Json& scenario) {
  try {
    (void)parse_scenario(scenario.dump(), "bar.json", ".");
  } catch (const ScenarioError& error) {
    return error.report();
  }
  return {};
}

TEST(ScenarioCut, DefectsAreInTheirPlaces) {
  const auto has = [](const Json& scenario, const std::string& text) {
    const std::string report = defects_of_bar(scenario);
    EXPECT_NE(report.find(text), std::string::npos) << report;
  };
  Json scenario = bar(0);
  scenario["subsystems"][0]["cut"] = {{"parts", 41}};
  has(scenario, "/subsystems/0/cut: cannot be cut into 41 parts: it has 40 coordinates");
  scenario["subsystems"][0]["cut"] = {{"parts", 0}};
  has(scenario, "/subsystems/0/cut/parts: must be");
  scenario["subsystems"][0]["cut"] = {{"pieces", 2}};
  has(scenario, "/subsystems/0/cut/pieces: unknown key \"pieces\"");
  has(scenario, "/subsystems/0/cut/parts: is required");
  scenario["subsystems"][0]["cut"] = 4;
  has(scenario, "/subsystems/0/cut: must be an object");
  scenario = bar(2);
  scenario["subsystems"][0]["substeps"] = 2;
  has(scenario, "/subsystems/0/substeps: a part that is cut takes the steps of the system");
  scenario = bar(2);
  scenario["outputs"]["observe"] = {"bar.q41", "bar.middle.effort", "bar/0.q1"};
  has(scenario, "/outputs/observe/0: subsystem \"bar\" has nothing named \"q41\"");
  has(scenario, "/outputs/observe/1: ");
  scenario = bar(2);
  scenario["couplings"][0]["ports"] = {"bar.lift"};
  has(scenario, "/couplings/0/ports/0: ");
  scenario = bar(2);
  scenario["subsystems"][2]["cut"] = {{"parts", 2}};
  has(scenario, "/subsystems/2/cut: ");
  scenario = bar(2);
  scenario["subsystems"][0]["initial_state"]["q77"] = 1;
  scenario["subsystems"][0]["inputs"]["lod"] = {{"kind", "constant"}, {"value", 1}};
  has(scenario, "/subsystems/0/initial_state/q77");
  has(scenario, "/subsystems/0/inputs/lod");
}

}  // namespace
}  // namespace portwave::test_scenario_cut
