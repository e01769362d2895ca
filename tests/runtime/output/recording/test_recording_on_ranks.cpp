// Several ranks record one run: what is written is that of one process, bit by bit, and no more is sent than
// what is recorded. Ranks are threads here; tests/mpi has processes.

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/runtime/output/checkpoint.hpp>
#include <portwave/runtime/output/file_recorder.hpp>
#include <portwave/runtime/ranks/ranked_stepper.hpp>
#include <portwave/subsystems/base/error.hpp>
#include <portwave/subsystems/base/state_archive.hpp>

#include "output/recording/hdf5_file.hpp"
#include "output/recording/table_reader.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"
#include "support/systems/oscillator_pair.hpp"
#include "support/systems/systems.hpp"
#include "support/thread_ranks.hpp"
#include "support/trace.hpp"

namespace portwave::test_recording_on_ranks {
namespace {

using testing::quantity;
using testing::read_text;
using testing::TemporaryFolder;
using testing::ThreadRanks;

StepperOptions options_of(int iterations = 5) {
  StepperOptions options{.method = WaveCoupling{}};
  options.start = Start::as_given;
  options.step_s = 0.01;
  options.method.waves().iterations = iterations;
  options.executor = ExecutorKind::serial;
  options.grain = Grain::of_parts(2);
  return options;
}

/// A state, its co-energy variable, a port and the storage of every block, and of many of them together.
std::vector<Quantity> quantities(const System& system) {
  std::vector<Quantity> all;
  const int parts = static_cast<int>(system.parts().size());
  for (int i = 0; i < parts; ++i) {
    const std::string name = system.parts()[static_cast<std::size_t>(i)].name;
    const std::string port =
        name + "." +
        system.parts()[static_cast<std::size_t>(i)].component->signature().ports[0].name;
    for (const char* what : {".effort", ".flow", ".incident", ".outgoing"}) {
      all.push_back(quantity(system, port + what));
    }
    all.push_back(quantity(system, name + ".storage"));
    if (system.parts()[static_cast<std::size_t>(i)].component->signature().state_size() == 0)
      continue;
    all.push_back({.label = name + ".first", .part = i, .unit = "m"});
    all.push_back({.label = name + ".first.coenergy",
                   .kind = Quantity::Kind::coenergy,
                   .part = i,
                   .unit = "N"});
  }
  all.push_back({.label = "all.storage",
                 .kind = Quantity::Kind::storage,
                 .part = 0,
                 .index = parts - 1,
                 .unit = "J"});
  return all;
}

using Act = std::function<void(Stepper&, Recorder&)>;

void record_steps(Stepper& stepper, Recorder& recorder, int steps) {
  for (int n = 0; n < steps; ++n) {
    recorder.record(stepper,
                    stepper.step_sizes() != nullptr ? stepper.step_towards(1.0) : stepper.step());
  }
}

/// As every rank of so many, the last of whom is where the recorder is; 0: in this process alone.
void record(int ranks, const System& system, const StepperOptions& options,
            const RecordingOptions& recording, const std::filesystem::path& folder, int steps = 40,
            unsigned seed = 0) {
  const auto act = [&](Stepper& stepper) {
    FileRecorder recorder(folder, recording);
    recorder.record_initial(stepper);
    record_steps(stepper, recorder, steps);
    recorder.finish("{\"scenario\": \"x\"}\n");
  };
  if (ranks == 0) {
    Stepper stepper(system, options);
    return act(stepper);
  }
  ThreadRanks::run(
      ranks,
      [&](const std::shared_ptr<Ranks>& own) {
        StepperOptions shared = options;
        shared.ranks = own;
        Stepper stepper(system, shared);
        if (own->rank() == 0) return act(stepper);
        RankedStepper(stepper).follow(*make_recording_follower(recording));
      },
      seed);
}

/// Names, then all rows.
std::pair<std::vector<std::string>, std::vector<double>> content(
    const std::filesystem::path& folder, const std::string& table) {
  const std::unique_ptr<TableReader> reader = open_table(folder, table);
  if (reader == nullptr) return {};
  std::vector<double> rows, row;
  while (reader->next(row)) rows.insert(rows.end(), row.begin(), row.end());
  return {reader->columns(), std::move(rows)};
}

bool same_content(const std::filesystem::path& a, const std::filesystem::path& b) {
  for (const char* table : {"trajectory", "energy", "energy_parts", "energy_junctions"}) {
    const auto one = content(a, table), many = content(b, table);
    if (one.first != many.first || !testing::same_bits(one.second, many.second)) return false;
  }
  return !content(a, "trajectory").second.empty();
}

TEST(RecordingOnRanks, WritesTheBytesOfOneProcess) {
  const std::vector<std::pair<const char*, System>> systems = [] {
    std::vector<std::pair<const char*, System>> all;
    all.emplace_back("chain", testing::chain_of_blocks(12, 3));
    all.emplace_back("star", testing::star());
    all.emplace_back("ring", testing::ring_of_junctions());
    return all;
  }();
  for (const auto& named : systems) {
    const System& system = named.second;
    for (const bool envelope : {false, true}) {
      const RecordingOptions recording = {.quantities = quantities(system),
                                          .every = envelope ? 7 : 1,
                                          .envelope = envelope,
                                          .energies = envelope};
      const TemporaryFolder folder;
      record(0, system, options_of(), recording, folder / "one");
      for (const int ranks : {1, 2, 3, 4}) {
        record(ranks, system, options_of(), recording, folder / "many", 40, 7);
        for (const std::string& name : testing::names_in(folder / "one")) {
          EXPECT_EQ(read_text(folder / "one" / name), read_text(folder / "many" / name))
              << named.first << " " << name << " ranks=" << ranks;
        }
      }
      record(0, system, options_of(4), recording, folder / "many");
      EXPECT_NE(read_text(folder / "one" / "trajectory.csv"),
                read_text(folder / "many" / "trajectory.csv"))
          << "control";
    }
  }
}

class FilePerRank : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_hdf5()) GTEST_SKIP() << "built without HDF5";
  }
};

RecordingOptions per_rank(const System& system) {
  return {.quantities = quantities(system), .format = ResultFormat::hdf5, .per_rank = true};
}

TEST_F(FilePerRank, HoldsWhatOneProcessHas) {
  const System narrow = testing::chain_of_blocks(12, 3);
  const System wide = testing::chain_of_blocks(180, 2);  // more than kMostColumns
  for (const System* system : {&narrow, &wide}) {
    for (const bool envelope : {false, true}) {
      RecordingOptions recording = per_rank(*system);
      recording.envelope = envelope;
      recording.every = envelope ? 7 : 1;
      recording.energies = envelope;
      RecordingOptions plain = recording;
      plain.per_rank = false;
      const TemporaryFolder folder;
      record(0, *system, options_of(), plain, folder / "one");
      record(0, *system, options_of(), recording, folder / "alone");
      EXPECT_EQ(read_text(folder / "one" / "results.h5"),
                read_text(folder / "alone" / "results.h5"));
      for (const int ranks : {2, 3, 4}) {
        record(ranks, *system, options_of(), recording, folder / "many", 40, 3);
        EXPECT_TRUE(same_content(folder / "one", folder / "many")) << "ranks=" << ranks;
        std::set<std::string> names = {"network.json", "results.h5", "summary.json"};
        for (int r = 0; r < ranks; ++r) names.insert("results.rank-" + std::to_string(r) + ".h5");
        for (const std::string& name : testing::names_in(folder / "many")) {
          EXPECT_TRUE(names.contains(name)) << name << ": of the run before, or left behind";
        }
      }
      // Elsewhere.
      std::filesystem::rename(folder / "many", folder / "moved");
      EXPECT_TRUE(same_content(folder / "one", folder / "moved"));
      record(3, *system, options_of(4), recording, folder / "many");
      EXPECT_FALSE(same_content(folder / "one", folder / "many")) << "control";
    }
  }
}

TEST_F(FilePerRank, HoldsRowsWithinStepsThatChooseTheirSize) {
  const System system = testing::chain_of_blocks(12, 3);
  StepperOptions options = options_of(60);
  options.method.waves().stages = 2;
  options.sizes = StepSizes{.tolerance = 1e-4};
  RecordingOptions recording = per_rank(system);
  std::erase_if(recording.quantities, [](const Quantity& own) {
    return own.kind == Quantity::Kind::incident || own.kind == Quantity::Kind::outgoing;
  });
  recording.every_s = 0.003;
  recording.envelope = true;
  const TemporaryFolder folder;
  record(0, system, options, recording, folder / "one", 20);
  record(3, system, options, recording, folder / "many", 20);
  EXPECT_TRUE(same_content(folder / "one", folder / "many"));
}

/// A run that goes on with other ranks, after steps that are lost.
TEST_F(FilePerRank, GoesOnWithOtherRanks) {
  const System system = testing::chain_of_blocks(12, 3);
  RecordingOptions recording = per_rank(system);
  recording.envelope = true;
  recording.every = 3;
  const TemporaryFolder folder;
  record(0, system, options_of(), recording, folder / "one", 50);
  const std::filesystem::path out = folder / "out";
  int done = 0;
  for (const int ranks : {2, 4, 1, 3, 3}) {
    const bool is_first = done == 0, is_last = done == 40;
    const auto act = [&](Stepper& stepper) {
      using For = CheckpointFolder::For;
      CheckpointFolder unfinished(out, is_first ? For::a_new_run : For::going_on);
      FileRecorder recorder(unfinished, recording);
      Checkpoint checkpoint;
      if (is_first) {
        recorder.record_initial(stepper);
      } else {
        std::vector<std::string> refused;
        checkpoint = unfinished.load(refused);
        stepper.restore(checkpoint.snapshot);
        StateArchive reader = StateArchive::reader(checkpoint.recorded);
        recorder.archive(stepper, reader);
        reader.finish();
      }
      record_steps(stepper, recorder, 10);
      if (is_last) return recorder.finish("{\"scenario\": \"x\"}\n");
      stepper.snapshot(checkpoint.snapshot);
      StateArchive writer = StateArchive::writer(checkpoint.recorded);
      recorder.archive(stepper, writer);
      writer.finish();
      unfinished.save(checkpoint);
      record_steps(stepper, recorder, 4);  // lost
    };
    ThreadRanks::run(ranks, [&](const std::shared_ptr<Ranks>& own) {
      StepperOptions options = options_of();
      options.ranks = own;
      Stepper stepper(system, options);
      if (own->rank() == 0) return act(stepper);
      RankedStepper(stepper).follow(*make_recording_follower(recording));
    });
    done += 10;
  }
  EXPECT_TRUE(same_content(folder / "one", out));
  EXPECT_FALSE(std::filesystem::exists(out / "checkpoint"));
  record(0, system, options_of(), recording, folder / "other", 30);
  EXPECT_FALSE(same_content(folder / "one", folder / "other")) << "control: fewer rows";
}

std::string problem_of(const std::filesystem::path& folder) {
  try {
    content(folder, "trajectory");
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return {};
}

TEST_F(FilePerRank, ThatIsNotThereIsToldByTheReader) {
  const System system = testing::chain_of_blocks(12, 3);
  const TemporaryFolder folder;
  const auto& out = folder / "out";
  record(3, system, options_of(), per_rank(system), out);
  EXPECT_EQ(problem_of(out), "") << "control";
  std::filesystem::remove(out / "results.rank-1.h5");
  EXPECT_NE(problem_of(out).find("results.rank-1.h5\", which is not there"), std::string::npos)
      << problem_of(out);
  record(3, system, options_of(), per_rank(system), folder / "other", 39);
  std::filesystem::copy_file(folder / "other" / "results.rank-1.h5", out / "results.rank-1.h5");
  EXPECT_NE(problem_of(out).find("is of another run"), std::string::npos) << problem_of(out);
  EXPECT_EQ(content(out, "energy").first, content(folder / "other", "energy").first)
      << "other tables are read";
}

TEST_F(FilePerRank, IsRefusedWhereThereIsNone) {
  const System system = testing::chain_of_blocks(12, 3);
  const TemporaryFolder folder;
  RecordingOptions recording = per_rank(system);
  recording.last_s = 1.0;
  EXPECT_THROW(FileRecorder(folder / "out", recording), ConfigError);
  recording = per_rank(system);
  recording.format = ResultFormat::csv;
  EXPECT_THROW(FileRecorder(folder / "out", recording), ConfigError);
  // The others follow without a recorder, or with one for something else.
  for (const bool records : {false, true}) {
    ThreadRanks::run(2, [&](const std::shared_ptr<Ranks>& own) {
      StepperOptions options = options_of();
      options.ranks = own;
      Stepper stepper(system, options);
      if (own->rank() != 0) {
        RecordingOptions other = per_rank(system);
        other.every = 2;
        return records ? RankedStepper(stepper).follow(*make_recording_follower(other))
                       : RankedStepper(stepper).follow();
      }
      FileRecorder recorder(folder / "out", per_rank(system));
      std::string what;
      try {
        recorder.record_initial(stepper);
      } catch (const std::exception& error) {
        what = error.what();
      }
      EXPECT_NE(what.find(records ? "not the same as on rank 0" : "without a Follower"),
                std::string::npos)
          << what;
    });
  }
  // Steps that are not recorded.
  ThreadRanks::run(2, [&](const std::shared_ptr<Ranks>& own) {
    StepperOptions options = options_of();
    options.ranks = own;
    Stepper stepper(system, options);
    if (own->rank() != 0)
      return RankedStepper(stepper).follow(*make_recording_follower(per_rank(system)));
    FileRecorder recorder(folder / "out", per_rank(system));
    recorder.record_initial(stepper);
    stepper.step();
    record_steps(stepper, recorder, 3);
    EXPECT_THROW(recorder.finish(), std::runtime_error);
  });
  EXPECT_FALSE(std::filesystem::exists(folder / "out" / "results.h5"));
}

}  // namespace
}  // namespace portwave::test_recording_on_ranks
