// What a scenario comes to is counted before it is written out: never more than writing it out makes, so
// that none is refused that fits, and enough of it to refuse small files that stand for huge ones at once.

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "scenario/templates/assemblies.hpp"
#include "scenario/templates/expansion.hpp"
#include "scenario/templates/template_filler.hpp"
#include "support/files/text_file.hpp"
#include "support/systems/scenario_fixtures.hpp"

namespace portwave::test_assembly_weight {
namespace {

using scenario_file::AssemblyList;
using scenario_file::Defects;
using scenario_file::Document;
using scenario_file::entry_of_too_many_values;
using scenario_file::expand_assemblies;
using scenario_file::ExpandedDocument;
using scenario_file::has_assemblies;
using scenario_file::parse_document;
using scenario_file::TemplateFiller;
using Json = nlohmann::ordered_json;

std::optional<std::string> too_much(const std::string& text, double most) {
  const Document document = parse_document(text);
  Defects defects(document);
  const scenario_file::Node root(document.root, defects);
  return entry_of_too_many_values(document.root, AssemblyList(root), most);
}

std::optional<std::string> too_much(const std::string& text) {
  return too_much(text, static_cast<double>(TemplateFiller::kMostValues));
}

const std::vector<std::string>& sound_scenarios() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> texts;
    for (const auto& file : testing::example_files()) texts.push_back(testing::read_text(file));
    const std::string mass = R"("type": "mass", "parameters": {"mass_kg": 1})";
    texts.push_back(
        R"({"parameters": {"n": 7, "m": {"expression": "n+1"}, "list": [[1, 2], {"parameter": "n"}],
      "name": "a_rather_long_name_that_weighs_something_by_itself"},
      "subsystems": [{"name": "{name}", "count": {"parameter": "m"}, )" +
        mass + R"(},
        {"name": "b", "type": "x", "parameters": {"l": {"parameter": "list"}, "f": "{n}*u"}}],
      "couplings": [{"kind": "free", "for": {"i": [0, {"expression": "n-1"}], "j": [{"expression": "i"}, 9],
        "k": [1, {"expression": "j-i"}]}, "ports": ["{name}_{i}.port"]}],
      "signals": {"blocks": [{"name": "s", "count": 5, "kind": "sum"}, {"name": "t", "kind": "sum"}]}})");
    texts.push_back(R"json({"assemblies": {
        "leaf": {"parameters": {"n": null, "p": [{"parameter": "n"}, "text"]}, "subsystems": [
          {"name": "m", "count": {"expression": "mod(n, 3)"}, "type": "mass",
            "parameters": {"mass_kg": 1}},
          {"name": "x{n}", "type": "y", "parameters": {"p": {"parameter": "p"}}}],
          "couplings": [{"kind": "free", "for": {"i": [1, {"parameter": "n"}]}, "ports": ["m_{i}.port"]}],
          "ports": {"left": "m_0.port"}},
        "branch": {"parameters": {"k": 4}, "subsystems": [
          {"name": "l", "assembly": "leaf", "count": {"parameter": "k"}, "parameters": {"n": {"expression": "i+k"}}},
          {"name": "one", "assembly": "leaf", "parameters": {"n": 2}}]}},
      "subsystems": [{"name": "u", "assembly": "branch"}, {"name": "v", "assembly": "branch", "count": 3,
        "parameters": {"k": {"expression": "2*i"}}}]})json");
    return texts;
  }();
  return all;
}

TEST(AssemblyWeight, IsNeverMoreThanWhatIsMade) {
  int with_any = 0;
  for (const std::string& text : sound_scenarios()) {
    const Document document = parse_document(text);
    ASSERT_TRUE(document.readable) << text.substr(0, 200);
    if (!has_assemblies(document.root)) continue;
    ++with_any;
    Defects defects(document);
    const ExpandedDocument expanded = expand_assemblies(document.root, defects);
    ASSERT_GT(expanded.values, 0U);
    const auto made = static_cast<double>(expanded.values);
    EXPECT_EQ(too_much(text, made), std::nullopt) << text.substr(0, 200);
    // The control: it is near enough to be of use.
    EXPECT_NE(too_much(text, 0.5 * made), std::nullopt) << made << ' ' << text.substr(0, 200);
  }
  EXPECT_GE(with_any, 3);
}

Json doubling() {
  Json scenario = {{"assemblies", {{"a0", {{"subsystems", {{{"name", "m"}, {"type", "mass"}}}}}}}}};
  for (int k = 1; k <= 30; ++k) {
    const std::string below = "a" + std::to_string(k - 1);
    scenario["assemblies"]["a" + std::to_string(k)]["subsystems"] = {
        {{"name", "x"}, {"assembly", below}}, {{"name", "y"}, {"assembly", below}}};
  }
  scenario["subsystems"] = {{{"name", "u"}, {"assembly", "a30"}}};
  return scenario;
}

Json laughing() {
  Json scenario = {{"parameters", {{"p0", {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}}}};
  for (int k = 1; k < 40; ++k) {
    Json list = Json::array();
    for (int i = 0; i < 10; ++i) list.push_back({{"parameter", "p" + std::to_string(k - 1)}});
    scenario["parameters"]["p" + std::to_string(k)] = list;
  }
  scenario["subsystems"] = {{{"name", "m"}, {"type", "mass"}}};
  return scenario;
}

TEST(AssemblyWeight, SmallFilesThatStandForHugeOnesAreFoundBeforeAnythingIsMade) {
  const std::string mass = R"("type": "mass", "parameters": {"mass_kg": 1})";
  const std::vector<std::pair<std::string, std::string>> bombs = {
      {doubling().dump(), "/subsystems/0"},
      {laughing().dump(), "/parameters/p7"},
      {R"({"assemblies": {"a": {"subsystems": [{"name": "m", "count": 1000000, )" + mass +
           R"(}]}}, "subsystems": [{"name": "u", "assembly": "a", "count": 1000000}]})",
       "/subsystems/0"},
      {R"({"subsystems": [{"name": "a", )" + mass + R"(}, {"name": "b", "count": 1000000, )" +
           mass + R"(}, {"name": "c", "count": 1000000, )" + mass +
           R"(}, {"name": "d", "count": 1000000, )" + mass +
           R"(}, {"name": "e", "count": 1000000, )" + mass + R"(}]})",
       "/subsystems/4"},
      {R"({"subsystems": [{"name": "a", )" + mass + R"(}], "couplings": [{"kind": "free",
         "for": {"i": [0, 10000000], "j": [0, 10000000]}, "ports": ["a.port"]}]})",
       "/couplings/0"},
      {R"({"parameters": {"n": 1e7}, "subsystems": [{"name": "a", )" + mass + R"(}],
         "couplings": [{"kind": "free", "for": {"i": [0, {"expression": "n"}],
         "j": [0, {"expression": "n-i"}]}, "ports": ["a.port"]}]})",
       "/couplings/0"},
      {R"({"parameters": {"n": 1e7}, "subsystems": [{"name": "a", )" + mass + R"(}],
         "couplings": [{"kind": "free", "for": {"i": [0, {"expression": "n"}],
         "j": [0, {"expression": "0-1-i"}]}, "ports": ["a.port"]}]})",
       "/couplings/0"},
      {R"({"assemblies": {"a": {"parameters": {"n": null}, "subsystems": [
         {"name": "m", "count": {"parameter": "n"}, )" +
           mass + R"(}]}}, "subsystems": [
         {"name": "u", "assembly": "a", "count": 1000, "parameters": {"n": {"expression": "1000*i"}}}]})",
       "/subsystems/0"},
      {R"({"subsystems": [{"name": "a", )" + mass + R"(}], "signals": {"blocks": [
         {"name": "s", "kind": "sum", "count": 1000000, "inputs": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13,
          14, 15, 16, 17, 18, 19, 20]}]}})",
       "/signals/blocks/0"},
      {R"({"parameters": {"s": ")" + std::string(9000, 'x') +
           R"("}, "subsystems": [{"name": "a_{s}", "count": 1000000, )" + mass + R"(}]})",
       "/subsystems/0"},
  };
  for (const auto& [text, place] : bombs) {
    EXPECT_EQ(too_much(text), place) << text.substr(0, 300);
    // As the whole: that is all that is said, at that place.
    const Document document = parse_document(text);
    Defects defects(document);
    const ExpandedDocument expanded = expand_assemblies(document.root, defects);
    EXPECT_TRUE(expanded.is_too_large);
    EXPECT_EQ(expanded.values, 0U) << "made " << expanded.values << " values first";
    const Issues issues = defects.take();
    ASSERT_EQ(issues.size(), 1U);
    EXPECT_EQ(issues[0].where, place);
    EXPECT_NE(issues[0].what.find("more than 20000000 values"), std::string::npos);
  }
}

TEST(AssemblyWeight, WhatIsLargeAndFitsIsNotRefused) {
  const std::string large = R"({"subsystems": [{"name": "a", "count": 1000000, "type": "mass",
    "parameters": {"mass_kg": 1}}], "couplings": [{"kind": "free", "for": {"i": [0, 999999]},
    "ports": ["a_{i}.port"]}]})";
  EXPECT_EQ(too_much(large), std::nullopt);
  // What is not known counts as its least, and what is wrong is left to whoever says so.
  for (
      const char* const text :
      {R"({"subsystems": [{"name": "a", "count": {"parameter": "none"}}]})",
       R"({"subsystems": [{"name": "a", "count": {"expression": "1/0"}}]})",
       R"({"subsystems": [{"name": "a", "count": {"expression": "(("}}]})",
       R"({"subsystems": [{"name": "a", "count": 1e300}, {"name": "b", "count": -5}]})",
       R"({"subsystems": [{"name": "a", "assembly": "none", "count": 1000000}, 3, null, []]})",
       R"({"assemblies": {"a": {"subsystems": [{"name": "b", "assembly": "a", "count": 1000}]}},
               "subsystems": [{"name": "u", "assembly": "a", "count": 1000}]})",
       R"({"assemblies": 7, "parameters": [], "subsystems": {}, "couplings": 1, "signals": []})",
       R"({"couplings": [{"for": {"i": [0, 1e18]}}, {"for": {"i": 3}}, {"for": {}}, {"for": []}]})"}) {
    EXPECT_EQ(too_much(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace portwave::test_assembly_weight
