#pragma once

// System structures for the tests, as text.

#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "adapters/fmu_scenario.hpp"
#include "portwave/runtime/adapters/structure.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "support/files/text_file.hpp"

namespace portwave::testing {

inline std::string ssd(const std::string& system, const std::string& rest = "",
                       const std::string& version = "1.0") {
  const std::string base = "http://ssp-standard.org/SSP1/SystemStructure";
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ssd:SystemStructureDescription "
         "name=\"made\" "
         "version=\"" +
         version + "\"\n  xmlns:ssd=\"" + base + "Description\" xmlns:ssc=\"" + base +
         "Common\"\n  xmlns:ssv=\"" + base + "ParameterValues\" xmlns:ssm=\"" + base +
         "ParameterMapping\"\n  xmlns:ssb=\"" + base +
         "SignalDictionary\">\n<ssd:System "
         "name=\"system\">\n" +
         system + "</ssd:System>\n" + rest + "</ssd:SystemStructureDescription>\n";
}

inline std::string elements(const std::string& inside) {
  return "<ssd:Elements>\n" + inside + "</ssd:Elements>\n";
}
inline std::string connections(const std::string& inside) {
  return "<ssd:Connections>\n" + inside + "</ssd:Connections>\n";
}
inline std::string component(const std::string& name, const std::string& source,
                             const std::string& inside = "", const std::string& more = "") {
  return "<ssd:Component name=\"" + name + "\" source=\"" + source + "\" " + more + ">" + inside +
         "</ssd:Component>\n";
}
/// "mass.v" to "spring.v"; ends without an element are connectors of the system.
inline std::string connection(const std::string& from, const std::string& to,
                              const std::string& inside = "", const std::string& more = "") {
  const auto end = [](const std::string& key, const std::string& path) {
    const std::size_t dot = path.find('.');
    const bool is_own = dot == std::string::npos;
    return (is_own ? "" : " " + key + "Element=\"" + path.substr(0, dot) + "\"") + " " + key +
           "Connector=\"" + (is_own ? path : path.substr(dot + 1)) + "\"";
  };
  return "<ssd:Connection" + end("start", from) + end("end", to) + " " + more + ">" + inside +
         "</ssd:Connection>\n";
}
inline std::string linear(const std::string& factor, const std::string& offset = "0") {
  return "<ssc:LinearTransformation factor=\"" + factor + "\" offset=\"" + offset + "\"/>";
}
inline std::string parameters(const std::vector<std::pair<std::string, std::string>>& values,
                              const std::string& more = "") {
  std::string out = "<ssv:ParameterSet version=\"1.0\" name=\"set\"><ssv:Parameters>";
  for (const auto& [name, value] : values) {
    out += "<ssv:Parameter name=\"" + name + "\">" + value + "</ssv:Parameter>";
  }
  return out + "</ssv:Parameters>" + more + "</ssv:ParameterSet>";
}
inline std::string real(const std::string& value, const std::string& unit = "") {
  return "<ssv:Real value=\"" + value + "\"" + (unit.empty() ? "" : " unit=\"" + unit + "\"") +
         "/>";
}
inline std::string binding(const std::string& inside, const std::string& more = "") {
  return "<ssd:ParameterBinding " + more + ">" + inside + "</ssd:ParameterBinding>";
}
inline std::string bound(const std::string& set, const std::string& more = "") {
  return binding("<ssd:ParameterValues>" + set + "</ssd:ParameterValues>", more);
}
inline std::string bindings(const std::string& inside) {
  return "<ssd:ParameterBindings>" + inside + "</ssd:ParameterBindings>\n";
}
inline std::string connector(const std::string& name, const std::string& kind,
                             const std::string& unit = "") {
  return "<ssd:Connector name=\"" + name + "\" kind=\"" + kind + "\"><ssc:Real" +
         (unit.empty() ? "" : " unit=\"" + unit + "\"") + "/></ssd:Connector>";
}
inline std::string connectors(const std::string& inside) {
  return "<ssd:Connectors>" + inside + "</ssd:Connectors>\n";
}
inline std::string experiment(const std::string& attributes, const std::string& step_s = "") {
  return "<ssd:DefaultExperiment " + attributes + ">" +
         (step_s.empty() ? ""
                         : "<ssd:Annotations><ssc:Annotation type=\"com.opensimulationplatform\">"
                           "<osp:Algorithm xmlns:osp=\"http://opensimulationplatform.com/SSP/"
                           "OSPAnnotations\"><osp:FixedStepAlgorithm baseStepSize=\"" +
                               step_s + "\"/></osp:Algorithm></ssc:Annotation></ssd:Annotations>") +
         "</ssd:DefaultExperiment>\n";
}
inline std::string note_of_ours(const std::string& json) {
  return "<ssd:Annotations><ssc:Annotation type=\"org.portwave\">" + json +
         "</ssc:Annotation></ssd:Annotations>\n";
}

inline std::string osp(const std::string& simulators, const std::string& connections,
                       const std::string& functions = "", const std::string& head = "") {
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<OspSystemStructure "
         "xmlns=\"http://opensimulationplatform.com/MSMI/OSPSystemStructure\" "
         "version=\"0.1\">\n" +
         head + "<Simulators>\n" + simulators + "</Simulators>\n<Functions>" + functions +
         "</Functions>\n<Connections>\n" + connections + "</Connections>\n</OspSystemStructure>\n";
}

/// The mass and the spring of the fixture, whose force counts against the mass.
inline std::string pair_elements() {
  const auto values = [](const std::vector<std::pair<std::string, std::string>>& all) {
    return bindings(bound(parameters(all)));
  };
  return elements(
      component("mass", "resources/mass.fmu",
                values({{"mass", real("2")}, {"d", real("0.1")}, {"start.x", real("0.2")}})) +
      component("spring", "resources/spring.fmu",
                values({{"k", real("100")}, {"d", real("0.5")}, {"start.x", real("0.2")}})));
}
inline std::string pair_connections(const std::string& factor = "-1") {
  return connections(connection("mass.v", "spring.v") +
                     connection("spring.F", "mass.F", linear(factor)));
}
inline std::string pair_experiment(const std::string& step_s = "0.01") {
  return experiment("startTime=\"0\" stopTime=\"2\"", step_s);
}

/// A package, its members given by name.
class SspFolder : public FmuFolder {
 public:
  std::filesystem::path package(const std::string& description,
                                const std::vector<std::pair<std::string, FmuRecipe>>& fmus,
                                std::vector<ZipMember> more = {}) {
    std::vector<ZipMember> members = {{"SystemStructure.ssd", description}};
    for (const auto& [name, recipe] : fmus) {
      members.push_back({"resources/" + name, read_text(add("part_of_" + name, recipe))});
    }
    for (ZipMember& own : more) members.push_back(std::move(own));
    return add("system.ssp", members);
  }
};

inline std::vector<std::pair<std::string, FmuRecipe>> pair_fmus(int mass_version = 2,
                                                                int spring_version = 3) {
  return {{"mass.fmu", {.version = mass_version}},
          {"spring.fmu", {.version = spring_version, .library = "spring"}}};
}

inline StructureScenario structure_of(const std::filesystem::path& file,
                                      StructureOptions options = {}) {
  options.may_run_fmus = true;
  return read_structure(file, options);
}
inline Json scenario_of(const std::filesystem::path& file, StructureOptions options = {}) {
  return Json::parse(structure_of(file, options).text);
}
/// What is refused, a line for each.
inline std::string refusal_of(const std::filesystem::path& file) {
  try {
    structure_of(file);
  } catch (const ConfigError& error) {
    std::string out;
    for (const Issue& issue : error.issues()) out += issue.where + ": " + issue.what + "\n";
    return out;
  }
  return "";
}
inline std::string notes_of(const StructureScenario& made) {
  std::string out;
  for (const Issue& note : made.notes) out += note.where + ": " + note.what + "\n";
  return out;
}

/// Where the mass is at the end, and whether the couplings met the tolerance.
inline double end_of(const std::filesystem::path& file, const std::string& part = "mass",
                     const std::vector<Override>& more = {}) {
  std::vector<Override> overrides = {{"/method", R"({"kind": "auto", "iterations": 40,
    "tolerance": 1e-12, "tank": {"initial_J": 1000}})"}};
  overrides.insert(overrides.end(), more.begin(), more.end());
  const Scenario scenario = load_scenario(file, overrides, {}, Plugins::allowed);
  Stepper stepper(scenario.system, scenario.options);
  stepper.step(static_cast<int>(scenario.steps));
  const auto& parts = scenario.system.parts();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].name != part) continue;
    const auto& states = parts[i].component->signature().states;
    for (std::size_t k = 0; k < states.size(); ++k) {
      if (states[k].name == "x") return stepper.state(static_cast<int>(i))[static_cast<int>(k)];
    }
  }
  return std::nan("");
}

inline Json block_named(const Json& scenario, const std::string& name) {
  for (const Json& own : scenario.at("signals").at("blocks")) {
    if (own.at("name") == name) return own;
  }
  return {};
}

inline constexpr double kWhole = 1e-5;  // of mean answers from both ends of a step

}  // namespace portwave::testing
