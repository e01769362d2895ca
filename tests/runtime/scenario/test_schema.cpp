#include <set>
#include <string>

#include <gtest/gtest.h>

#include <portwave/subsystems/catalogue/catalogue.hpp>

#include "support/files/schema_checker.hpp"
#include "support/systems/scenario_fixtures.hpp"

namespace portwave::test_schema {
namespace {

using testing::base_scenario;
using testing::edited;
using testing::example_files;
using testing::read_text;
using testing::scenario_defects;
using testing::ScenarioDefect;
using testing::SchemaChecker;

TEST(ScenarioSchema, TheCommittedFileIsUpToDate) {
  const auto file = testing::source_folder() / "docs" / "reference" / "scenario.schema.json";
  EXPECT_EQ(read_text(file), scenario_schema().dump(2) + "\n")
      << "run: portwave schema > docs/reference/scenario.schema.json";
}

TEST(ScenarioSchema, AcceptsTheExamples) {
  const SchemaChecker schema(scenario_schema());
  EXPECT_TRUE(schema.accepts(testing::base_text()));
  for (const auto& file : example_files()) EXPECT_TRUE(schema.accepts(read_text(file))) << file;
}

TEST(ScenarioSchema, ExamplesFindTheSchemaBesideThem) {
  for (const auto& file : example_files()) {
    const auto scenario = nlohmann::json::parse(read_text(file));
    const auto schema = file.parent_path() / scenario.at("$schema").get<std::string>();
    EXPECT_TRUE(std::filesystem::exists(schema)) << schema;
  }
}

TEST(ScenarioSchema, RejectsWhatIsStructurallyWrongAndNothingElse) {
  const SchemaChecker schema(scenario_schema());
  for (const ScenarioDefect& defect : scenario_defects()) {
    const bool rejects = !schema.accepts(edited(base_scenario(), defect.edits).dump());
    EXPECT_EQ(rejects, defect.schema_rejects) << defect.name;
  }
}

TEST(ScenarioSchemaControl, AnEmptySchemaRejectsNothing) {
  const SchemaChecker schema(nlohmann::ordered_json::object());
  for (const ScenarioDefect& defect : scenario_defects()) {
    EXPECT_TRUE(schema.accepts(edited(base_scenario(), defect.edits).dump())) << defect.name;
  }
}

TEST(ScenarioSchema, AllowActiveLiftsTheLowerBoundOfDampers) {
  const SchemaChecker schema(scenario_schema());
  const auto negative =
      nlohmann::ordered_json::parse(R"([["/subsystems/1/parameters/damping_Ns_per_m", -1]])");
  auto active = negative;
  active.push_back({"/subsystems/1/allow_active", true});
  EXPECT_FALSE(schema.accepts(edited(base_scenario(), negative).dump()));
  EXPECT_TRUE(schema.accepts(edited(base_scenario(), active).dump()));
}

TEST(ScenarioSchema, DescribesEveryParameterOfEveryType) {
  const auto schema = scenario_schema();
  const auto& types = schema.at("definitions")
                          .at("subsystem")
                          .at("properties")
                          .at("type")
                          .at("anyOf")
                          .at(0)
                          .at("enum");
  std::set<std::string> named;
  for (const auto& type : types) named.insert(type.get<std::string>());
  for (const PartType& type : catalogue()) {
    EXPECT_TRUE(named.contains(type.name)) << type.name;
    const auto& described = schema.at("definitions").at(type.name + "_parameters");
    EXPECT_EQ(described.at("properties").size(), type.parameters.size()) << type.name;
    EXPECT_EQ(described.at("additionalProperties"), false) << type.name;
    for (const ParameterInfo& info : type.parameters) {
      const auto& parameter = described.at("properties").at(info.name);
      const std::string text = parameter.at("description").get<std::string>();
      EXPECT_TRUE(text.starts_with(info.summary)) << type.name << " " << info.name;
      EXPECT_NE(text.find(info.unit), std::string::npos) << type.name << " " << info.name;
    }
  }
}

}  // namespace
}  // namespace portwave::test_schema
