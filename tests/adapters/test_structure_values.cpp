// What a structure says of values, units and directions: each is taken as its format defines it.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/structure_texts.hpp"

namespace portwave::test_structure_values {
namespace {

using namespace portwave::testing;

const std::string kTons =
    "<ssv:Units><ssc:Unit name=\"t\"><ssc:BaseUnit kg=\"1\" "
    "factor=\"1000\"/></ssc:Unit></ssv:Units>";

std::string alone(const std::string& binding) {
  return ssd(elements(component("mass", "resources/mass.fmu", bindings(binding))),
             pair_experiment());
}

/// A mapping is applied to what the value is in the unit of where it goes.
TEST(SspValues, MappingsComeAfterUnits) {
  const auto mapped = [](const std::string& more) {
    const std::string mapping =
        "<ssd:ParameterMapping><ssm:ParameterMapping version=\"1.0\"><ssm:MappingEntry "
        "source=\"m\" "
        "target=\"mass\" " +
        more + ">" + linear("2", "1") +
        "</ssm:MappingEntry></ssm:ParameterMapping></ssd:ParameterMapping>";
    SspFolder folder;
    const Json made = scenario_of(folder.package(
        alone(binding("<ssd:ParameterValues>" + parameters({{"m", real("0.4", "t")}}, kTons) +
                      "</ssd:ParameterValues>" + mapping)),
        pair_fmus()));
    return made["signals"]["blocks"][0]["start"]["mass"].get<double>();
  };
  EXPECT_DOUBLE_EQ(mapped(""), 2.0 * 400.0 + 1.0);
  EXPECT_DOUBLE_EQ(mapped("suppressUnitConversion=\"true\""), 2.0 * 0.4 + 1.0);
}

TEST(SspValues, UnitsOfValuesAreKnown) {
  // The control: known units are converted.
  SspFolder folder;
  const Json made = scenario_of(
      folder.package(alone(bound(parameters({{"mass", real("0.4", "t")}}, kTons))), pair_fmus()));
  EXPECT_EQ(made["signals"]["blocks"][0]["start"]["mass"], 400.0) << made.dump(1);
  const auto words = [&](const std::string& unit, const std::string& units) {
    const auto file =
        folder.package(alone(bound(parameters({{"mass", real("0.4", unit)}}, units))), pair_fmus());
    const std::string refused = refusal_of(file);
    return refused.empty() ? notes_of(structure_of(file)) : refused;
  };
  std::string tons = kTons;
  tons.replace(tons.find("\"t\""), 3, "\"ton\"");
  EXPECT_TRUE(has(words("tom", tons),
                  "the unit \"tom\" of the parameter \"mass\" is not among the <Units>. Did you "
                  "mean \"ton\"?"))
      << words("tom", tons);
  // Tools that give names alone: told, unless it is the name that the FMU has.
  EXPECT_TRUE(has(words("t", ""),
                  "the unit \"t\" of the value of \"mass\" of \"mass\" is defined "
                  "nowhere: it is taken in kg"))
      << words("t", "");
  EXPECT_EQ(words("kg", ""), "");
}

/// Start and end of a connection say no direction; what is transformed is the value.
TEST(SspValues, ReversedConnectionsKeepTheirTransformation) {
  for (const bool is_reversed : {false, true}) {
    SspFolder folder;
    const std::string joined = is_reversed ? connection("other.flag", "mass.v", linear("2", "1"))
                                           : connection("mass.v", "other.flag", linear("2", "1"));
    const Json made =
        scenario_of(folder.package(ssd(elements(component("mass", "resources/mass.fmu") +
                                                component("other", "resources/mass.fmu")) +
                                           connections(joined),
                                       pair_experiment()),
                                   pair_fmus()));
    bool is_found = false;
    for (const Json& block : made["signals"]["blocks"]) {
      if (block["name"] != "to_other_flag") continue;
      is_found = true;
      EXPECT_EQ(block["factor"], 2.0);
      EXPECT_EQ(block["offset"], 1.0);
    }
    EXPECT_TRUE(is_found) << made.dump(1);
  }
}

TEST(SspValues, UnitsOfConnectorsThatDifferAreTold) {
  const auto notes = [](const std::string& factor) {
    SspFolder folder;
    return notes_of(structure_of(folder.package(
        ssd(elements(
                component("mass", "resources/mass.fmu", connectors(connector("F", "input", "N")))),
            "<ssd:Units><ssc:Unit name=\"N\"><ssc:BaseUnit kg=\"1\" m=\"1\" s=\"-2\" factor=\"" +
                factor + "\"/></ssc:Unit></ssd:Units>" + pair_experiment()),
        pair_fmus())));
  };
  EXPECT_EQ(notes("1"), "");
  EXPECT_TRUE(has(notes("1000"),
                  "the connector \"F\" of \"mass\" is in N, and the FMU's variable in "
                  "force: the FMU's unit counts"))
      << notes("1000");
}

/// A description in a folder of its own: its sources are relative to it, or absolute.
TEST(SspValues, SourcesOfInnerDescriptions) {
  SspFolder folder;
  const auto fmu = std::filesystem::absolute(folder.add("mass.fmu", FmuRecipe{})).string();
  std::filesystem::create_directories(folder.path() / "sub");
  const std::string type = "type=\"application/x-ssp-definition\"";
  const auto file = folder.path() / "SystemStructure.ssd";
  write_text(file, ssd(elements(component("in", "sub/in.ssd", "", type)), pair_experiment()));
  for (const std::string& source : {std::string("../mass.fmu"), fmu, "file://" + fmu}) {
    write_text(folder.path() / "sub/in.ssd", ssd(elements(component("mass", source))));
    EXPECT_EQ(refusal_of(file), "") << source;
  }
  write_text(folder.path() / "sub/in.ssd", ssd(elements(component("mass", "mass.fmu"))));
  EXPECT_TRUE(has(refusal_of(file), "is no file that can be read"));
}

/// Elements of other namespaces, and what is in annotations, are nobody else's business.
TEST(SspValues, OtherNamespacesPass) {
  SspFolder folder;
  const std::string foreign =
      "<tool:Conections xmlns:tool=\"urn:tool\"><tool:Connection/></tool:Conections>"
      "<ssd:Annotations><ssc:Annotation type=\"tool\"><ssd:System/></ssc:Annotation>"
      "</ssd:Annotations><ssd:Novelty/>";
  const StructureScenario made = structure_of(folder.package(
      ssd(elements(component("mass", "resources/mass.fmu")) + foreign, pair_experiment()),
      pair_fmus()));
  EXPECT_TRUE(has(notes_of(made), "<ssd:Novelty> has no place in <System>. It is passed over"))
      << notes_of(made);
}

/// A spring-damper that moves a small mass answers at once, and has decayed before the first step ends.
std::vector<std::pair<std::string, FmuRecipe>> with_small_mass(const std::string& library) {
  auto fmus = pair_fmus();
  fmus[1].second.library = library;
  return fmus;
}
std::string with_damper(const std::string& mass, const std::string& factor) {
  const auto values = [](const std::vector<std::pair<std::string, std::string>>& all) {
    return bindings(bound(parameters(all)));
  };
  return ssd(elements(component("mass", "resources/mass.fmu", values({{"mass", real("2")}})) +
                      component("spring", "resources/spring.fmu",
                                values({{"mass", real(mass)}, {"d", real("50")}}))) +
                 pair_connections(factor),
             pair_experiment());
}

TEST(SspDirections, FastDecayHidesNoSign) {
  // d h/m from 0.05 to 500.
  for (const char* const mass : {"10", "1", "0.1", "0.01", "0.001"}) {
    SspFolder folder;
    const auto fmus = with_small_mass("spring_to_mass");
    const StructureScenario right = structure_of(folder.package(with_damper(mass, "-1"), fmus));
    EXPECT_TRUE(has(right.text, "common_flow")) << mass << notes_of(right);
    EXPECT_TRUE(has(notes_of(right),
                    "is coupled by waves: known from units, the direction of power "
                    "measured"))
        << notes_of(right);
    const StructureScenario wrong = structure_of(folder.package(with_damper(mass, "1"), fmus));
    EXPECT_FALSE(has(wrong.text, "common_flow")) << mass;
    EXPECT_TRUE(has(notes_of(wrong), "Is a sign missing?")) << notes_of(wrong);
  }
}

/// What answers only after a step, and shows its recoil by then: nothing is guessed.
TEST(SspDirections, WhatCannotBeMeasuredIsTold) {
  SspFolder folder;
  const auto fmus = with_small_mass("spring_to_late_mass");
  const StructureScenario stiff = structure_of(folder.package(with_damper("0.02", "-1"), fmus));
  EXPECT_TRUE(has(notes_of(stiff), "which way \"spring.F\" counts power cannot be measured"))
      << notes_of(stiff);
  EXPECT_FALSE(has(stiff.text, "common_flow"));
  // The control: with steps that follow the decay it is measured.
  const StructureScenario soft = structure_of(folder.package(with_damper("10", "-1"), fmus));
  EXPECT_TRUE(has(soft.text, "common_flow")) << notes_of(soft);
}

/// Bonds that units alone suggest can be declined.
TEST(SspDirections, BondsAreDeclined) {
  SspFolder folder;
  const auto noted = [&](const std::string& note) {
    return structure_of(folder.package(
        ssd(pair_elements() + pair_connections(), pair_experiment() + note), pair_fmus()));
  };
  EXPECT_TRUE(has(noted("").text, "common_flow"));
  const StructureScenario declined =
      noted(note_of_ours("{\"not_bonds\": [[\"spring.F\", \"mass.v\"]]}"));
  EXPECT_FALSE(has(declined.text, "common_flow")) << declined.text;
  EXPECT_FALSE(has(notes_of(declined), "coupled by waves")) << notes_of(declined);
  SspFolder other;
  EXPECT_TRUE(
      has(refusal_of(other.package(
              ssd(pair_elements(), note_of_ours("{\"not_bonds\": [[\"spring.F\", \"x.v\"]]}")),
              pair_fmus())),
          "\"not_bonds\": there is no variable \"x.v\""));
}

}  // namespace
}  // namespace portwave::test_structure_values
