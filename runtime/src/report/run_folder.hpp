#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace portwave::report {

/// The results of a run other than its tables.
struct RunFolder {
  std::filesystem::path path;
  nlohmann::json summary;                    ///< summary.json
  nlohmann::json network;                    ///< network.json; null where there is none
  std::map<std::string, std::string> units;  ///< by quantity

  /// Errors: std::runtime_error where there is no folder, no summary of a run, or it is not JSON.
  static RunFolder read(const std::filesystem::path& folder);
  /// The name of the scenario.
  std::string title() const;
};

/// An entry of JSON that may not be there: `at(summary, "certificate", "status")`; null then.
template <typename... Keys>
const nlohmann::json& at(const nlohmann::json& json, const char* key, const Keys&... keys) {
  static const nlohmann::json kNothing;
  const auto found = json.is_object() ? json.find(key) : json.end();
  if (!json.is_object() || found == json.end()) return kNothing;
  if constexpr (sizeof...(keys) == 0) {
    return *found;
  } else {
    return at(*found, keys...);
  }
}

double number_or(const nlohmann::json& json, double otherwise);
std::string text_or(const nlohmann::json& json, const std::string& otherwise);

}  // namespace portwave::report
