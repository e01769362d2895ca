// Model descriptions against the schema of their version, and references of FMI 3.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/fmi/standard/model_description.hpp"
#include "adapters/fmu_files.hpp"
#include "adapters/fmu_scenario.hpp"

namespace portwave::test_fmu_descriptions {
namespace {

using testing::failure_of;
using testing::FmuRecipe;
using testing::has;

std::string refusal_of(const std::string& xml) {
  return failure_of([&] { fmi::read_model_description(xml); });
}

/// The fixture's description with one place changed.
std::string changed(int version, const std::string& from, const std::string& to) {
  std::string xml = testing::model_description(FmuRecipe{.version = version});
  const std::size_t place = xml.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  return place == std::string::npos ? xml : xml.replace(place, from.size(), to);
}

struct Broken {
  std::string from, to, words;
};

TEST(FmuDescription, IsHeldAgainstTheSchema) {
  const std::vector<Broken> of_both = {
      {"variability=\"tunable\"", "variability=\"often\"", "variability of <"},
      {"<ModelStructure/>", "", "there is no <ModelStructure>"},
      {"<ModelStructure/>", "<ModelStructure/><ModelStructure/>",
       "there is another <ModelStructure>"},
      {"<CoSimulation ", "<CoSimulation maxOutputDerivativeOrder=\"-1\" ",
       "maxOutputDerivativeOrder of <CoSimulation> must be a whole number, not below 0"},
      {"<CoSimulation ", "<CoSimulation needsExecutionTool=\"no\" ", "needsExecutionTool of <"},
      {"<ModelVariables>", "<DefaultExperiment tolerance=\"fine\"/><ModelVariables>",
       "tolerance of <DefaultExperiment> must be a number, got \"fine\""},
      {"<ModelVariables>", "<LogCategories><Category/></LogCategories><ModelVariables>",
       "<Category> has no name"}};
  const std::vector<Broken> of_2 = {
      {"<Real unit=\"kg\"", "<Real unit=\"kg\" min=\"light\"", "min of <Real> must be a number"},
      {"variability=\"tunable\"", "variability=\"tunable\" initial=\"about\"",
       "initial of <ScalarVariable> must be one of: exact approx calculated"},
      {"<ModelStructure/>",
       "<ModelStructure><Outputs><Unknown index=\"2\" dependenciesKind=\"loose\"/></Outputs>"
       "</ModelStructure>",
       "dependenciesKind of <Unknown> must be one of: dependent"},
      {"<ModelStructure/>", "<ModelStructure><Outputs><Unknown/></Outputs></ModelStructure>",
       "<Unknown> has no index"},
      {"<Boolean start=\"false\"", "<Boolean start=\"off\"", "start of <Boolean> must be true or"}};
  const std::vector<Broken> of_3 = {
      {"<ModelStructure/>", "<ModelStructure><Output/></ModelStructure>",
       "<Output> has no valueReference"},
      {"<Float64 name=\"mass\"", "<Float64 max=\"heavy\" name=\"mass\"",
       "max of <Float64> must be a number"},
      {"<Int32 name=\"steps\"", "<Int32 start=\"1 two\" name=\"steps\"",
       "start of <Int32> must be a whole number"}};
  for (const int version : {2, 3}) {
    std::vector<Broken> all = of_both;
    const auto& own = version == 2 ? of_2 : of_3;
    all.insert(all.end(), own.begin(), own.end());
    for (const Broken& broken : all) {
      const std::string text = refusal_of(changed(version, broken.from, broken.to));
      EXPECT_TRUE(has(text, broken.words) && has(text, "modelDescription.xml, line "))
          << version << ": " << broken.to << "\n"
          << text;
    }
  }
}

/// Later versions and tools add attributes and elements.
TEST(FmuDescriptionControl, WhatTheTableDoesNotKnowPasses) {
  for (const int version : {2, 3}) {
    EXPECT_EQ(refusal_of(testing::model_description(FmuRecipe{.version = version})), "");
    EXPECT_EQ(refusal_of(changed(version, "<CoSimulation ",
                                 "<Novelty kind=\"new\"/><CoSimulation canDoMore=\"perhaps\" ")),
              "");
    EXPECT_EQ(refusal_of(changed(version, "<ModelVariables>",
                                 "<VendorAnnotations><Tool name=\"t\"><Real start=\"any\"/></Tool>"
                                 "</VendorAnnotations><ModelVariables>")),
              "");
  }
}

TEST(FmuDescription, ReferencesOfFmi3AreOfOneVariable) {
  for (const int version : {2, 3}) {
    const std::string again = testing::fmu_variable(version, "weight", 4, "local", "");
    const std::string text =
        refusal_of(changed(version, "</ModelVariables>", again + "</ModelVariables>"));
    EXPECT_EQ(has(text, "variables \"mass\" and \"weight\" have the same valueReference, 4"),
              version == 3)
        << text;
    if (version == 2) {
      EXPECT_EQ(text, "");
    }
  }
  // Types make no difference there.
  const std::string text = refusal_of(changed(
      3, "</ModelVariables>",
      testing::fmu_variable(3, "mark", 4, "local", "", "", "Boolean") + "</ModelVariables>"));
  EXPECT_TRUE(has(text, "\"mass\" and \"mark\"")) << text;
}

}  // namespace
}  // namespace portwave::test_fmu_descriptions
