// "cut" in scenario files: the file goes on to speak of the part as if it were whole, and the run
// gives what the whole part gives.

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "portwave/coupling/system/cut_name.hpp"
#include "portwave/runtime/output/recorder.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/snapshot.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "support/files/schema_checker.hpp"
#include "support/systems/large_structures.hpp"

namespace portwave::test_scenario_cut_names {
namespace {

using Json = nlohmann::ordered_json;

Json cut_entries(const SparseMatrix& M) {
  Json entries = Json::array();
  for (int j = 0; j < M.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(M, j); it; ++it) {
      entries.push_back({it.row(), it.col(), it.value()});
    }
  }
  return {{"entries", std::move(entries)}};
}

/// A free beam with consistent mass: a mass at its tip, a signal that drives its load, another that
/// follows what it measures there.
Json beam_scenario() {
  const SecondOrderForm form = testing::beam_form(
      {.elements = 15, .mass_damping_per_s = 0.2, .stiffness_damping_s = 1e-4, .clamped = true});
  Json scenario = Json::parse(R"json({
    "name": "cut",
    "time": {"step_s": 0.01, "steps": 50, "start": "as_given"},
    "subsystems": [
      {"name": "beam", "type": "second_order_system",
       "parameters": {
         "coordinates": {"count": 30, "name": "q"},
         "ports": [{"name": "tip", "domain": "translation", "causality": "effort_in"}],
         "inputs": [{"name": "load", "unit": "N"}]},
       "initial_state": {"q29": 0.02, "q15_rate": -0.1},
       "inputs": {"load": {"kind": "signal", "signal": "push"}}},
      {"name": "weight", "type": "mass", "parameters": {"mass_kg": 2},
       "initial_state": {"velocity": 0.05}}],
    "couplings": [{"kind": "common_flow", "ports": ["beam.tip", "weight.port"]}],
    "method": {"kind": "auto", "tolerance": 1e-13},
    "signals": {"blocks": [
      {"name": "spring", "kind": "gain", "signal": "beam.q15", "factor": -3},
      {"name": "damper", "kind": "gain", "signal": "beam.tip.flow", "factor": 0.2},
      {"name": "push", "kind": "sum", "signals": ["spring", "damper"]}]},
    "outputs": {"observe": ["beam.q1", "beam.q15", "beam.q29", "beam.q29_rate", "beam.tip.effort",
                            "beam.tip.flow", "beam.storage", "weight.velocity", "push"]}
  })json");
  Json& parameters = scenario["subsystems"][0]["parameters"];
  parameters["M"] = cut_entries(form.M);
  parameters["D"] = cut_entries(form.D);
  parameters["K"] = cut_entries(form.K);
  parameters["B"] = cut_entries(form.B);
  return scenario;
}

Json with_cut(Json scenario, int parts) {
  scenario["subsystems"][0]["cut"] = {{"parts", parts}};
  return scenario;
}

struct Observed {
  std::vector<std::string> labels;
  std::vector<double> values;
};

Observed observed_after_run(const Json& scenario, int threads = 1) {
  const Scenario loaded = parse_scenario(scenario.dump(), "cut.json", ".");
  StepperOptions options = loaded.options;
  options.threads = threads;
  Stepper stepper(loaded.system, options);
  stepper.step(loaded.steps);
  Observed out;
  for (const Quantity& quantity : loaded.recording.quantities) {
    out.labels.push_back(quantity.label);
    out.values.push_back(observe(stepper, quantity));
  }
  return out;
}

void expect_same_observed(const Observed& a, const Observed& b, double tolerance) {
  ASSERT_EQ(a.labels, b.labels);
  double size = 0.0;
  for (const double value : a.values) size = std::max(size, std::abs(value));
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    EXPECT_NEAR(a.values[i], b.values[i], tolerance * (size + std::abs(a.values[i])))
        << a.labels[i];
  }
}

std::string report_of(const Json& scenario) {
  try {
    (void)parse_scenario(scenario.dump(), "cut.json", ".");
  } catch (const ScenarioError& error) {
    return error.report();
  }
  return "";
}

TEST(ScenarioCutNames, EveryNameOfTheUncutPartMeansWhatItMeant) {
  const Observed whole = observed_after_run(beam_scenario());
  EXPECT_GT(std::abs(whole.values.back()), 1e-6);  // the loop through the signals is closed
  for (const int parts : {1, 2, 4, 7}) {
    SCOPED_TRACE(parts);
    expect_same_observed(whole, observed_after_run(with_cut(beam_scenario(), parts)), 1e-10);
  }
}

TEST(ScenarioCutNames, ControlAnotherDamperIsSeen) {
  Json other = with_cut(beam_scenario(), 3);
  other["signals"]["blocks"][1]["factor"] = 0.21;
  const Observed a = observed_after_run(beam_scenario()), b = observed_after_run(other);
  double gap = 0.0;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    gap = std::max(gap, std::abs(a.values[i] - b.values[i]));
  }
  EXPECT_GT(gap, 1e-6);
}

TEST(ScenarioCutNames, WithoutOutputsEveryStateIsObservedOnceUnderItsOwnName) {
  Json scenario = beam_scenario();
  scenario.erase("outputs");
  const Observed whole = observed_after_run(scenario);
  ASSERT_EQ(whole.labels.size(), 62U);
  expect_same_observed(whole, observed_after_run(with_cut(scenario, 5)), 1e-10);
}

TEST(ScenarioCutNames, ThreadsChangeNoBit) {
  const Json scenario = with_cut(beam_scenario(), 4);
  EXPECT_EQ(observed_after_run(scenario, 1).values, observed_after_run(scenario, 3).values);
}

TEST(ScenarioCutNames, PiecesHaveNamesOfTheirOwnToo) {
  Json scenario = with_cut(beam_scenario(), 2);
  scenario["outputs"]["observe"] = {"beam/0.storage", "beam/1.storage", "beam.storage"};
  const Observed storage = observed_after_run(scenario);
  EXPECT_GT(storage.values[0], 0.0);
  EXPECT_GT(storage.values[1], 0.0);
  EXPECT_NEAR(storage.values[0] + storage.values[1], storage.values[2], 1e-12 * storage.values[2]);
}

TEST(ScenarioCutNames, ImpedancesOfItsPortsAndWatchesOfItsStates) {
  Json scenario = beam_scenario();
  scenario["method"] = {
      {"kind", "douglas-rachford"},
      {"iterations", 20000},
      {"tolerance", 1e-12},
      {"impedance", {{"kind", "per_port"}, {"value", 2.0}, {"ports", {{"beam.tip", 3.0}}}}}};
  scenario["events"] = Json::parse(R"([{"of": "beam.q29", "level": 0.0}])");
  EXPECT_EQ(report_of(scenario), "");
  EXPECT_EQ(report_of(with_cut(scenario, 3)), "");
}

TEST(ScenarioCutNames, InArraysAndAssemblies) {
  const auto used_twice = [](bool cut) {
    Json scenario = beam_scenario();
    Json beam = scenario["subsystems"][0], weight = scenario["subsystems"][1];
    beam["inputs"] = Json::parse(R"({"load": {"kind": "constant", "value": 0.3}})");
    if (cut) beam["cut"] = {{"parts", {{"parameter", "pieces"}}}};
    scenario["assemblies"]["arm"] = {{"parameters", {{"pieces", nullptr}}},
                                     {"subsystems", {beam, weight}},
                                     {"couplings", scenario["couplings"]}};
    scenario["subsystems"] = Json::parse(R"([{"name": "arm", "assembly": "arm", "count": 2,
                                              "parameters": {"pieces": 3}}])");
    scenario.erase("couplings");
    scenario.erase("signals");
    scenario["outputs"]["observe"] = {"arm_0/beam.q29", "arm_1/beam.tip.flow",
                                      "arm_1/beam.storage"};
    return scenario;
  };
  ASSERT_EQ(report_of(used_twice(true)), "");
  expect_same_observed(observed_after_run(used_twice(false)), observed_after_run(used_twice(true)),
                       1e-10);
}

TEST(ScenarioCutNames, APortHamiltonianPart) {
  Json scenario = Json::parse(R"json({
    "name": "line", "time": {"step_s": 0.1, "steps": 100},
    "subsystems": [{"name": "line", "type": "linear_port_hamiltonian",
      "parameters": {"states": [], "ports": [], "inputs": [{"name": "u", "unit": "V"}],
        "J": {"entries": []}, "R": {"entries": []}, "Q": {"entries": []},
        "G": {"entries": [[0, 0, 1]]}},
      "inputs": {"u": {"kind": "constant", "value": 1}}}],
    "method": {"kind": "auto", "tolerance": 1e-13}})json");
  Json& parameters = scenario["subsystems"][0]["parameters"];
  constexpr int kStates = 24;
  for (int i = 0; i < kStates; ++i) {
    parameters["states"].push_back({{"name", "x" + std::to_string(i)}, {"unit", "1"}});
    parameters["Q"]["entries"].push_back({i, i, 1.0 + 0.1 * (i % 3)});
    parameters["R"]["entries"].push_back({i, i, 0.05});
    if (i == 0) continue;
    parameters["J"]["entries"].push_back({i, i - 1, 1.0});
    parameters["J"]["entries"].push_back({i - 1, i, -1.0});
  }
  ASSERT_EQ(report_of(scenario), "");
  expect_same_observed(observed_after_run(scenario), observed_after_run(with_cut(scenario, 4)),
                       1e-10);
}

// --- in programs ------------------------------------------------------------------------------

Stepper stepper_of(const Json& scenario) {
  Scenario loaded = parse_scenario(scenario.dump(), "cut.json", ".");
  return Stepper(std::move(loaded.system), loaded.options);
}

void expect_near(std::span<const double> a, std::span<const double> b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  double size = 0.0;
  for (const double value : a) size = std::max(size, std::abs(value));
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance * size) << i;
}

Json with_settable_load(int parts) {
  Json scenario = beam_scenario();
  scenario.erase("signals");
  scenario["outputs"]["observe"] = {"beam.q1"};
  scenario["subsystems"][0]["inputs"]["load"] = {{"kind", "settable"}};
  return parts > 0 ? with_cut(scenario, parts) : scenario;
}

TEST(ScenarioCutNames, AProgramReadsAndSetsThePartByItsOwnName) {
  Stepper whole = stepper_of(with_settable_load(0)), cut = stepper_of(with_settable_load(4));
  for (Stepper* const stepper : {&whole, &cut}) {
    EXPECT_EQ(stepper->system().settable_inputs().size(), 1U);
    stepper->set_input(stepper->find_input("beam.load"), 3.0);
    stepper->step(20);
  }
  EXPECT_EQ(cut.input(cut.find_input("beam.load")), 3.0);
  const auto state = cut.state("beam");
  EXPECT_GT(std::abs(state[14]), 1e-9);
  expect_near(whole.state("beam"), state, 1e-10);
  for (const char* const label :
       {"beam.q1", "beam.q29_rate", "beam.tip.effort", "beam.tip.flow", "beam.storage"}) {
    const Quantity a = find_quantity(whole, label), b = find_quantity(cut, label);
    EXPECT_EQ(b.label, label);
    EXPECT_EQ(a.unit, b.unit) << label;
    const double value = observe(whole, a);
    EXPECT_NEAR(observe(cut, b), value, 1e-9 * (1.0 + std::abs(value))) << label;
  }
  // Control: without the load both rest elsewhere.
  Stepper other = stepper_of(with_settable_load(4));
  other.step(20);
  EXPECT_GT(std::abs(other.state("beam")[14] - cut.state("beam")[14]), 1e-6);
}

TEST(ScenarioCutNames, ACloneAndASnapshotKnowTheNamesToo) {
  Stepper cut = stepper_of(with_settable_load(3));
  cut.step(5);
  const Snapshot snapshot = cut.snapshot();
  Stepper clone = cut.clone();
  clone.set_input(clone.find_input("beam.load"), 1.0);
  clone.step(3);
  EXPECT_NE(clone.state("beam")[29], cut.state("beam")[29]);
  clone.restore(snapshot);
  EXPECT_TRUE(std::ranges::equal(clone.state("beam"), cut.state("beam")));
}

TEST(ScenarioCutNames, StatesAreListedOnceWithWhereTheirCopiesAre) {
  const Stepper whole = stepper_of(with_settable_load(0)), cut = stepper_of(with_settable_load(4));
  const StateNames names = state_names(cut.system()), known = state_names(whole.system());
  ASSERT_EQ(names.named.size(), known.named.size());
  for (std::size_t i = 0; i < known.named.size(); ++i) {
    EXPECT_EQ(names.named[i].name, known.named[i].name);
    EXPECT_EQ(names.name_of[static_cast<std::size_t>(names.place[i])], static_cast<int>(i));
  }
  EXPECT_GT(names.name_of.size(), names.named.size()) << "pieces hold copies";
  std::size_t at = 0;
  for (const Part& part : cut.system().parts()) {
    for (const StateVariable& state : part.component->signature().states) {
      const std::string& name = names.named[static_cast<std::size_t>(names.name_of[at++])].name;
      EXPECT_EQ(name.substr(name.find('.') + 1), state.name);
    }
  }
}

TEST(ScenarioCutNames, WhatAProgramMisspellsIsToldInTheNamesOfThePart) {
  Stepper cut = stepper_of(with_settable_load(3));
  const auto said = [&](const auto& call) -> std::string {
    try {
      call();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  };
  const std::string quantity = said([&] { (void)find_quantity(cut, "beam.q31"); });
  EXPECT_NE(quantity.find("subsystem \"beam\" has nothing named \"q31\""), std::string::npos);
  EXPECT_NE(said([&] {
              (void)find_quantity(cut, "beam.q1.coenergy");
            }).find("subsystem \"beam\" is cut, and has no co-energy variables"),
            std::string::npos);
  EXPECT_NE(said([&] { (void)find_quantity(cut, "beem.q1"); }).find("Did you mean \"beam\"?"),
            std::string::npos);
  EXPECT_NE(said([&] { (void)cut.state("beem"); }).find("Did you mean \"beam\"?"),
            std::string::npos);
  EXPECT_NE(said([&] { (void)cut.find_input("beam.lode"); }).find("\"beam.load\""),
            std::string::npos);
  EXPECT_EQ(cut.system().name_of_part(1), "beam");
  EXPECT_EQ(cut.system().parts()[1].name, "beam/1");
}

// --- what is refused -------------------------------------------------------------------------

TEST(ScenarioCutNames, DefectsAreToldInTheirPlacesAllAtOnce) {
  Json scenario = with_cut(beam_scenario(), 1000);
  scenario["subsystems"].push_back(Json::parse(
      R"({"name": "other", "type": "mass", "parameters": {"mass_kg": 1}, "cut": {"parts": 5}})"));
  scenario["subsystems"].push_back(Json::parse(
      R"({"name": "third", "type": "mass", "parameters": {"mass_kg": 1}, "cut": {"pieces": 2}})"));
  const std::string report = report_of(scenario);
  for (const char* const expected :
       {"/subsystems/0/cut", "/subsystems/2/cut: cannot be cut into 5 parts",
        "/subsystems/3/cut/pieces: unknown key", "/subsystems/3/cut/parts: is required"}) {
    EXPECT_NE(report.find(expected), std::string::npos) << expected << "\n" << report;
  }
}

TEST(ScenarioCutNames, UnknownNamesAreToldByThoseOfTheWholePart) {
  Json scenario = with_cut(beam_scenario(), 3);
  scenario["outputs"]["observe"] = {"beam.q31", "beam.tipp.flow"};
  scenario["signals"]["blocks"][0]["signal"] = "beam.q_15";
  const std::string report = report_of(scenario);
  for (const char* const expected :
       {"/outputs/observe/0", "subsystem \"beam\" has nothing named \"q31\"", "/outputs/observe/1",
        "nothing named \"tipp.flow\"", "/signals/blocks/0/signal", "nothing named \"q_15\""}) {
    EXPECT_NE(report.find(expected), std::string::npos) << expected << "\n" << report;
  }
  EXPECT_EQ(report.find("beam/"), std::string::npos) << report;
}

TEST(ScenarioCutNames, OptionsThatDoNotFitThePartAreToldAsWithoutIt) {
  const auto damaged = [](bool cut, const std::function<void(Json&)>& damage) {
    Json scenario = cut ? with_cut(beam_scenario(), 3) : beam_scenario();
    damage(scenario);
    return report_of(scenario);
  };
  const std::vector<std::function<void(Json&)>> damages = {
      [](Json& s) { s["subsystems"][0]["inputs"]["lode"] = 1.0; },
      [](Json& s) { s["subsystems"][0]["initial_state"]["q99"] = 1.0; },
      [](Json& s) { s["couplings"] = Json::array(); },
      [](Json& s) { s["couplings"][0]["ports"][0] = "beam.tap"; },
  };
  for (std::size_t i = 0; i < damages.size(); ++i) {
    SCOPED_TRACE(i);
    const std::string whole = damaged(false, damages[i]), cut = damaged(true, damages[i]);
    EXPECT_NE(whole, "");
    EXPECT_NE(cut, "");
    // The same place; the words may differ.
    EXPECT_EQ(whole.substr(0, whole.find(": ")), cut.substr(0, cut.find(": "))) << whole << cut;
  }
}

TEST(ScenarioCutNames, SubstepsAreRefused) {
  Json scenario = with_cut(beam_scenario(), 3);
  scenario["subsystems"][0]["substeps"] = 2;
  EXPECT_NE(report_of(scenario).find("/subsystems/0/substeps"), std::string::npos);
}

TEST(ScenarioCutNames, TheSchemaKnowsIt) {
  const testing::SchemaChecker schema(scenario_schema());
  EXPECT_TRUE(schema.accepts(with_cut(beam_scenario(), 3).dump()));
  Json wrong = with_cut(beam_scenario(), 3);
  wrong["subsystems"][0]["cut"] = 3;
  EXPECT_FALSE(schema.accepts(wrong.dump()));
}

}  // namespace
}  // namespace portwave::test_scenario_cut_names
