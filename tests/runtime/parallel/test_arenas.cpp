// Many steppers in one process: each with workers of its own, with those of one arena, or within
// oneTBB tasks of whoever steps them.

#include <atomic>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <portwave/runtime/ensemble/ensemble.hpp>
#include <portwave/runtime/parallel/arena.hpp>
#include <portwave/runtime/step/stepper.hpp>

#include "support/systems/systems.hpp"

namespace portwave::test_arenas {
namespace {

using testing::chain_of_blocks;

constexpr int kSteps = 40;

std::vector<double> states_of(const Stepper& stepper) {
  std::vector<double> out;
  for (int i = 0; i < static_cast<int>(stepper.system().parts().size()); ++i) {
    const auto own = stepper.state(i);
    out.insert(out.end(), own.begin(), own.end());
  }
  return out;
}

StepperOptions options_with(ExecutorKind executor, int threads,
                            std::shared_ptr<Arena> arena = nullptr) {
  StepperOptions options;
  options.start = Start::as_given;
  options.step_s = 0.01;
  options.threads = threads;
  options.executor = executor;
  options.arena = std::move(arena);
  options.method = WaveCoupling::automatic(1e-9);
  options.method.waves().kind = WaveUpdate::douglas_rachford;
  options.method.waves().iterations = 12;
  return options;
}

struct Shared {
  System system = chain_of_blocks(96, 4);
  std::vector<double> expected;
  Shared() {
    Stepper serial(system, options_with(ExecutorKind::serial, 1));
    serial.step(kSteps);
    expected = states_of(serial);
  }
};

const Shared& shared() {
  static const Shared once;
  return once;
}

/// How many of some steppers, each stepped by a oneTBB task of the caller's, end where a serial one
/// does.
int right_within_tasks(int count, ExecutorKind executor,
                       const std::function<std::shared_ptr<Arena>()>& arena) {
  std::atomic<int> right{0};
  tbb::parallel_for(0, count, [&](int) {
    Stepper stepper(shared().system, options_with(executor, 3, arena()));
    stepper.step(kSteps);
    if (states_of(stepper) == shared().expected) ++right;
  });
  return right;
}

TEST(Arenas, SteppersWorkWithinTheCallersTasks) {
  const auto own = [] { return std::shared_ptr<Arena>(); };
  for (const ExecutorKind kind :
       {ExecutorKind::async, ExecutorKind::automatic, ExecutorKind::graph}) {
    EXPECT_EQ(right_within_tasks(8, kind, own), 8) << to_string(kind);
  }
}

TEST(Arenas, SteppersShareOneArena) {
  const auto one = std::make_shared<Arena>(2);
  EXPECT_EQ(one->threads(), 2);
  EXPECT_EQ(right_within_tasks(8, ExecutorKind::async, [&] { return one; }), 8);
}

TEST(Arenas, SteppersHelpThemselvesFromTheCallersArena) {
  EXPECT_EQ(right_within_tasks(8, ExecutorKind::async, &Arena::current), 8);
}

TEST(Arenas, AnArenaWithoutWorkersIsEnough) {
  tbb::task_arena alone(1);
  alone.execute([&] {
    EXPECT_EQ(Arena::current()->threads(), 1);
    EXPECT_EQ(right_within_tasks(3, ExecutorKind::async, &Arena::current), 3);
  });
  const auto one = std::make_shared<Arena>(1);
  EXPECT_EQ(right_within_tasks(3, ExecutorKind::async, [&] { return one; }), 3);
}

TEST(Arenas, ThreadsOfAnyKindMayStepAtTheSameTime) {
  const auto one = std::make_shared<Arena>(3);
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      Stepper stepper(shared().system, options_with(ExecutorKind::async, 3, one));
      stepper.step(kSteps);
      if (states_of(stepper) == shared().expected) ++right;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 6);
}

TEST(Arenas, AnArenaOutlivesItsOwnerAndItsSteppers) {
  auto one = std::make_shared<Arena>(3);
  auto stepper =
      std::make_unique<Stepper>(shared().system, options_with(ExecutorKind::async, 3, one));
  one.reset();
  stepper->step(kSteps);
  EXPECT_EQ(states_of(*stepper), shared().expected);
  one = std::make_shared<Arena>(3);
  for (int i = 0; i < 50; ++i) {  // calls of those that are gone may come late
    Stepper brief(shared().system, options_with(ExecutorKind::async, 3, one));
    brief.step();
  }
}

TEST(Arenas, EnsemblesShareThemToo) {
  const auto one = std::make_shared<Arena>(2);
  StepperOptions options = options_with(ExecutorKind::serial, 1);
  Ensemble ensemble(shared().system, 5, options, {.threads = 2, .arena = one, .chunk = 2});
  ensemble.step(kSteps);
  std::vector<double> state(static_cast<std::size_t>(ensemble.state_size()));
  for (int i = 0; i < 5; ++i) {
    ensemble.get_state(i, state);
    EXPECT_EQ(state, shared().expected) << i;
  }
}

/// Threads of this process.
int thread_count() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Threads:")) return std::stoi(line.substr(8));
  }
  return -1;
}

TEST(Arenas, ManySteppersBringNoMoreThreadsThanTheMachineHas) {
  if (thread_count() < 0) GTEST_SKIP() << "nothing here counts threads";
  std::vector<std::unique_ptr<Stepper>> steppers;
  int most = 0;
  for (int i = 0; i < 12; ++i) {
    steppers.push_back(
        std::make_unique<Stepper>(shared().system, options_with(ExecutorKind::async, 16)));
  }
  for (int n = 0; n < 10; ++n) {
    for (auto& stepper : steppers) {
      stepper->step();
      most = std::max(most, thread_count());
    }
  }
  // oneTBB's own, of which there is one per processor, and this one; other tests may have left some.
  EXPECT_LE(most, 2 * tbb::info::default_concurrency() + 1);
}

TEST(Arenas, RefuseNumbersOfThreadsThatMakeNoSense) {
  for (const int threads : {0, -1, kMaxThreads + 1}) {
    EXPECT_THROW(Arena{threads}, std::invalid_argument) << threads;
  }
}

}  // namespace
}  // namespace portwave::test_arenas
