#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "portwave/runtime/scenario/scenario.hpp"

namespace portwave::testing {

using Json = nlohmann::ordered_json;

/// A frame, to which the tests add what they are about.
inline Json scenario_with(const std::string& sections) {
  Json scenario = Json::parse(R"json({
    "name": "assembled",
    "time": {"step_s": 0.01, "steps": 40},
    "method": {"kind": "auto"}
  })json");
  scenario.update(Json::parse(sections));
  return scenario;
}

inline constexpr const char* kCell = R"json("cell": {
    "parameters": {"mass_kg": null, "frequency_Hz": 2,
                   "stiffness_N_per_m": {"expression": "mass_kg*(2*pi*frequency_Hz)^2"},
                   "elongation_m": 0, "force": {"kind": "constant", "value": 0}},
    "subsystems": [
      {"name": "mass", "type": "mass",
       "parameters": {"mass_kg": {"parameter": "mass_kg"}, "damping_Ns_per_m": 0.3, "ports": 2},
       "inputs": {"force": {"parameter": "force"}}},
      {"name": "spring", "type": "spring",
       "parameters": {"stiffness_N_per_m": {"parameter": "stiffness_N_per_m"}},
       "initial_state": {"elongation": {"parameter": "elongation_m"}}}],
    "couplings": [{"kind": "connection", "ports": ["mass.port_2", "spring.left"]}],
    "ports": {"left": "mass.port_1", "right": "spring.right"}})json";

inline Json line_of_cells() {
  return scenario_with(std::string(R"json({"assemblies": {)json") + kCell + R"json(},
    "subsystems": [
      {"name": "cell", "assembly": "cell", "count": 5,
       "parameters": {"mass_kg": {"expression": "1 + i/4"},
                      "elongation_m": {"expression": "if(i == 2, 0.1, 0)"},
                      "force": {"kind": "expression",
                                "expression": "sin({i}*t) + {0.5*i - 1}"}}}],
    "couplings": [
      {"kind": "free", "ports": ["cell_0.left"]},
      {"kind": "connection", "ports": ["cell_{i}.right", "cell_{i+1}.left"], "for": {"i": [0, 3]}},
      {"kind": "resistive", "ports": ["cell_4.right"], "resistance": {"expression": "1/2"}}]})json");
}

inline Scenario read(const Json& scenario, const std::vector<Override>& overrides = {}) {
  return parse_scenario(scenario.dump(), "file", ".", overrides);
}

inline std::vector<std::string> defects_of(const Json& scenario,
                                           const std::vector<Override>& overrides = {}) {
  try {
    (void)read(scenario, overrides);
  } catch (const ScenarioError& error) {
    std::vector<std::string> out;
    for (const Issue& issue : error.issues()) out.push_back(issue.where + ": " + issue.what);
    return out;
  }
  return {};
}

inline std::string all(const std::vector<std::string>& defects) {
  std::string text;
  for (const std::string& d : defects) text += d + '\n';
  return text;
}

/// True when exactly one defect begins like this.
inline ::testing::AssertionResult one_begins(const std::vector<std::string>& defects,
                                             const std::string& begin) {
  const auto count =
      std::ranges::count_if(defects, [&](const std::string& d) { return d.starts_with(begin); });
  if (count == 1) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << count << " begin with\n  " << begin << "\nof\n"
                                       << all(defects);
}

/// The only defect of a scenario.
inline std::string only_defect(const Json& scenario) {
  const auto defects = defects_of(scenario);
  return defects.size() == 1 ? defects[0] : std::to_string(defects.size()) + "\n" + all(defects);
}

}  // namespace portwave::testing
