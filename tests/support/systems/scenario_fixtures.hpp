#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/subsystems/catalogue/catalogue.hpp>

#include "support/files/source_folder.hpp"
#include "support/files/text_file.hpp"

namespace portwave::testing {

using Json = nlohmann::ordered_json;

inline std::filesystem::path scenario_fixtures() {
  return source_folder() / "tests" / "fixtures" / "scenarios";
}

/// A sound scenario with a value of every kind, to which tests make their changes.
inline const std::string& base_text() {
  static const std::string text = read_text(scenario_fixtures() / "base.json");
  return text;
}
inline Json base_scenario() { return Json::parse(base_text()); }

/// Scenario files that ship with the project.
inline std::vector<std::filesystem::path> example_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(source_folder() / "examples")) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// The names of all types of parts, as messages list them. In defects.json: <types>.
inline std::string quoted_part_types() {
  std::string list;
  for (const PartType& type : catalogue()) {
    list += (list.empty() ? "\"" : ", \"") + type.name + "\"";
  }
  return list + ", \"fmu\"";
}

/// One entry of defects.json: changes to the base scenario and all that is said about the result.
struct ScenarioDefect {
  std::string name;
  bool schema_rejects;  ///< an editor that has the schema sees it too
  Json edits;           ///< [[pointer, value], …]; [pointer] takes the value away
  Issues errors;
};

inline std::vector<ScenarioDefect> scenario_defects() {
  std::vector<ScenarioDefect> defects;
  for (const Json& entry : Json::parse(read_text(scenario_fixtures() / "defects.json"))) {
    ScenarioDefect defect{entry.at("name"), entry.at("schema_rejects"), entry.at("edits"), {}};
    for (const Json& error : entry.at("errors")) {
      Issue issue{error[0], error[1]};
      const std::size_t types = issue.what.find("<types>");
      if (types != std::string::npos) issue.what.replace(types, 7, quoted_part_types());
      defect.errors.push_back(std::move(issue));
    }
    defects.push_back(std::move(defect));
  }
  return defects;
}

/// Makes the changes [[pointer, value], …] to a scenario.
inline Json edited(Json scenario, const Json& edits) {
  for (const Json& edit : edits) {
    const Json::json_pointer place(edit[0].get<std::string>());
    if (edit.size() == 2) {
      scenario[place] = edit[1];
      continue;
    }
    Json& parent = scenario.at(place.parent_pointer());
    if (parent.is_array()) {
      parent.erase(std::stoul(place.back()));
    } else if (parent.erase(place.back()) == 0) {
      throw std::logic_error("nothing to take away at " + place.to_string());
    }
  }
  return scenario;
}

inline Scenario parse(const std::string& text, const std::vector<Override>& overrides = {}) {
  return parse_scenario(text, "base.json", scenario_fixtures(), overrides);
}

/// What is wrong with a scenario; nothing when it is sound.
inline Issues issues_of(const std::string& text, const std::vector<Override>& overrides = {}) {
  try {
    parse(text, overrides);
  } catch (const ScenarioError& error) {
    return error.issues();
  }
  return {};
}

/// The report on a scenario that has defects.
inline std::string report_of(const std::string& text, const std::vector<Override>& overrides = {}) {
  try {
    parse(text, overrides);
  } catch (const ScenarioError& error) {
    return error.report();
  }
  return {};
}

/// "pointer: text" lines, which compare and print well.
inline std::vector<std::string> lines_of(const Issues& issues) {
  std::vector<std::string> lines;
  for (const Issue& issue : issues) lines.push_back(issue.where + ": " + issue.what);
  return lines;
}

/// The text with the first `from` replaced; throws when there is none, so that no test goes blind.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t place = text.find(from);
  if (place == std::string::npos) throw std::logic_error("the text has no " + from);
  return text.replace(place, from.size(), to);
}

}  // namespace portwave::testing
