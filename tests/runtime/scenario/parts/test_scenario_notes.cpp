// What is allowed but probably not meant.

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/runtime/scenario/scenario.hpp"
#include "support/files/source_folder.hpp"

namespace portwave::test_scenario_notes {
namespace {

/// Two inertias, or an inertia and a flexible joint, joined by a coupling.
Scenario joined(const std::string& kind, const std::string& port_1, const std::string& port_2) {
  const std::string joint =
      R"({"name": "joint", "type": "flexible_joint", "parameters": {"motor_inertia_kgm2": 1e-5,
          "stiffness_Nm_per_rad": 200, "damping_Nms_per_rad": 0.1, "ratio": 50}})";
  std::string free;
  for (const char* port : {"joint.motor", "joint.link", "a.shaft", "b.shaft"}) {
    if (port != port_1 && port != port_2) {
      free += std::string(R"(, {"kind": "free", "ports": [")") + port + R"("]})";
    }
  }
  const std::size_t fixed = free.find(R"("free", "ports": ["joint.link"])");
  if (fixed != std::string::npos) free.replace(fixed, 6, R"("fixed")");
  return parse_scenario(
      R"({"name": "n", "time": {"step_s": 0.01, "steps": 1}, "subsystems": [
          {"name": "a", "type": "inertia", "parameters": {"inertia_kgm2": 1}},
          {"name": "b", "type": "inertia", "parameters": {"inertia_kgm2": 1}}, )" +
          joint + R"(], "couplings": [{"kind": ")" + kind + R"(", "ports": [")" + port_1 +
          R"(", ")" + port_2 + R"("]})" + free + R"(], "method": {"kind": "auto"}})",
      "notes.json", ".");
}

TEST(Notes, TellShaftsThatTurnAgainstEachOther) {
  const Scenario mirrored = joined("connection", "a.shaft", "b.shaft");
  ASSERT_EQ(mirrored.notes.size(), 1U);
  EXPECT_EQ(mirrored.notes[0].where, "/couplings/0");
  EXPECT_EQ(mirrored.notes[0].what,
            "\"connection\" lets a.shaft and b.shaft turn against each other; \"common_flow\" lets "
            "them turn together");
  EXPECT_TRUE(joined("common_flow", "a.shaft", "b.shaft").notes.empty());
  EXPECT_EQ(joined("connection", "a.shaft", "joint.motor").notes.size(), 1U);
  EXPECT_TRUE(joined("common_flow", "a.shaft", "joint.motor").notes.empty());
  EXPECT_EQ(joined("common_flow", "a.shaft", "joint.link").notes.size(), 1U);
  EXPECT_TRUE(joined("connection", "a.shaft", "joint.link").notes.empty());
}

// What the notes say is so: the speeds that come out.
TEST(Notes, AreRight) {
  for (const bool mirrored : {true, false}) {
    Scenario scenario = parse_scenario(
        std::string(R"({"name": "n", "time": {"step_s": 0.01, "steps": 1}, "subsystems": [
          {"name": "a", "type": "inertia", "parameters": {"inertia_kgm2": 1},
           "inputs": {"torque": {"kind": "constant", "value": 1}}},
          {"name": "b", "type": "inertia", "parameters": {"inertia_kgm2": 3}}],
          "couplings": [{"kind": ")") +
            (mirrored ? "connection" : "common_flow") +
            R"(", "ports": ["a.shaft", "b.shaft"]}], "method": {"kind": "auto"}})",
        "notes.json", ".");
    EXPECT_EQ(scenario.notes.size(), mirrored ? 1U : 0U);
    Stepper stepper(scenario.system, scenario.options);
    stepper.step(100);
    const Quantity a = find_quantity(stepper, "a.speed"), b = find_quantity(stepper, "b.speed");
    EXPECT_NEAR(observe(stepper, a), 0.25, 1e-9);  // 1 N m on 4 kg m^2 for 1 s
    EXPECT_NEAR(observe(stepper, b), mirrored ? -0.25 : 0.25, 1e-9);
  }
}

// But for the pair of the literature, whose masses move against each other.
TEST(Notes, SayNothingOfTheExamples) {
  for (const auto& file :
       std::filesystem::recursive_directory_iterator(testing::source_file("examples"))) {
    if (file.path().stem() == "lossless_pair") continue;
    if (file.path().extension() != ".json" ||
        file.path().string().find("plugin") != std::string::npos) {
      continue;
    }
    try {
      const Scenario scenario = load_scenario(file.path());
      for (const Issue& note : scenario.notes) {
        ADD_FAILURE() << file.path() << note.where << ": " << note.what;
      }
    } catch (const ConfigError&) {  // one whose matrices are made by a script
    }
  }
}

}  // namespace
}  // namespace portwave::test_scenario_notes
