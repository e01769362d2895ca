// System structures of OSP-IS as scenarios: their bonds become couplings by waves, all else signals.

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "adapters/discrete_fmu.hpp"
#include "adapters/structure_texts.hpp"
#include "portwave/runtime/step/stepper.hpp"

namespace portwave::test_osp_structures {
namespace {

using namespace portwave::testing;

/// The text of a label has three characters, which the fixture takes for its damping.
FmuPair labelled_pair() {
  FmuPair out;
  out.c = 3.0;
  return out;
}

std::string simulators() {
  const auto simulator = [](const std::string& name, const std::string& values) {
    return "<Simulator name=\"" + name + "\" source=\"" + name + ".fmu\"><InitialValues>" + values +
           "</InitialValues></Simulator>\n";
  };
  const auto value = [](const std::string& name, const std::string& number) {
    return "<InitialValue variable=\"" + name + "\"><Real value=\"" + number +
           "\"/></InitialValue>";
  };
  return simulator("mass", value("mass", "2") + value("d", "0.1") + value("start.x", "0.2") +
                               "<InitialValue variable=\"label\"><String value=\"a b\"/>"
                               "</InitialValue>") +
         simulator("spring", value("k", "100") + value("d", "0.5") + value("start.x", "0.2"));
}
std::string end_at(const std::string& simulator, const std::string& name) {
  return "<Variable simulator=\"" + simulator + "\" name=\"" + name + "\"/>";
}
std::string signal_at(const std::string& function, const std::string& name) {
  return "<Signal function=\"" + function + "\" name=\"" + name + "\"/>";
}
std::string joined(const std::string& a, const std::string& b, const std::string& more = "") {
  return "<VariableConnection " + more + ">" + a + b + "</VariableConnection>\n";
}
std::string sent(const std::string& a, const std::string& b) {
  return "<SignalConnection>" + a + b + "</SignalConnection>\n";
}
const std::string kTimes =
    "<StartTime>0.0</StartTime><EndTime>2</EndTime><BaseStepSize>0.01</BaseStepSize>"
    "<Algorithm>fixedStep</Algorithm>\n";
const std::string kTurned = "<LinearTransformation name=\"turn\" factor=\"-1\"/>";
std::string turned_force() {
  return sent(end_at("spring", "F"), signal_at("turn", "in")) +
         sent(signal_at("turn", "out"), end_at("mass", "F"));
}

std::filesystem::path osp_file(FmuFolder& folder, const std::string& text, FmuRecipe mass = {},
                               FmuRecipe spring = {.version = 3, .library = "spring"}) {
  folder.add("mass.fmu", mass);
  folder.add("spring.fmu", spring);
  const auto file = folder.path() / "OspSystemStructure.xml";
  write_text(file, text);
  return file;
}

TEST(Osp, FunctionsAreInBonds) {
  FmuFolder folder;
  // The ends of a connection stand in any order.
  const auto file = osp_file(
      folder, osp(simulators(), joined(end_at("spring", "v"), end_at("mass", "v")) + turned_force(),
                  kTurned, kTimes));
  const Json made = scenario_of(file);
  EXPECT_EQ(made["couplings"][0]["kind"], "common_flow") << made.dump(1);
  EXPECT_EQ(made["subsystems"][0]["start"]["label"], "a b");
  EXPECT_NEAR(end_of(file), labelled_pair().whole(0.01, 200), kWhole);
}

/// A mass between two springs: velocities go to both, forces come in sum.
TEST(Osp, SumsAreJunctionsOfMany) {
  FmuFolder folder;
  std::string three = simulators();
  const auto begin = three.find("<Simulator name=\"spring\"");
  std::string second = three.substr(begin);
  second.replace(second.find("\"spring\""), 8, "\"second\"");
  three += second;
  const std::string all = joined(end_at("mass", "v"), end_at("spring", "v")) +
                          joined(end_at("mass", "v"), end_at("second", "v")) +
                          sent(end_at("spring", "F"), signal_at("both", "in[0]")) +
                          sent(end_at("second", "F"), signal_at("both", "in[1]"));
  // Of sums alone the sign cannot be turned: springs that count the other way.
  const auto file = osp_file(folder,
                             osp(three, all + sent(signal_at("both", "out"), end_at("mass", "F")),
                                 "<Sum name=\"both\" inputCount=\"2\"/>", kTimes),
                             {}, {.version = 2, .library = "spring"});
  const StructureScenario wrong = structure_of(file);
  EXPECT_TRUE(has(notes_of(wrong), "Is a sign missing?")) << notes_of(wrong);
  // With negative stiffness and damping, springs count outwards.
  std::string outwards = three;
  for (const char* const number : {"\"100\"", "\"0.5\""}) {
    for (std::size_t at = outwards.find(number); at != std::string::npos;
         at = outwards.find(number, at + 2)) {
      outwards.insert(at + 1, "-");
    }
  }
  const auto right =
      osp_file(folder,
               osp(outwards, all + sent(signal_at("both", "out"), end_at("mass", "F")),
                   "<Sum name=\"both\" inputCount=\"2\"/>", kTimes),
               {}, {.version = 2, .library = "spring"});
  const Json made = scenario_of(right);
  ASSERT_EQ(made["couplings"].size(), 1u) << made.dump(1);
  EXPECT_EQ(made["couplings"][0]["ports"].size(), 3u);
  EXPECT_EQ(made["couplings"][0]["kind"], "common_flow");
  FmuPair same = labelled_pair();
  same.k *= 2.0;
  same.d *= 2.0;
  EXPECT_NEAR(end_of(right), same.whole(0.01, 200), kWhole);
}

/// Groups of variables, named by OspModelDescription.xml in the FMU or beside it.
TEST(Osp, GroupsAreBonds) {
  FmuFolder folder;
  const std::string groups =
      "<OspModelDescription version=\"1.0\"><VariableGroups><LinearMechanicalPort name=\"the "
      "port\">"
      "<Force name=\"force\"><Variable ref=\"F\"/></Force><LinearVelocity name=\"speed\">"
      "<Variable ref=\"v\"/></LinearVelocity></LinearMechanicalPort></VariableGroups>"
      "</OspModelDescription>";
  const auto group = [](const std::string& simulator, const std::string& name) {
    return "<VariableGroup simulator=\"" + simulator + "\" name=\"" + name + "\"/>";
  };
  const std::string text = osp(simulators(),
                               "<VariableGroupConnection>" + group("mass", "the port") +
                                   group("spring", "the port") + "</VariableGroupConnection>\n",
                               "", kTimes);
  // The spring counts the other way by negative numbers: connections of groups turn no sign.
  std::string outwards = text;
  outwards.replace(outwards.find("\"100\""), 5, "\"-100\"");
  outwards.replace(outwards.find("\"0.5\""), 5, "\"-0.5\"");
  const auto file = osp_file(folder, outwards, {.version = 2, .units = "none", .osp = groups},
                             {.version = 2, .library = "spring", .units = "none"});
  EXPECT_TRUE(has(refusal_of(file), "There is no OspModelDescription.xml of it"));
  write_text(folder.path() / "fixture_OspModelDescription.xml", groups);
  const Json made = scenario_of(file);
  ASSERT_TRUE(made.contains("couplings")) << made.dump(1);
  EXPECT_EQ(made["subsystems"][1]["ports"][0]["name"], "the_port");
  EXPECT_NEAR(end_of(file), labelled_pair().whole(0.01, 200), kWhole);
}

TEST(Osp, NamedBondsNeedNoUnits) {
  const auto with_bond = [](const std::string& more) {
    FmuFolder folder;
    std::string outwards = simulators();
    outwards.replace(outwards.find("\"100\""), 5, "\"-100\"");
    outwards.replace(outwards.find("\"0.5\""), 5, "\"-0.5\"");
    return structure_of(osp_file(folder,
                                 osp(outwards,
                                     joined(end_at("mass", "v"), end_at("spring", "v"), more) +
                                         joined(end_at("spring", "F"), end_at("mass", "F"), more),
                                     "", kTimes),
                                 {.units = "none"},
                                 {.version = 3, .library = "spring", .units = "none"}))
        .text;
  };
  EXPECT_TRUE(has(with_bond("powerBond=\"b\""), "common_flow"));
  EXPECT_FALSE(has(with_bond(""), "common_flow"));
}

/// A simulator that steps less often is sampled less often.
TEST(Osp, StepSizesAreMultiples) {
  FmuFolder folder;
  std::string text =
      osp(simulators(), joined(end_at("mass", "v"), end_at("spring", "v")), "", kTimes);
  text.replace(text.find("source=\"mass.fmu\""), 17, "source=\"mass.fmu\" stepSize=\"0.03\"");
  const StructureScenario made = structure_of(osp_file(folder, text));
  EXPECT_EQ(block_named(Json::parse(made.text), "mass")["every"], 3) << made.text;
  text.replace(text.find("0.03"), 4, "0.034");
  const StructureScenario odd = structure_of(osp_file(folder, text));
  EXPECT_TRUE(has(notes_of(odd), "asks for steps of 0.034 s: it gets 3 of 0.01 s"))
      << notes_of(odd);
}

TEST(Osp, VectorsAreSummedByComponent) {
  FmuFolder folder;
  const std::string groups =
      "<OspModelDescription version=\"1.0\"><VariableGroups><Generic name=\"pair\"><Variable "
      "ref=\"v\"/><Variable ref=\"x\"/></Generic><Generic name=\"in\"><Variable ref=\"F\"/>"
      "<Variable ref=\"flag\"/></Generic></VariableGroups></OspModelDescription>";
  const auto ends = [](const std::string& signal, const std::string& simulator,
                       const std::string& group) {
    return "<SignalGroupConnection><SignalGroup function=\"all\" name=\"" + signal +
           "\"/><VariableGroup simulator=\"" + simulator + "\" name=\"" + group +
           "\"/></SignalGroupConnection>\n";
  };
  std::string text =
      osp(simulators(),
          ends("in[0]", "mass", "pair") + ends("in[1]", "mass", "pair") + ends("out", "mass", "in"),
          "<VectorSum name=\"all\" inputCount=\"2\" dimension=\"2\"/>", kTimes);
  const Json made = scenario_of(osp_file(folder, text, {.version = 2, .osp = groups}));
  EXPECT_EQ(block_named(made, "to_mass_F")["expression"], "u1 + u2") << made.dump(1);
  EXPECT_EQ(block_named(made, "to_mass_F")["signals"], Json::parse(R"(["mass[0]", "mass[0]"])"));
  EXPECT_EQ(block_named(made, "to_mass_flag")["signals"], Json::parse(R"(["mass[1]", "mass[1]"])"));
}

}  // namespace
}  // namespace portwave::test_osp_structures
