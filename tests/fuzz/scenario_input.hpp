#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/runtime/step/stepper.hpp>

#include "fuzz/fuzz_target.hpp"

namespace portwave::fuzz {

inline void expect_readable(const Issues& issues, const std::string& told) {
  expect(!issues.empty(), "an error says what is wrong");
  for (const Issue& issue : issues) expect(!issue.what.empty(), "a defect has a text");
  const bool printable = std::ranges::all_of(
      told, [](unsigned char c) { return c == '\n' || (c >= 0x20 && c != 0x7f); });
  if (!printable) std::fprintf(stderr, "%s\n", told.c_str());
  expect(printable, "what is told can be printed");
}

/// Whether two steps take no time worth speaking of.
inline bool is_small(const Scenario& scenario) {
  const CouplingMethod& method = scenario.options.method;
  if (scenario.system.parts().size() > 20 || iterations_of(method) > 50) return false;
  int states = 0;
  for (const Part& part : scenario.system.parts()) {
    states += part.component->signature().state_size();
    if (part.substeps > 10) return false;
  }
  const auto* const dynamic = method.as<DynamicIteration>();
  return states <= 100 && (dynamic == nullptr || dynamic->window_steps <= 20);
}

/// Reads a scenario and, where it is sound and small, steps it.
inline void read_and_step(const std::string& text, const std::vector<Override>& overrides) {
  try {
    const Scenario scenario = parse_scenario(text, "fuzz.json", "no such folder", overrides);
    if (!is_small(scenario)) return;
    StepperOptions options = scenario.options;
    options.executor = ExecutorKind::serial;
    Stepper stepper(scenario.system, options);
    for (int i = 0; i < 2; ++i) {
      if (options.sizes) {
        stepper.step_towards(scenario.end_s);
      } else {
        stepper.step();
      }
    }
  } catch (const ScenarioError& error) {
    expect_readable(error.issues(), error.report());
  } catch (const ConfigError& error) {
    expect_readable(error.issues(), error.what());
  } catch (const StepError& error) {
    expect(*error.what() != '\0', "an error says what is wrong");
  }
}

}  // namespace portwave::fuzz
