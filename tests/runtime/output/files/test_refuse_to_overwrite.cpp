// Results never take the place of what was read, whatever leads there.

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/runtime/output/file_recorder.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"
#include "support/systems/oscillator_pair.hpp"
#include "support/systems/scenario_fixtures.hpp"

namespace portwave::test_refuse_to_overwrite {
namespace {

namespace fs = std::filesystem;
using testing::names_in;
using testing::read_text;
using testing::TemporaryFolder;
using testing::write_text;
using Paths = std::vector<fs::path>;

constexpr const char* kContent = "what was read";

std::string refusal(const Paths& read, const fs::path& place) {
  try {
    refuse_to_overwrite(read, place);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return {};
}

TEST(RefuseToOverwrite, AFileIsTheSameWhateverLeadsToIt) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "below");
  write_text(folder / "input", kContent);
  write_text(folder / "other", kContent);
  fs::create_symlink(folder / "input", folder / "link");
  fs::create_symlink("link", folder / "link_of_link");
  fs::create_hard_link(folder / "input", folder / "hard");
  fs::create_directory_symlink(folder.path(), folder / "below" / "up");
  const Paths ways = {folder / "input",
                      folder / "link",
                      folder / "link_of_link",
                      folder / "hard",
                      folder / "below" / ".." / "input",
                      folder / "below" / "up" / "input",
                      fs::relative(folder / "input")};
  for (const fs::path& read : ways) {
    for (const fs::path& place : ways) {
      const std::string said = refusal({folder / "other", read}, place);
      EXPECT_NE(said.find(place.string()), std::string::npos) << said;
      EXPECT_NE(said.find("Nothing was run"), std::string::npos) << said;
      if (read != place) {
        EXPECT_NE(said.find(read.string()), std::string::npos) << said;
      }
    }
    // The controls: another file with the same bytes, one that is not there, nothing that was read.
    EXPECT_EQ(refusal({read}, folder / "other"), "");
    EXPECT_EQ(refusal({read}, folder / "new"), "");
    EXPECT_EQ(refusal({}, read), "");
    EXPECT_EQ(refusal({folder / "gone"}, read), "");
  }
  EXPECT_NE(refusal({folder / "input"}, folder.path()), "") << "a folder that it is in";
  EXPECT_EQ(refusal({folder / "input"}, folder / "below" / "none"), "");
  EXPECT_EQ(refusal({"/dev/null"}, "/dev/null"), "") << "of a device nothing is lost";
}

RecordingOptions reading(const fs::path& path) {
  RecordingOptions options = testing::pair_scenario().recording;
  options.inputs = {path};
  return options;
}

TEST(RefuseToOverwrite, NoRecorderIsMadeWhereItsFilesWouldReplaceAnInput) {
  // What a run writes, in whatever form, and what it removes of an earlier one.
  for (const char* name : {"summary.json", "network.json", "trajectory.csv", "energy.csv",
                           "events.csv", "energy_parts.csv", "energy_junctions.csv", "results.h5",
                           "results.rank-3.h5", "report.html", "trace.json"}) {
    const TemporaryFolder folder;
    write_text(folder / name, kContent);
    EXPECT_THROW(FileRecorder(folder.path(), reading(folder / name)), ConfigError) << name;
    EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{name});
    EXPECT_EQ(read_text(folder / name), kContent);
    // The controls: that of an earlier run, and an input of that name elsewhere.
    EXPECT_NO_THROW(
        FileRecorder(folder.path(), RecordingOptions(testing::pair_scenario().recording)))
        << name;
    EXPECT_NO_THROW(FileRecorder(folder / "out", reading(folder / name))) << name;
  }
  const TemporaryFolder folder;
  write_text(folder / "input.csv", kContent);
  EXPECT_NO_THROW(FileRecorder(folder.path(), reading(folder / "input.csv")));
  // A hidden file of a process that is gone would be tidied up.
  write_text(folder / ".x.csv.999999999.part", kContent);
  EXPECT_THROW(FileRecorder(folder.path(), reading(folder / ".x.csv.999999999.part")), ConfigError);
  EXPECT_EQ(read_text(folder / ".x.csv.999999999.part"), kContent);
}

TEST(RefuseToOverwrite, ScenariosSayWhatTheyRead) {
  const TemporaryFolder folder;
  write_text(folder / "trajectory.csv", "0,1\n1,2\n");
  write_text(folder / "M.mtx", "%%MatrixMarket matrix array real general\n1 1\n2\n");
  write_text(folder / "case.json", R"({
    "name": "c", "time": {"step_s": 0.01, "steps": 2}, "method": {"kind": "auto"},
    "subsystems": [
      {"name": "a", "type": "mass", "parameters": {"mass_kg": 1},
       "inputs": {"force": {"kind": "table", "file": "trajectory.csv"}}},
      {"name": "b", "type": "second_order_system", "parameters": {
        "coordinates": {"count": 1, "name": "q"}, "M": {"file": "M.mtx"}, "K": [[1]], "B": [[1]],
        "ports": [{"name": "port", "domain": "translation", "causality": "effort_in"}]}}],
    "couplings": [{"kind": "common_flow", "ports": ["a.port", "b.port"]}]})");
  const Scenario scenario = load_scenario(folder / "case.json");
  EXPECT_EQ(scenario.recording.inputs,
            (Paths{folder / "trajectory.csv", folder / "M.mtx", folder / "case.json"}));
  EXPECT_THROW(FileRecorder(folder.path(), scenario.recording), ConfigError);
  EXPECT_NO_THROW(FileRecorder(folder / "out", scenario.recording));
}

}  // namespace
}  // namespace portwave::test_refuse_to_overwrite
