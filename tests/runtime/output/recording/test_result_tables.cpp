// What a run keeps besides every row as text: grids, envelopes, the last seconds, energies of parts,
// HDF5, and nothing at all. Files are read back, HDF5 by its own library.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/runtime/output/file_recorder.hpp>
#include <portwave/runtime/scenario/scenario.hpp>

#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"
#include "support/systems/oscillator_pair.hpp"

namespace portwave::test_result_tables {
namespace {

using testing::pair_options;
using testing::quantity;
using testing::read_csv;
using testing::read_text;
using testing::TemporaryFolder;

constexpr int kSteps = 100;

/// Steps the pair and records it; ends where a run fails if `finishes` is false.
void record(const std::filesystem::path& folder, RecordingOptions options, int steps = kSteps,
            int iterations = 3) {
  const System system = testing::duffing_linear_pair();
  Stepper stepper(system, pair_options(iterations));
  FileRecorder recorder(folder, std::move(options));
  recorder.record_initial(stepper);
  for (int n = 0; n < steps; ++n) recorder.record(stepper, stepper.step());
  recorder.finish("{}\n");
}

std::vector<Quantity> some() {
  const System system = testing::duffing_linear_pair();
  return {quantity(system, "A.q1"), quantity(system, "B.coupling.flow"),
          quantity(system, "A.storage")};
}

TEST(ResultTables, AnEnvelopeHoldsTheExtremesOfTheStepsBetween) {
  const TemporaryFolder folder;
  record(folder / "all", {.quantities = some()});
  record(folder / "few", {.quantities = some(), .every = 20, .envelope = true});
  const auto all = read_csv(folder / "all" / "trajectory.csv");
  const auto few = read_csv(folder / "few" / "trajectory.csv");
  ASSERT_EQ(few.rows.size(), 6U);
  bool is_wider = false;
  for (std::size_t r = 1; r < few.rows.size(); ++r) {
    for (std::size_t q = 0; q < 3; ++q) {
      double smallest = INFINITY, largest = -INFINITY;
      for (std::size_t n = 20 * (r - 1); n <= 20 * r; ++n) {
        smallest = std::min(smallest, all.rows[n][1 + q]);
        largest = std::max(largest, all.rows[n][1 + q]);
      }
      EXPECT_EQ(few.rows[r][1 + 3 * q], all.rows[20 * r][1 + q]);
      EXPECT_EQ(few.rows[r][2 + 3 * q], smallest);
      EXPECT_EQ(few.rows[r][3 + 3 * q], largest);
      is_wider =
          is_wider || smallest < std::min(all.rows[20 * r - 20][1 + q], all.rows[20 * r][1 + q]);
    }
  }
  EXPECT_TRUE(is_wider) << "control: some extreme lies between two rows";
}

TEST(ResultTables, TheLastSecondsAreTheEndOfAllRows) {
  const TemporaryFolder folder;
  record(folder / "all", {.quantities = some()});
  record(folder / "last", {.quantities = some(), .last_s = 0.2});
  for (const char* name : {"trajectory.csv", "energy.csv"}) {
    const std::string all = read_text(folder / "all" / name);
    const std::string last = read_text(folder / "last" / name);
    const std::string head = all.substr(0, all.find('\n') + 1);
    ASSERT_TRUE(last.starts_with(head));
    EXPECT_TRUE(all.ends_with(last.substr(head.size()))) << name;
    EXPECT_EQ(std::count(last.begin(), last.end(), '\n'), 1 + 21) << "20 steps of 0.01 s";
  }
}

/// Energies of parts and junctions, against those of the whole.
TEST(ResultTables, EnergiesOfPartsAndJunctionsAddUpToTheLedger) {
  const TemporaryFolder folder;
  record(folder / "out", {.every = 7, .energies = true});
  const auto whole = read_csv(folder / "out" / "energy.csv");
  const auto parts = read_csv(folder / "out" / "energy_parts.csv");
  const auto junctions = read_csv(folder / "out" / "energy_junctions.csv");
  ASSERT_EQ(parts.rows.size(), whole.rows.size());
  ASSERT_EQ(parts.rows[0].size(), 1U + 2 * 5);
  ASSERT_EQ(junctions.rows[0].size(), 1U + 3);
  double moved_J = 0.0, lost_J = 0.0;
  for (std::size_t r = 1; r < whole.rows.size(); ++r) {
    const auto& row = parts.rows[r];
    EXPECT_NEAR(row[1] + row[6], whole.rows[r][2], 1e-12);
    EXPECT_NEAR(row[4] + row[9], whole.rows[r][4], 1e-12) << "dissipated";
    for (const std::size_t part : {0U, 1U}) {
      const double changed = row[1 + 5 * part] - parts.rows[r - 1][1 + 5 * part];
      EXPECT_NEAR(changed, row[2 + 5 * part] + row[3 + 5 * part] - row[4 + 5 * part], 1e-12);
      EXPECT_EQ(row[5 + 5 * part], 0.0) << "nothing strikes";
    }
    EXPECT_NEAR(junctions.rows[r][1], whole.rows[r][5], 1e-12) << "mismatch";
    EXPECT_NEAR(junctions.rows[r][2], row[3], 1e-12);
    EXPECT_NEAR(junctions.rows[r][3], row[8], 1e-12);
    moved_J += std::abs(row[3]);
    lost_J += std::abs(junctions.rows[r][1]);
  }
  EXPECT_GT(moved_J, 1.0) << "control: energy goes through the port";
  EXPECT_GT(lost_J, 1e-6) << "control: three iterations leave something";
}

TEST(ResultTables, EnergiesNeedALedger) {
  const TemporaryFolder folder;
  const System system = testing::duffing_linear_pair();
  StepperOptions options = pair_options(3);
  options.certify = Certify::none;
  Stepper stepper(system, options);
  FileRecorder recorder(folder / "out", {.energies = true});
  EXPECT_THROW(recorder.record_initial(stepper), std::invalid_argument);
}

/// Another form takes the place of the one before: no file is of another run.
TEST(ResultTables, WithoutTablesThereIsTheSummaryAlone) {
  const TemporaryFolder folder;
  record(folder / "out", {.quantities = some(), .energies = true});
  ASSERT_TRUE(std::filesystem::exists(folder / "out" / "energy_parts.csv"));
  record(folder / "out", {.quantities = some(), .format = ResultFormat::none});
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "out")) {
    names.push_back(entry.path().filename());
  }
  EXPECT_EQ(names, std::vector<std::string>{"summary.json"});
}

TEST(ResultTables, Hdf5HoldsTheSameBytesInEveryRun) {
  if (!has_hdf5()) GTEST_SKIP() << "built without HDF5";
  const TemporaryFolder folder;
  record(folder / "one", {.quantities = some(), .energies = true, .format = ResultFormat::hdf5});
  record(folder / "two", {.quantities = some(), .energies = true, .format = ResultFormat::hdf5});
  const std::string bytes = read_text(folder / "one" / "results.h5");
  EXPECT_TRUE(bytes.starts_with("\x89HDF\r\n\x1a\n"));
  EXPECT_GT(bytes.size(), 101U * (4 + 11 + 9 + 4) * sizeof(double));
  EXPECT_EQ(bytes, read_text(folder / "two" / "results.h5"));
  record(folder / "two", {.quantities = some(), .format = ResultFormat::hdf5}, kSteps, 4);
  EXPECT_NE(bytes, read_text(folder / "two" / "results.h5")) << "control";
  EXPECT_FALSE(std::filesystem::exists(folder / "one" / "trajectory.csv"));
  for (const auto& entry : std::filesystem::directory_iterator(folder / "one")) {
    EXPECT_EQ(entry.path().extension().string().find("part"), std::string::npos);
    EXPECT_NE(entry.path().extension(), ".rows") << "nothing is left behind";
  }
}

Issues issues_of(const std::string& outputs, const std::string& method = "auto") {
  const std::string text = R"({"name": "x", "time": {"step_s": 0.01, "steps": 2},
    "subsystems": [{"name": "B", "type": "linear_oscillator",
      "parameters": {"mass_kg": 4, "stiffness_N_per_m": 50, "damping_Ns_per_m": 0}}],
    "couplings": [{"kind": "free", "ports": ["B.coupling"]}],
    "method": {"kind": ")" +
                           method + R"("}, "outputs": )" + outputs + "}";
  try {
    parse_scenario(text, "x.json", ".");
  } catch (const ScenarioError& error) {
    return error.issues();
  }
  return {};
}

TEST(ResultTables, AGridOfStepsOfOneSizeIsAWholeNumberOfThem) {
  const Issues issues = issues_of(R"({"every_s": 0.025})");
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].where, "/outputs/every_s");
  EXPECT_EQ(issues[0].what,
            "must be a whole number of steps of 0.01 s, got 0.025.\n0.02 or 0.03 would do.");
  EXPECT_TRUE(issues_of(R"({"every_s": 0.03})").empty());
}

TEST(ResultTables, WhatCannotBeKeptIsRefused) {
  const auto where = [](const Issues& issues) {
    return issues.size() == 1 ? issues[0].where : std::string();
  };
  EXPECT_EQ(where(issues_of(R"({"format": "xml"})")), "/outputs/format");
  EXPECT_EQ(where(issues_of(R"({"last_s": 0})")), "/outputs/last_s");
  EXPECT_EQ(where(issues_of(R"({"envelope": 1})")), "/outputs/envelope");
  EXPECT_EQ(where(issues_of(R"({"energies": true})", "strang")), "/outputs/energies");
  EXPECT_EQ(where(issues_of(R"({"per_rank": true})")), "/outputs/per_rank");
  if (has_hdf5()) {
    EXPECT_TRUE(issues_of(R"({"per_rank": true, "format": "hdf5"})").empty());
    EXPECT_EQ(where(issues_of(R"({"per_rank": true, "format": "hdf5", "last_s": 1})")),
              "/outputs/per_rank");
  }
  EXPECT_TRUE(
      issues_of(R"({"energies": true, "envelope": true, "last_s": 1, "format": "none"})").empty());
}

}  // namespace
}  // namespace portwave::test_result_tables
