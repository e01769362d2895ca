// portwave validate, list and schema
#ifdef PORTWAVE_CLI

#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <portwave/coupling/method/method_table.hpp>
#include <portwave/subsystems/catalogue/catalogue.hpp>

#include "support/files/cli_process.hpp"
#include "support/files/source_folder.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"

namespace portwave::test_cli_list {
namespace {

using Json = nlohmann::json;
using testing::contains;
using testing::kAllowActive;
using testing::kNegativeDamper;
using testing::kPair;
using testing::portwave_cli;
using testing::ProcessResult;
using testing::said;
using testing::Words;
using testing::operator+;

TEST(CliValidate, AcceptsEveryExample) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(testing::source_file("examples"))) {
    if (entry.path().extension() != ".json") continue;
    const ProcessResult result = portwave_cli({"validate", entry.path().string()});
    EXPECT_EQ(result.exit_code, 0) << entry.path() << "\n" << said(result);
    EXPECT_TRUE(contains(result.err, "valid")) << said(result);
    EXPECT_EQ(result.out, "");
    ++count;
  }
  EXPECT_GT(count, 0);
}

TEST(CliList, ThePageOfTypesIsWhatTheProgramWrites) {
  const ProcessResult result = portwave_cli({"list", "--markdown"});
  EXPECT_EQ(result.exit_code, 0) << said(result);
  EXPECT_TRUE(result.out == testing::read_text(testing::source_file("docs/reference/parts.md")))
      << "run: portwave list --markdown > docs/reference/parts.md";
  for (const PartType& type : catalogue()) {
    EXPECT_TRUE(contains(result.out, "### " + type.name + "\n")) << type.name;
  }
}

// An example of the page goes into "subsystems" as it stands.
TEST(CliList, ExamplesOfThePageAreParts) {
  for (const PartType& type : catalogue()) {
    const ProcessResult page = portwave_cli({"list", type.name, "--markdown"});
    const std::size_t begin = page.out.find("```json\n") + 8;
    const Json part = Json::parse(page.out.substr(begin, page.out.find("\n```", begin) - begin));
    Json scenario = {{"name", "example"},
                     {"time", {{"step_s", 0.001}, {"steps", 1}}},
                     {"subsystems", Json::array({part})},
                     {"couplings", Json::array()},
                     {"method", {{"kind", "auto"}}}};
    const auto own = make_part(type.name, type.example);
    for (const Port& port : own->signature().ports) {
      scenario["couplings"].push_back(
          {{"kind", "resistive"}, {"ports", {"part." + port.name}}, {"resistance", 1.0}});
    }
    const testing::TemporaryFolder folder;
    testing::write_text(folder.path() / "example.json", scenario.dump());
    const ProcessResult result =
        portwave_cli({"validate", (folder.path() / "example.json").string()});
    EXPECT_EQ(result.exit_code, 0) << type.name << '\n' << said(result);
  }
}

TEST(CliList, ShowsBlocksAndTheirKeys) {
  const ProcessResult all = portwave_cli({"list", "--blocks"});
  EXPECT_TRUE(contains(all.out, "state_space")) << said(all);
  const ProcessResult pid = portwave_cli({"list", "--blocks", "pid"});
  EXPECT_TRUE(contains(pid.out, "tracking_s")) << said(pid);
  const ProcessResult json = portwave_cli({"list", "--blocks", "--json"});
  EXPECT_GT(Json::parse(json.out).size(), 15U);
  const ProcessResult wrong = portwave_cli({"list", "--blocks", "pdi"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_TRUE(contains(wrong.err, "Did you mean \"pid\"?")) << said(wrong);
}

TEST(CliValidate, AppliesSettings) {
  const ProcessResult refused = portwave_cli(Words{"validate", kPair} + kNegativeDamper);
  EXPECT_EQ(refused.exit_code, 2) << said(refused);
  const ProcessResult allowed =
      portwave_cli(Words{"validate", kPair} + kNegativeDamper + kAllowActive);
  EXPECT_EQ(allowed.exit_code, 0) << said(allowed);
}

TEST(CliValidate, TellsTheIndexOfDescriptorParts) {
  const ProcessResult result =
      portwave_cli({"validate", testing::source_file("examples/circuit.json")});
  EXPECT_EQ(result.exit_code, 0) << said(result);
  EXPECT_TRUE(contains(result.err,
                       "descriptor: part \"source_side\": 4 states, 2 algebraic, index 1\n"
                       "descriptor: part \"load_side\": 2 states, 1 algebraic, index 1\n"))
      << said(result);
  const ProcessResult without = portwave_cli({"validate", kPair});
  EXPECT_FALSE(contains(without.err, "descriptor")) << said(without);
}

TEST(CliList, ShowsEveryTypeInFull) {
  const ProcessResult all = portwave_cli({"list"});
  EXPECT_EQ(all.exit_code, 0) << said(all);
  for (const PartType& type : catalogue()) {
    EXPECT_TRUE(contains(all.out, type.name)) << type.name;
    const ProcessResult one = portwave_cli({"list", type.name});
    EXPECT_EQ(one.exit_code, 0) << said(one);
    EXPECT_EQ(one.err, "");
    for (const ParameterInfo& parameter : type.parameters) {
      EXPECT_TRUE(contains(one.out, parameter.name)) << type.name << " " << parameter.name;
    }
    const auto part = make_part(type.name, type.example);
    for (const Port& port : part->signature().ports) EXPECT_TRUE(contains(one.out, port.name));
    for (const auto& state : part->signature().states) EXPECT_TRUE(contains(one.out, state.name));
    const std::size_t begin = one.out.rfind("  {");
    ASSERT_NE(begin, std::string::npos) << said(one);
    const Json example = Json::parse(one.out.substr(begin));
    EXPECT_EQ(example["type"], type.name);
    EXPECT_EQ(example.contains("parameters"), !type.example.empty());
  }
}

TEST(CliList, WritesTheCatalogueAsJson) {
  const ProcessResult all = portwave_cli({"list", "--json"});
  ASSERT_EQ(all.exit_code, 0) << said(all);
  EXPECT_EQ(all.err, "");
  const Json json = Json::parse(all.out);
  ASSERT_EQ(json.size(), catalogue().size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    const PartType& type = catalogue()[i];
    EXPECT_EQ(json[i]["type"], type.name);
    EXPECT_EQ(json[i]["equations"], type.equations);
    ASSERT_EQ(json[i]["parameters"].size(), type.parameters.size());
    for (std::size_t p = 0; p < type.parameters.size(); ++p) {
      const Json& parameter = json[i]["parameters"][p];
      EXPECT_EQ(parameter["name"], type.parameters[p].name);
      EXPECT_EQ(parameter["unit"], type.parameters[p].unit);
      EXPECT_EQ(parameter["required"], !type.parameters[p].default_value.has_value());
      if (type.parameters[p].kind != ParameterKind::matrix) continue;
      if (!parameter["required"].get<bool>()) {
        EXPECT_EQ(parameter["default"], Json::array());
      }
      // Entries would be read as rows if they were shown as a bare list.
      const Json example = json[i]["example"].value(parameter["name"].get<std::string>(), Json());
      const bool by_entries =
          type.example.contains(type.parameters[p].name) &&
          std::holds_alternative<MatrixEntries>(type.example.at(type.parameters[p].name));
      EXPECT_EQ(by_entries, example.is_object()) << type.name << " " << parameter["name"];
    }
    for (const char* key : {"ports", "states", "inputs", "summary", "example"}) {
      EXPECT_TRUE(json[i].contains(key)) << type.name << " " << key;
    }
    const ProcessResult one = portwave_cli({"list", type.name, "--json"});
    EXPECT_EQ(Json::parse(one.out), json[i]) << type.name;
  }
}

TEST(CliList, TellsWhichTypeIsMeant) {
  for (const Words& line :
       {Words{"list", "duffing_oscilator"}, Words{"list", "--json", "duffing_oscilator"}}) {
    const ProcessResult result = portwave_cli(line);
    EXPECT_EQ(result.exit_code, 2) << said(result);
    EXPECT_TRUE(contains(result.err, "Did you mean \"duffing_oscillator\"?")) << said(result);
    EXPECT_EQ(result.out, "");
  }
}

TEST(CliList, ShowsEveryMethodAndItsKeys) {
  const ProcessResult all = portwave_cli({"list", "--methods"});
  EXPECT_EQ(all.exit_code, 0) << said(all);
  const Json json = Json::parse(portwave_cli({"list", "--methods", "--json"}).out);
  ASSERT_EQ(json.size(), all_methods().size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    const MethodInfo& method = all_methods()[i];
    const std::string name(method.name);
    EXPECT_TRUE(contains(all.out, name)) << name;
    EXPECT_EQ(json[i]["method"], name);
    EXPECT_EQ(json[i]["waves"], method.kind.couples_by_waves());
    const ProcessResult one = portwave_cli({"list", "--methods", name});
    EXPECT_EQ(one.exit_code, 0) << said(one);
    EXPECT_EQ(one.err, "");
    std::size_t keys = 0;
    for (const OptionInfo& option : family_of(method.kind).options) {
      const std::string row = "\n  " + std::string(option.key) + " ";
      const bool has = option.is_for(method.kind) && option.refusal_by(method.kind).empty();
      EXPECT_EQ(contains(one.out, row), has) << name << " " << option.key;
      keys += has ? 1 : 0;
    }
    EXPECT_GE(json[i]["options"].size(), keys) << name;
    EXPECT_EQ(Json::parse(portwave_cli({"list", "--methods", name, "--json"}).out), json[i]);
  }
  const ProcessResult wrong = portwave_cli({"list", "--methods", "jacoby"});
  EXPECT_EQ(wrong.exit_code, 2) << said(wrong);
  EXPECT_TRUE(contains(wrong.err, "Did you mean \"jacobi\"?")) << said(wrong);
}

TEST(CliSchema, IsJson) {
  const ProcessResult result = portwave_cli({"schema"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_TRUE(Json::parse(result.out).contains("$schema"));
  EXPECT_EQ(result.err, "");
}

}  // namespace
}  // namespace portwave::test_cli_list

#endif
