// System structures that are broken, contradict themselves or mean harm are refused, each with its place.

#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/structure_texts.hpp"

namespace portwave::test_hostile_structures {
namespace {

using namespace portwave::testing;

std::string system_of(const std::string& inside, const std::string& joined = "") {
  return ssd(elements(inside) + connections(joined), pair_experiment());
}
std::string two() {
  return component("mass", "resources/mass.fmu") + component("other", "resources/mass.fmu");
}
std::string refusal_of(const std::string& description, std::vector<ZipMember> more = {},
                       FmuRecipe mass = {}) {
  SspFolder folder;
  return testing::refusal_of(folder.package(
      description, {{"mass.fmu", mass}, {"spring.fmu", {.version = 3, .library = "spring"}}},
      std::move(more)));
}

struct Hostile {
  const char* name;
  std::string description;
  const char* words;  ///< of the refusal
};
/// What the test framework prints: the name, not texts.
void PrintTo(const Hostile& own, std::ostream* out) { *out << own.name; }

std::vector<Hostile> hostile_structures() {
  const auto ring = [](int size) {
    // Connectors of systems alone, one after the other, and back.
    std::string inside, joined;
    for (int i = 0; i < size; ++i) {
      const std::string name = "s" + std::to_string(i);
      inside += "<ssd:System name=\"" + name + "\">" +
                connectors(connector("in", "input") + connector("out", "output")) +
                connections(connection("in", "out")) + "</ssd:System>";
      joined += connection(name + ".out", "s" + std::to_string((i + 1) % size) + ".in");
    }
    return ssd(elements(inside + component("mass", "resources/mass.fmu")) +
               connections(joined + connection("s0.out", "mass.F")));
  };
  std::string deep = component("mass", "resources/mass.fmu");
  for (int i = 0; i < 100; ++i) deep = "<ssd:System name=\"d\">" + elements(deep) + "</ssd:System>";
  const std::string broken = system_of(two());
  return {
      {"broken_xml", broken.substr(0, broken.size() / 2), "SystemStructure.ssd, line"},
      {"other_xml", "<html/>", "SystemStructure.ssd holds no SystemStructureDescription"},
      {"version", ssd(elements(two()), "", "3.0"),
       "the version of the description must be 1.0 or 2.0, got \"3.0\""},
      {"nothing_in_it", ssd(""), "there is no component in it"},
      {"twice_one_name",
       system_of(component("mass", "resources/mass.fmu") + component("mass", "resources/mass.fmu")),
       "there are two elements \"mass\""},
      {"other_type",
       system_of(component("mass", "resources/mass.fmu", "", "type=\"text/x-modelica\"")),
       "the component \"mass\" is of the type \"text/x-modelica\""},
      {"no_source", system_of("<ssd:Component name=\"mass\"/>"),
       "the component \"mass\" has no source"},
      {"empty_source", system_of(component("mass", "")), "\"\" names no file"},
      {"missing_file", system_of(component("mass", "resources/none.fmu")),
       "\"resources/none.fmu\" is not in the package"},
      {"source_leads_out", system_of(component("mass", "../../etc/passwd")),
       "\"../../etc/passwd\" leads out of the package"},
      {"hidden_way_out", system_of(component("mass", "%2e%2e/%2e%2e/etc/passwd")),
       "leads out of the package"},
      {"absolute_source", system_of(component("mass", "/etc/passwd")),
       "\"/etc/passwd\" leads out of the package"},
      {"other_scheme", system_of(component("mass", "https://example.org/mass.fmu")),
       "must be a path within the package"},
      {"file_scheme", system_of(component("mass", "file:///etc/passwd")),
       "must be a path within the package"},
      {"part_of_a_file", system_of(component("mass", "resources/mass.fmu#x")),
       "names a part of a file"},
      {"odd_percent", system_of(component("mass", "resources/%zz")), "'%' needs two digits"},
      {"no_fmu", system_of(component("mass", "SystemStructure.ssd")),
       "is no FMU, which is a zip archive"},
      {"unknown_element", system_of(two(), connection("mass.v", "othr.F")),
       "there is no element \"othr\". Did you mean \"other\"?"},
      {"unknown_variable", system_of(two(), connection("mass.vv", "other.F")),
       "\"mass\" has no variable \"vv\""},
      {"unknown_connector",
       ssd(connectors(connector("push", "input")) + elements(two()) +
           connections(connection("pusch", "mass.F"))),
       "the system has no connector \"pusch\". Did you mean \"push\"?"},
      {"connector_of_no_variable",
       system_of(component("mass", "resources/mass.fmu", connectors(connector("w", "output")))),
       "\"mass\" has no variable \"w\" for the connector"},
      {"connected_twice",
       system_of(two(),
                 connection("mass.v", "other.F", linear("2")) + connection("mass.x", "other.F")),
       "\"other.F\" is connected already"},
      {"output_to_output", system_of(two(), connection("mass.v", "other.v")),
       "\"v\" of \"other\" is no input: a connection ends at an input"},
      {"input_to_input", system_of(two(), connection("mass.F", "other.F")),
       "\"F\" of \"mass\" is an input: a connection starts at an output"},
      {"parameter_of_an_output", system_of(two(), connection("mass.calls", "other.k")),
       "\"k\" of \"other\" is a parameter: it takes a value before the run"},
      {"text_on_a_connection", system_of(two(), connection("mass.v", "other.label")),
       "\"label\" of \"other\" is a text, and connections carry single numbers"},
      {"units_differ", system_of(two(), connection("mass.x", "other.F")),
       "\"other.F\" is in force, and what goes there in way"},
      {"unit_of_a_connector",
       ssd(elements(
               component("mass", "resources/mass.fmu", connectors(connector("F", "input", "m")))),
           "<ssd:Units><ssc:Unit name=\"m\"><ssc:BaseUnit m=\"1\"/></ssc:Unit></ssd:Units>"),
       "the connector \"F\" of \"mass\" is in m, and the FMU's variable in force"},
      {"unit_of_a_parameter",
       system_of(
           component("mass", "resources/mass.fmu",
                     bindings(bound(parameters({{"mass", real("1", "m")}},
                                               "<ssv:Units><ssc:Unit name=\"m\"><ssc:BaseUnit "
                                               "m=\"1\"/></ssc:Unit></ssv:Units>"))))),
       "\"mass\" of \"mass\" is in kg, and the value given is in m"},
      {"loop_of_connectors", ring(3), "form a loop without any component in it"},
      {"loop_of_one", ring(1), "form a loop without any component in it"},
      {"too_deep", ssd(elements(deep)), "systems are nested more than 64 deep"},
      {"itself_within",
       system_of(
           component("again", "SystemStructure.ssd", "", "type=\"application/x-ssp-definition\"") +
           component("more", "SystemStructure.ssd", "", "type=\"application/x-ssp-definition\"")),
       "is within itself"},
      {"misspelt_element",
       ssd(elements(two()) + "<ssd:Conections>" + connection("mass.v", "other.flag") +
           "</ssd:Conections>"),
       "<ssd:Conections> has no place in <System>. Did you mean \"Connections\"?"},
      {"misplaced_element", ssd(elements(two()) + connection("mass.v", "other.flag")),
       "<ssd:Connection> has no place in <System>"},
      {"misplaced_binding",
       system_of(component("mass", "resources/mass.fmu", bound(parameters({{"mass", real("1")}})))),
       "<ssd:ParameterBinding> has no place in <Component>. Did you mean \"ParameterBindings\"?"},
      {"misspelt_attribute",
       system_of(two(), connection("mass.v", "other.F", "", "suppresUnitConversion=\"true\"")),
       "has no attribute \"suppresUnitConversion\". Did you mean \"suppressUnitConversion\"?"},
      {"exponent_no_number",
       ssd(elements(two()),
           "<ssd:Units><ssc:Unit name=\"m\"><ssc:BaseUnit m=\"abc\"/></ssc:Unit></ssd:Units>"),
       "m of <BaseUnit> must be a finite number, got \"abc\""},
      {"exponent_not_whole",
       ssd(elements(two()),
           "<ssd:Units><ssc:Unit name=\"m\"><ssc:BaseUnit m=\"0.5\"/></ssc:Unit></ssd:Units>"),
       "must be a whole number from -100 to 100"},
      {"step_below_zero", ssd(elements(two()), pair_experiment("-0.01")),
       "baseStepSize must be above 0, got -0.01"},
      {"note_of_deep_json",
       ssd(elements(two()),
           note_of_ours("{\"scenario\": {\"method\": " + std::string(200'000, '[') +
                        std::string(200'000, ']') + "}}")),
       "nested not more than 64 deep"},
      {"note_of_other_types",
       ssd(elements(two()), note_of_ours("{\"scenario\": {\"time\": {\"start_s\": \"x\"}}}")),
       "\"start_s\" of \"time\" must be a number"},
      {"note_of_no_object", ssd(elements(two()), note_of_ours("{\"scenario\": 5}")),
       "\"scenario\" must be an object"},
      {"note_of_a_coupling",
       ssd(elements(two()), note_of_ours("{\"couplings\": [{\"kind\": 5, \"ports\": [5]}]}")),
       "\"ports\" of a coupling must be a list of texts"},
      {"note_of_bonds", ssd(elements(two()), note_of_ours("{\"bonds\": [[\"mass.v\"]]}")),
       "\"bonds\" must be a list of pairs of outputs"},
      {"note_of_a_part",
       system_of(component("mass", "resources/mass.fmu",
                           note_of_ours("{\"ports\": [{\"name\": 5}], \"outputs\": 5}"))),
       "\"outputs\" must be a list of texts"},
      {"entities",
       "<?xml version=\"1.0\"?><!DOCTYPE x [<!ENTITY e \"made\">]>" +
           ssd(elements(component("&e;", "resources/none.fmu"))).substr(39),
       "the source of \"&e;\" \"resources/none.fmu\" is not in the package"},
      {"no_dictionary",
       system_of("<ssd:SignalDictionaryReference name=\"bus\" dictionary=\"can\"/>" + two()),
       "there is no signal dictionary \"can\""},
      {"elements_of_arrays",
       system_of(two(), connection("mass.v", "other.F", "", "startIndices=\"1\"")),
       "connections of elements of arrays are not taken"},
      {"array_connector",
       system_of(component("mass", "resources/mass.fmu",
                           "<ssd:Connectors><ssd:Connector name=\"v\" kind=\"output\"><ssc:Real/>"
                           "<ssc:Dimension size=\"3\"/></ssd:Connector></ssd:Connectors>")),
       "the connector \"v\" is an array"},
      {"factor_no_number", system_of(two(), connection("mass.v", "other.F", linear("two"))),
       "factor of <LinearTransformation> must be a finite number, got \"two\""},
      {"factor_infinite", system_of(two(), connection("mass.v", "other.F", linear("INF"))),
       "must be a finite number"},
      {"names_mapped",
       system_of(two(), connection("mass.v", "other.F", "<ssc:EnumerationMappingTransformation/>")),
       "an EnumerationMappingTransformation is not taken"},
      {"mapping_of_one_number",
       system_of(two(), connection("mass.steps", "other.flag",
                                   "<ssc:IntegerMappingTransformation><ssc:MapEntry source=\"1\" "
                                   "target=\"2\"/></ssc:IntegerMappingTransformation>")),
       "needs two entries or more"},
      {"value_no_number",
       system_of(component("mass", "resources/mass.fmu",
                           bindings(bound(parameters({{"mass", real("heavy")}}))))),
       "the value of parameter \"mass\" must be one number, got \"heavy\""},
      {"value_missing",
       system_of(
           component("mass", "resources/mass.fmu", bindings(bound(parameters({{"mass", ""}}))))),
       "the parameter \"mass\" has no value"},
      {"binary_value",
       system_of(component("mass", "resources/mass.fmu",
                           bindings(bound(parameters({{"mass", "<ssv:Binary value=\"00\"/>"}}))))),
       "is a <ssv:Binary>, which is not taken"},
      {"parameters_missing",
       system_of(
           component("mass", "resources/mass.fmu", bindings(binding("", "source=\"none.ssv\"")))),
       "the source \"none.ssv\" is not in the package"},
      {"parameters_of_other_type",
       system_of(component("mass", "resources/mass.fmu",
                           bindings(binding("", "type=\"text/csv\" source=\"x.csv\"")))),
       "a parameter binding of the type \"text/csv\" is not taken"},
      {"parameters_other_xml",
       system_of(component("mass", "resources/mass.fmu",
                           bindings(binding("", "source=\"SystemStructure.ssd\"")))),
       "\"SystemStructure.ssd\" holds no ParameterSet"},
      {"notes_no_json", ssd(elements(two()), note_of_ours("{\"bonds\": [")),
       "must hold an object of JSON"},
      {"bonds_of_nobody",
       ssd(elements(two()), note_of_ours("{\"bonds\": [[\"mass.v\", \"x.F\"]]}")),
       "\"bonds\": there is no variable \"x.F\""},
      {"ends_before_it_begins",
       ssd(elements(two()), experiment("startTime=\"2\" stopTime=\"1\"", "0.01")),
       "the run ends at 1 s, and begins at 2 s"},
  };
}

class HostileStructure : public ::testing::TestWithParam<Hostile> {};

TEST_P(HostileStructure, IsRefused) {
  const std::string text = refusal_of(GetParam().description);
  EXPECT_TRUE(has(text, GetParam().words)) << text;
}
INSTANTIATE_TEST_SUITE_P(All, HostileStructure, ::testing::ValuesIn(hostile_structures()),
                         [](const auto& own) { return own.param.name; });

/// The control: what all of them are made of is sound.
TEST(HostileStructureControl, TheSoundOneIsTaken) {
  EXPECT_EQ(refusal_of(system_of(two(), connection("mass.v", "other.flag"))), "");
}

TEST(HostilePackage, LeadsNowhereElse) {
  const std::string sound = system_of(two());
  EXPECT_TRUE(has(refusal_of(sound, {{"resources/../../../../tmp/portwave_was_here", "x"}}),
                  "leads out of the archive's folder"));
  EXPECT_TRUE(has(refusal_of(sound, {{"link", "/etc/passwd", 0120777}}), "is a link"));
  EXPECT_TRUE(has(refusal_of(sound, {{"zeros", std::string(std::size_t{80} << 20, '\0')}}),
                  "it is not unpacked"));
  SspFolder folder;
  const auto empty = folder.add("empty.ssp", {{"readme.txt", "nothing"}});
  EXPECT_TRUE(has(testing::refusal_of(empty), "there is no SystemStructure.ssd in it"));
  write_text(folder.path() / "text.ssp", "no archive");
  EXPECT_TRUE(has(testing::refusal_of(folder.path() / "text.ssp"),
                  "is no package of a system structure, which is a zip archive"));
}

TEST(HostileStructures, AllDefectsAreToldAtOnce) {
  const std::string text =
      refusal_of(system_of(two() + component("third", "resources/none.fmu"),
                           connection("mass.vv", "other.F") + connection("mass.v", "third.F")));
  EXPECT_TRUE(has(text, "\"mass\" has no variable \"vv\"")) << text;
  EXPECT_TRUE(has(text, "\"resources/none.fmu\" is not in the package")) << text;
  // What follows from a defect that is told is not told again.
  EXPECT_FALSE(has(text, "there is no element \"third\"")) << text;
}

/// Connectors one after the other, as many as a file has room for.
TEST(HostileStructures, LongChainsAreFollowed) {
  constexpr int kSize = 20'000;
  std::string inside = two(), joined = connection("mass.v", "s0.in");
  for (int i = 0; i < kSize; ++i) {
    const std::string name = "s" + std::to_string(i);
    inside += "<ssd:System name=\"" + name + "\">" +
              connectors(connector("in", "input") + connector("out", "output")) +
              connections(connection("in", "out")) + "</ssd:System>\n";
    if (i > 0) joined += connection("s" + std::to_string(i - 1) + ".out", name + ".in");
  }
  joined += connection("s" + std::to_string(kSize - 1) + ".out", "other.flag", linear("3"));
  SspFolder folder;
  const Json made = scenario_of(folder.package(system_of(inside, joined), pair_fmus()));
  // What comes through them all is what went in.
  double factor = 0.0;
  for (const Json& block : made["signals"]["blocks"]) {
    if (block["name"] == "to_other_flag") factor = block["factor"];
  }
  EXPECT_EQ(factor, 3.0);
}

/// Structures that name one another twice each would be read as often as a power of two.
TEST(HostilePackage, InclusionInBreadthIsBounded) {
  const std::string type = "type=\"application/x-ssp-definition\"";
  std::vector<ZipMember> more;
  constexpr int kLevels = 40;
  for (int i = 0; i < kLevels; ++i) {
    const std::string next = i + 1 < kLevels ? "level" + std::to_string(i + 1) + ".ssd" : "";
    more.push_back({"level" + std::to_string(i) + ".ssd",
                    next.empty() ? system_of("")
                                 : system_of(component("a", next, "", type) +
                                             component("b", next, "", type))});
  }
  const std::string text = refusal_of(system_of(component("top", "level0.ssd", "", type)), more);
  EXPECT_TRUE(has(text, "there are more than 100000 elements")) << text.substr(0, 1000);
}

/// What packages in a package unpack to is counted all together, and one that is named often is unpacked once.
TEST(HostilePackage, PackagesWithinAreCounted) {
  const auto nested = [](std::size_t bytes) {
    FmuFolder folder;
    return read_text(folder.add(
        "in.ssp", {{"SystemStructure.ssd", ssd("")}, {"zeros", std::string(bytes, '\0')}}));
  };
  const std::string type = "type=\"application/x-ssp-package\"";
  const std::string one = nested(std::size_t{40} << 20);
  const std::string inside = two() + component("a", "a.ssp", "", type);
  EXPECT_EQ(refusal_of(system_of(inside + component("b", "a.ssp", "", type)), {{"a.ssp", one}}),
            "");
  EXPECT_TRUE(has(refusal_of(system_of(inside + component("b", "b.ssp", "", type)),
                             {{"a.ssp", one}, {"b.ssp", one}}),
                  "the packages within the structure hold more than 64 MiB"));
}

/// Values of names that are nowhere are left out, which is told.
TEST(HostileStructures, UnknownParametersAreNoted) {
  SspFolder folder;
  const auto file = folder.package(
      ssd(bindings(bound(parameters({{"mass.weight", real("1")}}))) +
              elements(component("mass", "resources/mass.fmu",
                                 bindings(bound(parameters({{"masss", real("1")}}))))),
          pair_experiment()),
      pair_fmus());
  const auto mapped = [](const std::string& entry) {
    const std::string mapping = "<ssd:ParameterMapping><ssm:ParameterMapping version=\"1.0\">" +
                                entry + "</ssm:ParameterMapping></ssd:ParameterMapping>";
    return ssd(bindings(binding("<ssd:ParameterValues>" + parameters({{"m", real("1")}}) +
                                "</ssd:ParameterValues>" + mapping)) +
                   elements(component("mass", "resources/mass.fmu")),
               pair_experiment());
  };
  SspFolder second;
  const StructureScenario left_out =
      structure_of(second.package(mapped("<ssm:MappingEntry source=\"mm\" target=\"mass.mass\"/>"
                                         "<ssm:MappingEntry source=\"\" target=\"mass.d\"/>"),
                                  pair_fmus()));
  EXPECT_TRUE(has(notes_of(left_out), "there is no parameter \"mm\" to map")) << notes_of(left_out);
  EXPECT_TRUE(has(refusal_of(mapped("<ssm:MappingEntry target=\"mass.mass\"/>")),
                  "<MappingEntry> has no source"));
  const std::string notes = notes_of(structure_of(file));
  EXPECT_TRUE(has(notes, "\"mass\" has no variable \"masss\": its value is left out")) << notes;
  EXPECT_TRUE(has(notes, "there is no variable \"mass.weight\"")) << notes;
}

std::string osp_refusal(const std::string& connections, const std::string& functions = "",
                        const std::string& head = "<BaseStepSize>0.01</BaseStepSize>",
                        const std::string& values = "", const std::string& source = "mass.fmu") {
  FmuFolder folder;
  folder.add("mass.fmu", FmuRecipe{});
  const auto file = folder.path() / "OspSystemStructure.xml";
  write_text(file,
             osp("<Simulator name=\"mass\" source=\"" + source + "\"><InitialValues>" + values +
                     "</InitialValues></Simulator><Simulator name=\"other\" "
                     "source=\"mass.fmu\"/>",
                 connections, functions, head));
  return testing::refusal_of(file);
}
std::string at(const std::string& simulator, const std::string& name) {
  return "<Variable simulator=\"" + simulator + "\" name=\"" + name + "\"/>";
}
std::string signal(const std::string& function, const std::string& name) {
  return "<Signal function=\"" + function + "\" name=\"" + name + "\"/>";
}
std::string joined(const std::string& a, const std::string& b, const std::string& more = "") {
  return "<VariableConnection " + more + ">" + a + b + "</VariableConnection>\n";
}

TEST(HostileOsp, IsRefused) {
  const std::string sound = joined(at("mass", "v"), at("other", "flag"));
  EXPECT_EQ(osp_refusal(sound), "");
  const auto expect = [](const std::string& text, const std::string& words) {
    EXPECT_TRUE(has(text, words)) << text;
    EXPECT_TRUE(has(text, "OspSystemStructure.xml, line ")) << text;
  };
  expect(osp_refusal(joined(at("mass", "v"), at("othr", "F"))),
         "there is no simulator \"othr\". Did you mean \"other\"?");
  expect(osp_refusal(joined(at("mass", "vv"), at("other", "F"))), "has no variable \"vv\"");
  expect(osp_refusal(joined(at("mass", "v"), "")), "is no connection with two ends");
  expect(osp_refusal("<PowerConnection/>"), "<PowerConnection> is no connection with two ends");
  expect(osp_refusal(sound + joined(at("mass", "x"), at("other", "flag"))),
         "\"flag\" of \"other\" is connected already");
  expect(osp_refusal(joined(at("mass", "v"), at("other", "F"), "powerBond=\"b\"")),
         "the power bond \"b\" has 1 connection, and needs two");
  expect(osp_refusal(joined(at("mass", "x"), at("other", "F"), "powerBond=\"b\"") +
                     joined(at("other", "x"), at("mass", "F"), "powerBond=\"b\"")),
         "is named a power bond, and effort times flow there is no power");
  expect(osp_refusal(joined(at("mass", "v"), at("other", "F"), "powerBond=\"b\"") +
                     joined(at("other", "v"), at("mass", "F"), "powerBond=\"b\"")),
         "is named a power bond, and both answer flows");
  expect(osp_refusal("<SignalConnection>" + at("mass", "v") + signal("f", "in") +
                     "</SignalConnection>"),
         "there is no function \"f\"");
  expect(osp_refusal(
             "<SignalConnection>" + at("mass", "v") + signal("f", "in[7]") + "</SignalConnection>",
             "<Sum name=\"f\" inputCount=\"2\"/>"),
         "the function \"f\" has no signal \"in[7]\"");
  expect(osp_refusal(sound, "<Sum name=\"f\" inputCount=\"-1\"/>"),
         "inputCount must be a whole number from 1 to 10000, got \"-1\"");
  expect(osp_refusal(sound, "<VectorSum name=\"f\" inputCount=\"10000\" dimension=\"10000\"/>"),
         "has 10000 inputs of 10000 components, and may have 1000000 signals in all");
  for (const char* const wrong :
       {"in[0]", "in[2][0]", "in[0][3]", "in[00][0]", "in[0][0]x", "in[-1][0]"}) {
    expect(osp_refusal(
               "<SignalConnection>" + at("mass", "v") + signal("f", wrong) + "</SignalConnection>",
               "<VectorSum name=\"f\" inputCount=\"2\" dimension=\"3\"/>"),
           "the function \"f\" has no signal \"" + std::string(wrong) + "\"");
  }
  expect(osp_refusal(sound, "<LinearTransformation name=\"f\" factor=\"nan\"/>"),
         "factor must be a finite number, got \"nan\"");
  expect(osp_refusal(sound, "<Product name=\"f\"/>"), "the function <Product> is not known");
  expect(osp_refusal(sound, "", "<BaseStepSize>0</BaseStepSize>"),
         "<BaseStepSize> must be a number above 0, got \"0\"");
  expect(osp_refusal(sound, "", "<Algorithm>magic</Algorithm>"),
         "<Algorithm> must be fixedStep or ecco, got \"magic\"");
  expect(osp_refusal(sound, "", "",
                     "<InitialValue variable=\"masss\"><Real value=\"1\"/></InitialValue>"),
         "\"mass\" has no variable \"masss\". Did you mean \"mass\"?");
  expect(osp_refusal(sound, "", "",
                     "<InitialValue variable=\"mass\"><Real value=\"heavy\"/></InitialValue>"),
         "the initial value of \"mass\" must be a number, got \"heavy\"");
  expect(osp_refusal(sound, "", "", "", "proxyfmu://example.org?file=mass.fmu"),
         "FMUs that run on other machines are not taken");
  expect(osp_refusal(sound, "", "", "", "none.fmu"), "\"none.fmu\" is no file that can be read");
  expect(osp_refusal("<VariableGroupConnection><VariableGroup simulator=\"mass\" name=\"g\"/>"
                     "<VariableGroup simulator=\"other\" name=\"g\"/></VariableGroupConnection>"),
         "\"mass\" has no group of variables \"g\"");
}

}  // namespace
}  // namespace portwave::test_hostile_structures
