// A process that forks has copies of steppers and recorders in its child, and no threads there.

#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>

#include <portwave/runtime/ensemble/ensemble.hpp>
#include <portwave/runtime/output/checkpoint.hpp>
#include <portwave/runtime/output/file_recorder.hpp>
#include <portwave/runtime/output/summary.hpp>
#include <portwave/runtime/step/stepper.hpp>

#include "output/files/row_writer.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"
#include "support/systems/systems.hpp"

namespace portwave::test_fork {
namespace {

using testing::chain_of_blocks;
using testing::names_in;
using testing::TemporaryFolder;

#if defined(__SANITIZE_THREAD__)
#define SKIP_UNDER_THREAD_SANITIZER() GTEST_SKIP() << "it does not follow a fork"
#else
#define SKIP_UNDER_THREAD_SANITIZER() static_cast<void>(0)
#endif

/// How a child ends that does this: its exit code, 0 where `act` says so; -1 where it has to be killed.
int in_child(const std::function<bool()>& act) {
  const pid_t child = ::fork();
  if (child == 0) {
    bool good = false;
    try {
      good = act();
    } catch (...) {
    }
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  for (int i = 0; i < 3000; ++i) {
    if (::waitpid(child, &status, WNOHANG) == child) {
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  return -1;
}

StepperOptions options_with(ExecutorKind executor) {
  StepperOptions options;
  options.start = Start::as_given;
  options.step_s = 0.01;
  options.threads = 4;
  options.executor = executor;
  options.method = WaveCoupling::automatic(1e-9);
  options.method.waves().kind = WaveUpdate::douglas_rachford;
  options.method.waves().iterations = 12;
  return options;
}

std::vector<double> states_of(const Stepper& stepper) {
  std::vector<double> out;
  for (int i = 0; i < static_cast<int>(stepper.system().parts().size()); ++i) {
    const auto own = stepper.state(i);
    out.insert(out.end(), own.begin(), own.end());
  }
  return out;
}

class Fork : public ::testing::Test {
 private:
  tbb::global_control threads_{tbb::global_control::max_allowed_parallelism, 4};
};

// Workers stay for a while after a step: some are there when the process forks.
TEST_F(Fork, SteppersGoAndGoOnInTheChild) {
  SKIP_UNDER_THREAD_SANITIZER();
  const System system = chain_of_blocks(96, 4);
  for (const ExecutorKind executor :
       {ExecutorKind::async, ExecutorKind::automatic, ExecutorKind::serial}) {
    for (int round = 0; round < 10; ++round) {
      auto stepper = std::make_unique<Stepper>(system, options_with(executor));
      stepper->step(20);
      EXPECT_EQ(in_child([&] {
                  stepper.reset();
                  return true;
                }),
                0)
          << to_string(executor) << ", destroyed, round " << round;
      stepper->step(20);
      Stepper expected(system, options_with(ExecutorKind::serial));
      expected.step(60);
      EXPECT_EQ(in_child([&] {
                  stepper->step(20);
                  const bool same = states_of(*stepper) == states_of(expected);
                  stepper.reset();
                  return same;
                }),
                0)
          << to_string(executor) << ", stepped, round " << round;
      stepper->step(20);
      EXPECT_EQ(states_of(*stepper), states_of(expected));
    }
  }
}

TEST_F(Fork, SteppersWithoutWavesGoInTheChildToo) {
  SKIP_UNDER_THREAD_SANITIZER();
  const System system = chain_of_blocks(96, 4);
  StepperOptions options = options_with(ExecutorKind::async);
  options.method = Splitting{};
  for (int round = 0; round < 10; ++round) {
    auto stepper = std::make_unique<Stepper>(system, options);
    stepper->step(20);
    EXPECT_EQ(in_child([&] {
                stepper->step(5);
                stepper.reset();
                return true;
              }),
              0)
        << round;
  }
}

TEST_F(Fork, WritersOfRowsDoNotWaitForAThreadThatIsNotThere) {
  SKIP_UNDER_THREAD_SANITIZER();
  std::size_t written = 0;
  auto writer =
      std::make_unique<RowWriter>(2, [&](std::span<const double> rows) { written += rows.size(); });
  writer->row(2)[0] = 1.0;
  EXPECT_EQ(in_child([&] {
              bool refused = false;
              try {
                writer->drain();
              } catch (const std::runtime_error&) {
                refused = true;
              }
              writer.reset();
              return refused;
            }),
            0);
  writer->drain();
  EXPECT_EQ(written, 2U);
}

TEST_F(Fork, FilesStayThoseOfTheParent) {
  SKIP_UNDER_THREAD_SANITIZER();
  const TemporaryFolder folder;
  const System system = chain_of_blocks(4, 1);
  Stepper stepper(system, options_with(ExecutorKind::serial));
  auto checkpoints =
      std::make_unique<CheckpointFolder>(folder / "kept", CheckpointFolder::For::a_new_run);
  auto empty =
      std::make_unique<OutputFolder>(folder / "empty", std::initializer_list<const char*>{});
  auto recorder = std::make_unique<FileRecorder>(folder / "out", RecordingOptions{});
  recorder->record_initial(stepper);
  recorder->record(stepper, stepper.step());
  const auto names = names_in(folder / "out");
  EXPECT_EQ(in_child([&] {
              recorder.reset();
              checkpoints.reset();
              empty.reset();
              return true;
            }),
            0);
  EXPECT_EQ(names_in(folder / "out"), names);
  EXPECT_TRUE(std::filesystem::exists(folder / "kept" / "checkpoint"));
  EXPECT_TRUE(std::filesystem::exists(folder / "empty"));
  recorder->record(stepper, stepper.step());
  recorder->finish(summarize("chain", options_with(ExecutorKind::serial), stepper, 0.0, {}));
  EXPECT_TRUE(std::filesystem::exists(folder / "out" / "energy.csv"));
  // Control: the parent takes them away.
  empty.reset();
  checkpoints.reset();
  EXPECT_FALSE(std::filesystem::exists(folder / "empty"));
  EXPECT_FALSE(std::filesystem::exists(folder / "kept" / "checkpoint"));
}

}  // namespace
}  // namespace portwave::test_fork
