#pragma once

// The FMU with arrays, events and clocks (fixtures/fmu/discrete3.c), packed with a description.

#include <filesystem>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "adapters/fmu_pair.hpp"

namespace portwave::testing {

/// The types of its arrays, in the order of the fixture.
inline constexpr const char* kFmi3Types[] = {"Float32", "Int8",   "UInt8", "Int16",  "UInt16",
                                             "Int32",   "UInt32", "Int64", "UInt64", "Boolean"};

struct DiscreteRecipe {
  bool has_events = true;
  bool takes_any_step = true;
  bool provides_intermediate = false;
  std::string defect = "";
  std::string gain_variability = "discrete";
  /// Of the periodic clock.
  std::string clock = R"(intervalVariability="constant" intervalDecimal="0.1")";
  std::string more_variables = "";
  std::string size_of_a = R"(<Dimension valueReference="1"/><Dimension start="3"/>)";
};

inline std::string discrete_description(const DiscreteRecipe& recipe) {
  const auto truth = [](bool own) { return own ? "\"true\"" : "\"false\""; };
  std::string out =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<fmiModelDescription fmiVersion=\"3.0\" "
      "modelName=\"discrete\" instantiationToken=\"{fixture}\">\n<CoSimulation "
      "modelIdentifier=\"fixture\" canGetAndSetFMUState=\"true\" canSerializeFMUState=\"true\" "
      "canHandleVariableCommunicationStepSize=";
  out += truth(recipe.takes_any_step);
  out += std::string(" hasEventMode=") + truth(recipe.has_events);
  out += std::string(" providesIntermediateUpdate=") + truth(recipe.provides_intermediate);
  out += "/>\n<ModelVariables>\n";
  const auto add = [&](const std::string& type, const std::string& name, int reference,
                       const std::string& more, const std::string& inside = "") {
    out += "<" + type + " name=\"" + name + "\" valueReference=\"" + std::to_string(reference) +
           "\" " + more + ">" + inside + "</" + type + ">\n";
  };
  const std::string parameter = R"(causality="parameter" variability="fixed" )";
  add("Float64", "time", 0, R"(causality="independent")");
  add("UInt64", "n", 1, R"(causality="structuralParameter" variability="fixed" start="2")");
  add("Float64", "F", 2, R"(causality="input" start="0")");
  add("Float64", "v", 3,
      std::string(R"(causality="output")") +
          (recipe.provides_intermediate ? R"( intermediateUpdate="true")" : ""));
  add("Float64", "x", 4, R"(causality="output")");
  add("Float64", "m", 5, parameter + R"(start="1")");
  add("Float64", "k", 6, parameter + R"(start="0")");
  add("Float64", "g", 7, parameter + R"(start="0")");
  add("Float64", "bounces", 8, parameter + R"(start="0")");
  add("Float64", "x0", 9, parameter + R"(start="0")");
  add("Float64", "v0", 10, parameter + R"(start="0")");
  add("Int32", "returns", 11, R"(causality="local")");
  add("Int32", "events", 12, R"(causality="local")");
  add("Float64", "speed", 13, R"(causality="output")");
  add("Float64", "beat", 14, parameter + R"(start="0")");
  add("Float64", "kick", 15, parameter + R"(start="0")");
  add("Int32", "beats", 16, R"(causality="local")");
  add("Float64", "late", 17, R"(causality="local")");
  add("Float64", "A", 20, parameter + R"(start="1 2 3 4 5 6")", recipe.size_of_a);
  add("Float64", "w", 21, R"(causality="input" start="0")", R"(<Dimension start="3"/>)");
  add("Float64", "y", 22, R"(causality="output")", R"(<Dimension valueReference="1"/>)");
  add("Float64", "fixed", 23, R"(causality="local")",
      R"(<Dimension start="2"/><Dimension start="2"/>)");
  add("Int32", "gain", 30,
      R"(causality="input" variability=")" + recipe.gain_variability + R"(" start="0")");
  add("Int32", "doubled", 31, R"(causality="output")");
  add("Int32", "quadrupled", 32, R"(causality="output")");
  add("Clock", "clock", 50, R"(causality="input" )" + recipe.clock);
  add("Float64", "s", 51, R"(causality="input" variability="discrete" clocks="50" start="0")");
  add("Float64", "held", 52, R"(causality="output" variability="discrete" clocks="50")");
  add("Int32", "ticks", 53, R"(causality="output")");
  add("Float64", "sum", 54, R"(causality="output" variability="discrete" clocks="50")");
  add("Clock", "hit", 60, R"(causality="output" intervalVariability="triggered")");
  add("Int32", "hits", 61, R"(causality="output" clocks="60")");
  add("Float64", "impact", 62, R"(causality="output" variability="discrete" clocks="60")");
  add("Clock", "changed", 65, R"(causality="output" intervalVariability="triggered")");
  add("Float64", "pushes", 70, R"(causality="input" variability="discrete" start="0 0")",
      R"(<Dimension start="2"/>)");
  for (int k = 0; k < static_cast<int>(std::size(kFmi3Types)); ++k) {
    const std::string type = kFmi3Types[k], name = type;
    const std::string start = type == "Boolean" ? "false false" : "0 0";
    add(type, "in_" + name, 100 + k, R"(causality="input" start=")" + start + "\"",
        R"(<Dimension start="2"/>)");
    add(type, "out_" + name, 200 + k, R"(causality="output")", R"(<Dimension start="2"/>)");
  }
  out += recipe.more_variables;
  return out + "</ModelVariables>\n<ModelStructure/>\n</fmiModelDescription>\n";
}

inline std::filesystem::path add_discrete(FmuFolder& folder, const DiscreteRecipe& recipe = {},
                                          const std::string& name = "discrete.fmu") {
  std::vector<ZipMember> members = {
      {"modelDescription.xml", discrete_description(recipe)},
      {binary_name(3), fixture_library({.version = 3, .library = "discrete"})}};
  if (!recipe.defect.empty()) members.push_back({"resources/defect.txt", recipe.defect});
  return folder.add(name, members);
}

}  // namespace portwave::testing
