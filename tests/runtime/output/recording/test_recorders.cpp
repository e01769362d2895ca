// A recorder of one's own: the interface has all it needs. This one keeps the run in memory, and
// what it keeps is what FileRecorder writes.

#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <portwave/runtime/output/file_recorder.hpp>
#include <portwave/runtime/output/summary.hpp>

#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"
#include "support/systems/linear_networks.hpp"
#include "support/systems/oscillator_pair.hpp"

namespace portwave::test_recorders {
namespace {

using testing::pair_options;
using testing::quantity;
using testing::read_csv;
using testing::read_text;
using testing::TemporaryFolder;

class MemoryRecorder final : public Recorder {
 public:
  explicit MemoryRecorder(std::vector<Quantity> quantities) : quantities_(std::move(quantities)) {}

  void record_initial(const Stepper& stepper) override { keep(stepper); }
  void record(const Stepper& stepper, const StepReport& report) override {
    keep(stepper);
    stored_J.push_back(report.energy.stored_J);
    if (const WaveView* const waves = stepper.waves(); waves != nullptr) {
      tank_J.push_back(waves->tank(0));
    }
  }
  void finish(const RunSummary& summary) override { finished = summary; }

  std::vector<std::vector<double>> rows;
  std::vector<double> stored_J, tank_J;
  std::optional<RunSummary> finished;

 private:
  void keep(const Stepper& stepper) {
    std::vector<double>& row = rows.emplace_back();
    row.push_back(stepper.time_s());
    for (const Quantity& o : quantities_) row.push_back(observe(stepper, o));
  }

  std::vector<Quantity> quantities_;
};

/// Steps with all the recorders there are, as the program does.
RunSummary run(const System& system, const StepperOptions& options, int steps,
               const std::vector<Recorder*>& recorders) {
  Stepper stepper(system, options);
  for (Recorder* recorder : recorders) recorder->record_initial(stepper);
  for (int n = 0; n < steps; ++n) {
    const StepReport report = stepper.step();
    for (Recorder* recorder : recorders) recorder->record(stepper, report);
  }
  RunSummary summary = summarize("pair", options, stepper, 1.0);
  for (Recorder* recorder : recorders) recorder->finish(summary);
  return summary;
}

TEST(Recorder, InMemoryKeepsWhatTheFilesHold) {
  const TemporaryFolder folder;
  const System system = testing::duffing_linear_pair();
  const std::vector<Quantity> quantities = {quantity(system, "A.q1"),
                                            quantity(system, "B.coupling.incident"),
                                            quantity(system, "A.storage")};
  MemoryRecorder memory(quantities);
  const auto csv =
      std::make_unique<FileRecorder>(folder / "out", RecordingOptions{.quantities = quantities});
  const StepperOptions options = pair_options(5);
  const RunSummary summary = run(system, options, 60, {csv.get(), &memory});

  const auto table = read_csv(folder / "out" / "trajectory.csv");
  ASSERT_EQ(table.rows.size(), memory.rows.size());
  ASSERT_EQ(memory.rows.size(), 61u);
  for (std::size_t i = 0; i < memory.rows.size(); ++i) {
    ASSERT_EQ(table.rows[i].size(), memory.rows[i].size());
    for (std::size_t k = 0; k < memory.rows[i].size(); ++k) {
      EXPECT_EQ(std::memcmp(&table.rows[i][k], &memory.rows[i][k], sizeof(double)), 0)
          << "row " << i << " column " << k;
    }
  }
  EXPECT_NE(memory.rows[10], memory.rows[11]) << "control: something moves";
  EXPECT_EQ(memory.stored_J.size(), 60u);
  EXPECT_EQ(memory.tank_J.size(), 60u);
  ASSERT_TRUE(memory.finished.has_value());
  EXPECT_EQ(summary_text(*memory.finished), summary_text(summary));
  EXPECT_EQ(read_text(folder / "out" / "summary.json"), summary_json(summary).dump(2) + "\n");
}

TEST(Recorder, WorksWithoutWaves) {
  const System system = testing::two_masses();
  StepperOptions options;
  options.start = Start::as_given;
  options.method = CouplingMethod::of_kind(SplittingKind::strang);
  MemoryRecorder memory({quantity(system, "second.storage")});
  run(system, options, 20, {&memory});
  EXPECT_EQ(memory.rows.size(), 21u);
  EXPECT_TRUE(memory.tank_J.empty()) << "there are no tanks";
  ASSERT_TRUE(memory.finished.has_value());
  EXPECT_EQ(memory.finished->steps, 20);
}

/// A run that fails is not finished: the files of the one before stay.
TEST(Recorder, LeavesNothingOfARunThatIsNotFinished) {
  const TemporaryFolder folder;
  const System system = testing::duffing_linear_pair();
  {
    const std::unique_ptr<Recorder> recorder =
        std::make_unique<FileRecorder>(folder / "out", RecordingOptions{});
    Stepper stepper(system, pair_options(5));
    recorder->record_initial(stepper);
    const StepReport report = stepper.step();
    recorder->record(stepper, report);
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

}  // namespace
}  // namespace portwave::test_recorders
