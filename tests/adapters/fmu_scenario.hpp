#pragma once

// Scenarios with FMUs, and what is said of those that are refused.

#include <exception>
#include <filesystem>
#include <functional>
#include <string>

#include <nlohmann/json.hpp>

#include "adapters/fmu_files.hpp"
#include "portwave/runtime/scenario/scenario.hpp"

namespace portwave::testing {

using Json = nlohmann::ordered_json;

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// All that an error says, with every defect of a scenario; empty: there is none.
inline std::string failure_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const ScenarioError& error) {
    return error.report();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

inline Scenario read(const std::filesystem::path& folder, const Json& json,
                     Plugins plugins = Plugins::allowed) {
  return parse_scenario(json.dump(), "x.json", folder, {}, {}, plugins);
}
inline Scenario read(const FmuFolder& folder, const Json& json,
                     Plugins plugins = Plugins::allowed) {
  return read(folder.path(), json, plugins);
}
inline std::string report_of(const FmuFolder& folder, const Json& json,
                             Plugins plugins = Plugins::allowed) {
  return failure_of([&] { read(folder, json, plugins); });
}

}  // namespace portwave::testing
