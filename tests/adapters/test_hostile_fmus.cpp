// FMUs that are broken, lie or mean harm are refused before they run.

#include <algorithm>
#include <filesystem>
#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/files/archive.hpp"
#include "adapters/fmu_scenario.hpp"
#include "portwave/runtime/adapters/fmu.hpp"

namespace portwave::test_hostile_fmus {
namespace {

using testing::failure_of;
using testing::FmuFolder;
using testing::FmuRecipe;
using testing::ZipMember;

std::string refusal_of(const std::filesystem::path& file,
                       const FmuPort& port = {.name = "", .effort = "F", .flow = "v"},
                       bool in_process = false) {
  FmuPartOptions options;
  options.file = file;
  options.process = in_process;
  options.ports = {port};
  return failure_of([&] { make_fmu_part(options); });
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

struct Hostile {
  const char* name;
  std::function<void(std::vector<ZipMember>&)> spoil;
  const char* words;  ///< of the refusal
  int version = 2;
};
/// What the test framework prints: the name, not bytes.
void PrintTo(const Hostile& own, std::ostream* out) { *out << own.name; }

void replace_in_description(std::vector<ZipMember>& members, const std::string& from,
                            const std::string& to) {
  members[0].content = replaced(members[0].content, from, to);
}

std::vector<Hostile> hostile_fmus() {
  const auto description = [](std::string from, std::string to) {
    return [from = std::move(from), to = std::move(to)](std::vector<ZipMember>& members) {
      replace_in_description(members, from, to);
    };
  };
  const auto member = [](std::string name, std::string content, unsigned mode = 0) {
    return [=](std::vector<ZipMember>& members) { members.push_back({name, content, mode}); };
  };
  return {
      {"no_description", [](auto& members) { members.erase(members.begin()); },
       "no modelDescription.xml"},
      {"broken_xml", description("</ModelVariables>", "</Model"),
       "modelDescription.xml, line 19: is no XML: "},
      {"deep_xml",
       [](auto& members) {
         std::string deep;
         for (int level = 0; level < 200'000; ++level) deep += "<a>";
         for (int level = 0; level < 200'000; ++level) deep += "</a>";
         std::string& text = members[0].content;
         text.insert(text.find("</ModelVariables>"), deep);
       },
       "more than 1000 deep"},
      {"other_xml", [](auto& members) { members[0].content = "<html/>"; },
       "holds no fmiModelDescription"},
      {"fmi_1", description("fmiVersion=\"2.0\"", "fmiVersion=\"1.0\""), "FMI 1.0"},
      {"fmi_9", description("fmiVersion=\"2.0\"", "fmiVersion=\"9.0\""),
       "fmiVersion must be 2.0 or 3.0, got \"9.0\""},
      {"model_exchange", description("<CoSimulation", "<ModelExchange"),
       "is for model exchange only"},
      {"no_co_simulation", description("<CoSimulation", "<Simulation"), "has no <CoSimulation>"},
      {"no_guid", description("guid=\"{fixture}\"", ""), "has no guid"},
      {"other_guid", description("guid=\"{fixture}\"", "guid=\"{other}\""),
       "fmi2Instantiate returned error"},
      {"identifier_with_path",
       description("modelIdentifier=\"fixture\"", "modelIdentifier=\"../../x\""),
       "modelIdentifier must be the name of a file"},
      {"long_identifier",
       description("modelIdentifier=\"fixture\"",
                   "modelIdentifier=\"" + std::string(201, 'x') + "\""),
       "modelIdentifier must be the name of a file"},
      {"odd_power", description("m=\"1\" s=\"-2\"", "m=\"one\" s=\"-2\""),
       "line 4: the power of m in unit \"force\" must be a whole number, got \"one\""},
      {"odd_factor", description("s=\"-2\"", "s=\"-2\" factor=\"nan\""),
       "line 4: factor of <BaseUnit> must be a finite number, got \"nan\""},
      {"another_unit",
       description("</UnitDefinitions>",
                   "<Unit name=\"force\"><BaseUnit kg=\"1\" m=\"1\" s=\"-2\" factor=\"10\"/>"
                   "</Unit></UnitDefinitions>"),
       "there is another unit \"force\""},
      {"endless_step",
       description("</UnitDefinitions>", "</UnitDefinitions><DefaultExperiment stepSize=\"INF\"/>"),
       "stepSize of <DefaultExperiment> must be a finite number, got \"INF\""},
      {"odd_reference", description("valueReference=\"3\"", "valueReference=\"three\""),
       "the valueReference of variable \"F\" must be a whole number, got \"three\""},
      {"twice_the_same", description("name=\"mass\"", "name=\"v\""),
       "there are two variables \"v\""},
      {"odd_truth", description("canGetAndSetFMUstate=\"true\"", "canGetAndSetFMUstate=\"maybe\""),
       "canGetAndSetFMUstate of <CoSimulation> must be true or false, got \"maybe\""},
      {"no_binary", [](auto& members) { members[1].name = "binaries/win64/fixture.dll"; },
       "It was made for: win64. Export it for linux64"},
      {"source_only", [](auto& members) { members[1].name = "sources/fixture.c"; },
       "It holds no binaries"},
      {"no_library", [](auto& members) { members[1].content = "not a library"; },
       "its library cannot be loaded"},
      {"cut_library", [](auto& members) { members[1].content.resize(2000); },
       "its library cannot be loaded"},
      {"other_version",
       [](auto& members) { members[1].content = testing::fixture_library({.version = 3}); },
       "its library has no function fmi2GetVersion, fmi2Instantiate"},
      {"missing_function",
       [](auto& members) {
         members[1].content = testing::fixture_library({.library = "without_get_real"});
       },
       "its library has no function fmi2GetReal"},
      {"python_library",
       [](auto& members) {
         members[1].content = testing::fixture_library({.library = "needs_python"});
       },
       "start portwave with LD_PRELOAD=libpython3.x.so"},
      {"zip_slip", member("resources/../../../../tmp/portwave_was_here", "x"),
       "leads out of the archive's folder"},
      {"absolute_path", member("/tmp/portwave_was_here", "x"), "has an absolute path"},
      {"backslash", member("resources\\..\\x", "x"), "has a backslash in its path"},
      {"link", member("resources/link", "/etc/passwd", 0120777), "is a link"},
      {"bomb", member("resources/zeros", std::string(std::size_t{80} << 20, '\0')),
       "it is not unpacked"},
      {"no_state_functions_3",
       [](auto& members) { members[1].content = testing::fixture_library({.version = 2}); },
       "its library has no function fmi3GetVersion", 3},
      {"unknown_type_3", description("<Float64 name=\"F\"", "<Float99 name=\"F\""),
       "<Float99> is no type of a variable", 3},
      {"array_3",
       description("<Float64 name=\"F\" valueReference=\"3\" causality=\"input\" unit=\"force\" "
                   "start=\"0\"/>",
                   "<Float64 name=\"F\" valueReference=\"3\" causality=\"input\" unit=\"force\" "
                   "start=\"0 0\"><Dimension start=\"2\"/></Float64>"),
       "must be a single number, and is an array", 3},
  };
}

class HostileFmu : public ::testing::TestWithParam<Hostile> {};

TEST_P(HostileFmu, IsRefused) {
  const Hostile& hostile = GetParam();
  FmuFolder folder;
  std::vector<ZipMember> members = testing::fmu_members({.version = hostile.version});
  hostile.spoil(members);
  const auto file = folder.add("x.fmu", members);
  const FmuPort port = {.name = "", .effort = "F", .flow = "v"};
  const std::string text = refusal_of(file, port);
  EXPECT_NE(text.find(hostile.words), std::string::npos) << text;
  EXPECT_EQ(refusal_of(file, port, true), text);
  EXPECT_FALSE(std::filesystem::exists("/tmp/portwave_was_here"));
}

INSTANTIATE_TEST_SUITE_P(All, HostileFmu, ::testing::ValuesIn(hostile_fmus()),
                         [](const auto& own) { return std::string(own.param.name); });

TEST(HostileFmuControl, WithoutDefectItIsTaken) {
  for (const int version : {2, 3}) {
    FmuFolder folder;
    const auto file = folder.add("x.fmu", FmuRecipe{.version = version});
    const FmuPort port = {.name = "", .effort = "F", .flow = "v"};
    EXPECT_EQ(refusal_of(file, port), "");
    EXPECT_EQ(refusal_of(file, port, true), "");
  }
}

TEST(HostileFmu, IsNoZip) {
  FmuFolder folder;
  testing::write_text(folder.path() / "x.fmu", "an FMU, honestly");
  EXPECT_NE(refusal_of(folder.path() / "x.fmu").find("is no FMU, which is a zip archive"),
            std::string::npos);
  EXPECT_NE(refusal_of(folder.path() / "none.fmu").find("cannot be opened"), std::string::npos);
  EXPECT_NE(refusal_of(folder.path()).find("is no file"), std::string::npos);
}

TEST(HostileFmu, ThatIsDamagedIsRefused) {
  FmuFolder folder;
  const auto file = folder.add("x.fmu", FmuRecipe{});
  const std::string bytes = testing::read_text(file);
  // Every so many bytes one is flipped: none of it ends in a crash.
  for (std::size_t at = 0; at < bytes.size(); at += 997) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    testing::write_text(file, damaged);
    try {
      const files::Archive archive(file);
      static_cast<void>(archive.content("modelDescription.xml"));
      const files::ScratchFolder scratch;
      archive.unpack("binaries/", scratch.path());
    } catch (const ConfigError&) {
    }
  }
}

TEST(HostileFmu, ThatForgetsItsStateIsCaughtInTheLie) {
  for (const int version : {2, 3}) {
    FmuFolder folder;
    const auto file = folder.add("x.fmu", FmuRecipe{.version = version, .library = "forgets"});
    const std::string text = refusal_of(file);
    EXPECT_NE(text.find("says that it can go back"), std::string::npos) << text;
    EXPECT_NE(text.find("cannot be iterated"), std::string::npos) << text;
  }
}

/// One that leaves a part of its state where it is: an integral, or what shows in the answers alone, beside a large force.
TEST(HostileFmu, ThatGoesBackInPartIsCaughtInTheLie) {
  for (const int version : {2, 3}) {
    FmuFolder folder;
    const auto file = folder.add("x.fmu", FmuRecipe{.version = version, .library = "keeps_x"});
    const std::string text =
        refusal_of(file, {.name = "", .effort = "F", .flow = "v", .integral = "x"});
    EXPECT_NE(text.find("\"x.fmu\" says that it can go back"), std::string::npos) << text;
  }
  FmuFolder folder;
  FmuPartOptions options;
  options.file = folder.add("x.fmu", FmuRecipe{.library = "spring_keeps_x"});
  options.ports = {{.name = "", .effort = "F", .flow = "v", .input = Causality::flow_in}};
  options.start = {{"k", 4e4}, {"start.x", 0.2}};
  const auto refusal = [&] { return failure_of([&] { make_fmu_part(options); }); };
  EXPECT_NE(refusal().find("repeated differs by"), std::string::npos) << refusal();
  EXPECT_NE(refusal().find(", each time"), std::string::npos) << refusal();
  options.file = folder.add("y.fmu", FmuRecipe{.library = "spring"});
  EXPECT_EQ(refusal(), "");
}

TEST(HostileFmu, ThatAnswersNothingSaysSo) {
  for (const int version : {2, 3}) {
    FmuFolder folder;
    const std::string text =
        refusal_of(folder.add("x.fmu", FmuRecipe{.version = version, .library = "silent"}));
    EXPECT_NE(text.find("gave no value for the variable of valueReference"), std::string::npos)
        << text;
  }
}

TEST(HostileFmu, ThatDoesNotStartSaysSo) {
  for (const int version : {2, 3}) {
    FmuFolder folder;
    const std::string none =
        refusal_of(folder.add("a.fmu", FmuRecipe{.version = version, .library = "no_instance"}));
    EXPECT_NE(none.find("the part cannot be started"), std::string::npos) << none;
    const std::string fails =
        refusal_of(folder.add("b.fmu", FmuRecipe{.version = version, .library = "fails_at_start"}));
    EXPECT_NE(fails.find("EnterInitializationMode returned error"), std::string::npos) << fails;
  }
}

TEST(HostileFmu, WithoutStatesDoesNotGoBack) {
  FmuFolder folder;
  FmuPartOptions options;
  options.file = folder.add("x.fmu", FmuRecipe{.saves_state = false});
  options.ports = {{.name = "", .effort = "F", .flow = "v"}};
  options.rollback = true;
  const std::string text = failure_of([&] { make_fmu_part(options); });
  EXPECT_NE(text.find("cannot go back to a state (canGetAndSetFMUstate is not true)"),
            std::string::npos)
      << text;
}

// Ports that make no sense.

TEST(FmuPorts, AreHeldAgainstTheDescription) {
  FmuFolder folder;
  const auto file = folder.add("x.fmu", FmuRecipe{});
  const auto refusal = [&](const FmuPort& port) { return refusal_of(file, port); };
  FmuPort port;
  port.effort = "f";
  port.flow = "v";
  EXPECT_NE(refusal(port).find("the FMU has no variable \"f\""), std::string::npos)
      << refusal(port);
  port.effort = "v";
  EXPECT_NE(refusal(port).find("\"v\" must be an input of the FMU, and is an output"),
            std::string::npos)
      << refusal(port);
  port.effort = "F";
  port.flow = "x";
  EXPECT_NE(refusal(port).find("\"F\" [force] times \"x\" [way] is no power"), std::string::npos)
      << refusal(port);
  port.flow = "v";
  port.domain = Domain::electrical;
  EXPECT_NE(refusal(port).find("is electrical, whose effort is in V"), std::string::npos)
      << refusal(port);
  port.domain = Domain::translation;
  port.integral = "v";
  EXPECT_NE(refusal(port).find("\"v\" [speed] is not the integral of \"v\" [speed]"),
            std::string::npos)
      << refusal(port);
}

TEST(FmuPorts, ComeFromTerminals) {
  FmuFolder folder;
  // In mechanics the terminal's flow is the force.
  const auto file = folder.add(
      "x.fmu",
      FmuRecipe{.version = 3,
                .terminals = "<fmiTerminalsAndIcons fmiVersion=\"3.0\"><Terminals>"
                             "<Terminal name=\"flange.a\" matchingRule=\"plug\">"
                             "<TerminalMemberVariable variableName=\"v\" variableKind=\"signal\"/>"
                             "<TerminalMemberVariable variableName=\"F\" variableKind=\"inflow\"/>"
                             "</Terminal></Terminals></fmiTerminalsAndIcons>"});
  FmuPartOptions options;
  options.file = file;
  const FmuPart part = make_fmu_part(options);
  const Signature& signature = part.component->signature();
  ASSERT_EQ(signature.ports.size(), 1U);
  EXPECT_EQ(signature.ports[0].name, "flange_a");
  EXPECT_EQ(signature.ports[0].causality, Causality::effort_in);
  EXPECT_EQ(signature.ports[0].domain, Domain::translation);
}

TEST(FmuPorts, ComeFromOspDescriptions) {
  FmuFolder folder;
  const auto file = folder.add(
      "x.fmu",
      FmuRecipe{.osp = "<OspModelDescription version=\"1.0\"><VariableGroups>"
                       "<LinearMechanicalPort name=\"shaft end\">"
                       "<Force name=\"force\"><Variable ref=\"F\"/></Force>"
                       "<LinearVelocity name=\"speed\"><Variable ref=\"v\"/></LinearVelocity>"
                       "</LinearMechanicalPort></VariableGroups></OspModelDescription>"});
  FmuPartOptions options;
  options.file = file;
  const FmuPart part = make_fmu_part(options);
  ASSERT_EQ(part.component->signature().ports.size(), 1U);
  EXPECT_EQ(part.component->signature().ports[0].name, "shaft_end");
}

TEST(FmuPorts, TakeTheIntegralThatTheFmuDeclares) {
  // In FMI 2 by the place among the variables, from 1, in FMI 3 by the reference.
  for (const int version : {2, 3}) {
    const auto is_asked_for = [version](const std::string& derivative) {
      FmuFolder folder;
      std::vector<ZipMember> members = testing::fmu_members({.version = version});
      replace_in_description(members, "unit=\"speed\"", "unit=\"speed\"" + derivative);
      FmuPartOptions options;
      options.file = folder.add("x.fmu", members);
      options.ports = {{.name = "", .effort = "F", .flow = "v"}};
      const std::vector<std::string> notes = make_fmu_part(options).notes;
      return std::ranges::any_of(notes, [](const std::string& own) {
        return own.find("name its \"integral\"") != std::string::npos;
      });
    };
    EXPECT_TRUE(is_asked_for(""));
    EXPECT_FALSE(is_asked_for(version == 2 ? " derivative=\"4\"" : " derivative=\"100\""));
    // The force, itself, nothing: these are no integrals.
    for (const char* const other : {" derivative=\"2\"", " derivative=\"3\"", " derivative=\"10\"",
                                    " derivative=\"999\"", " derivative=\"0x\""}) {
      EXPECT_TRUE(is_asked_for(other)) << version << other;
    }
  }
}

TEST(FmuPorts, HaveToBeNamedWhereTheFmuDeclaresNone) {
  FmuFolder folder;
  FmuPartOptions options;
  options.file = folder.add("x.fmu", FmuRecipe{});
  const std::string text = failure_of([&] { make_fmu_part(options); });
  EXPECT_NE(text.find("the FMU declares no ports"), std::string::npos) << text;
  EXPECT_NE(text.find("Its inputs: F, flag; its outputs: v, x, steps, calls"), std::string::npos)
      << text;
}

TEST(FmuPorts, TellOfUnitsThatThereAreNot) {
  FmuFolder folder;
  std::vector<ZipMember> members = testing::fmu_members({});
  replace_in_description(members, "<Unit name=\"speed\">", "<Unit name=\"speeed\">");
  FmuPartOptions options;
  options.file = folder.add("x.fmu", members);
  options.ports = {{.name = "", .effort = "F", .flow = "v"}};
  const std::vector<std::string> notes = make_fmu_part(options).notes;
  EXPECT_TRUE(std::ranges::any_of(notes, [](const std::string& own) {
    return own.find("does not tell the units of v (\"speed\", which it does not define)") !=
           std::string::npos;
  }));
}

/// Limits of a variable, or of the type that it names.
TEST(FmuStart, KeepsToTheLimitsOfTheFmu) {
  for (const int version : {2, 3}) {
    for (const bool by_type : {false, true}) {
      FmuFolder folder;
      std::vector<ZipMember> members = testing::fmu_members({.version = version});
      const std::string limits = " min=\"0.5\" max=\"3\"";
      replace_in_description(
          members, "unit=\"kg\" start=\"2\"",
          std::string("unit=\"kg\" start=\"2\"") + (by_type ? " declaredType=\"mass\"" : limits));
      replace_in_description(
          members, "</UnitDefinitions>",
          std::string("</UnitDefinitions><TypeDefinitions>") +
              (version == 2 ? "<SimpleType name=\"mass\"><Real" + limits + "/></SimpleType>"
                            : "<Float64Type name=\"mass\"" + limits + "/>") +
              "</TypeDefinitions>");
      FmuPartOptions options;
      options.file = folder.add("x.fmu", members);
      options.ports = {{.name = "", .effort = "F", .flow = "v"}};
      const auto refusal_of_mass = [&](double mass) {
        options.start = {{"mass", mass}};
        return failure_of([&] { make_fmu_part(options); });
      };
      EXPECT_EQ(refusal_of_mass(0.5) + refusal_of_mass(3.0), "");
      EXPECT_NE(refusal_of_mass(-1.0).find("must be at least 0.5, as the FMU says, got -1"),
                std::string::npos);
      EXPECT_NE(refusal_of_mass(4.0).find("must be at most 3"), std::string::npos);
    }
  }
}

/// Units that the FMU has for its variable, to be shown or of the same kind.
TEST(FmuStart, TakesUnitsOfTheFmu) {
  for (const int version : {2, 3}) {
    FmuFolder folder;
    std::vector<ZipMember> members = testing::fmu_members({.version = version});
    replace_in_description(members, "<Unit name=\"kg\"><BaseUnit kg=\"1\"/></Unit>",
                           "<Unit name=\"kg\"><BaseUnit kg=\"1\"/><DisplayUnit name=\"g\" "
                           "factor=\"1000\" offset=\"-500\"/></Unit><Unit name=\"t\"><BaseUnit "
                           "kg=\"1\" factor=\"1000\"/></Unit>");
    FmuPartOptions options;
    options.file = folder.add("x.fmu", members);
    options.ports = {{.name = "", .effort = "F", .flow = "v"}};
    // What it can give is m v²/2.
    const auto energy_with = [&](const FmuValue& mass) {
      options.start = {{"mass", mass}, {"d", 0.0}, {"start.v", 2.0}};
      return make_fmu_part(options).available_J;
    };
    const double of_3_kg = energy_with(3.0);
    EXPECT_NEAR(of_3_kg, 6.0, 1e-3);
    for (const char* const same : {"3 kg", "2500 g", "0.003 t"})
      EXPECT_DOUBLE_EQ(energy_with(std::string(same)), of_3_kg) << same;
    const auto refusal = [&](const std::string& mass) {
      return failure_of([&] { energy_with(mass); });
    };
    EXPECT_NE(refusal("3 lb").find("knows no unit \"lb\" of \"mass\". It has: kg, g, t"),
              std::string::npos)
        << refusal("3 lb");
    for (const char* const bad : {"heavy", "3", "3kg", ""})
      EXPECT_NE(refusal(bad).find("takes a number, or a text of a number and a unit"),
                std::string::npos)
          << bad;
  }
}

/// Neither a rounded number nor one that was half is what was meant.
TEST(FmuStart, TakesWholeNumbersWhereTheFmuHasSuch) {
  FmuFolder folder;
  std::vector<ZipMember> members = testing::fmu_members({.version = 3});
  replace_in_description(members, "</ModelVariables>",
                         "<Int32 name=\"seed\" valueReference=\"15\" causality=\"parameter\" "
                         "variability=\"fixed\" start=\"0\"/></ModelVariables>");
  FmuPartOptions options;
  options.file = folder.add("x.fmu", members);
  options.ports = {{.name = "", .effort = "F", .flow = "v"}};
  options.start = {{"seed", 2.5}, {"flag", 0.5}};
  const auto issues = [&]() -> Issues {
    try {
      make_fmu_part(options);
    } catch (const ConfigError& error) {
      return error.issues();
    }
    return {};
  };
  ASSERT_EQ(issues().size(), 2U) << issues()[0].what;
  EXPECT_EQ(issues()[0].where, "/start/flag");
  EXPECT_EQ(issues()[0].what, "must be true or false, 1 or 0, got 0.5");
  EXPECT_EQ(issues()[1].what, "must be a whole number, got 2.5");
  options.start = {{"seed", 3e9}};
  ASSERT_EQ(issues().size(), 1U);
  EXPECT_NE(issues()[0].what.find("must be within its type"), std::string::npos)
      << issues()[0].what;
}

TEST(FmuStart, SaysWhatCannotBeSet) {
  FmuFolder folder;
  FmuPartOptions options;
  options.file = folder.add("x.fmu", FmuRecipe{});
  options.ports = {{.name = "", .effort = "F", .flow = "v"}};
  options.start = {{"masss", 1.0}, {"x", 1.0}, {"mass", 3.0}};
  try {
    make_fmu_part(options);
    FAIL() << "nothing was refused";
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.issues().size(), 2U) << error.what();
    EXPECT_EQ(error.issues()[0].where, "/start/masss");
    EXPECT_NE(error.issues()[0].what.find("Did you mean \"mass\"?"), std::string::npos);
    EXPECT_EQ(error.issues()[1].where, "/start/x");
    EXPECT_NE(error.issues()[1].what.find("cannot be set: it is an output"), std::string::npos);
  }
}

}  // namespace
}  // namespace portwave::test_hostile_fmus
