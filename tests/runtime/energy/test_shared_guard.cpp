// The guard of islands with many parts works on all threads of an executor, and no bit tells.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>

#include "parallel/executors/executor.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/runtime/generate/generate.hpp"
#include "portwave/runtime/parallel/partition.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/core/step_batch.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"
#include "support/guard_of.hpp"
#include "support/systems/counting_part.hpp"
#include "support/systems/coupled_systems.hpp"
#include "support/systems/networks.hpp"
#include "support/two_threads.hpp"

namespace portwave::test_shared_guard {
namespace {

/// Four threads for oneTBB whatever the machine has.
class FourThreads {
 private:
  tbb::global_control threads_{tbb::global_control::max_allowed_parallelism, 4};
};

struct Network {
  std::string name;
  System system;
  StepperOptions options{.method = WaveCoupling{}};
};

Network generated(const std::string& name, const network::Chain& chain) {
  Scenario scenario = parse_scenario(generate_scenario(chain), "network.json", "");
  return {name, std::move(scenario.system), scenario.options};
}
Network grid() {
  Scenario scenario = parse_scenario(generate_scenario(network::Grid{.rows = 36, .columns = 36}),
                                     "network.json", "");
  return {"grid", std::move(scenario.system), scenario.options};
}
/// Islands of two parts each, all displaced.
Network pairs() {
  SystemBuilder builder;
  for (int i = 0; i < 700; ++i) {
    const auto a = fmt::format("A{}", i), b = fmt::format("B{}", i);
    builder.add(a, testing::line_link(2 * i), {.initial_state = {0.0, 0.5 + 1e-3 * i, 0.02}});
    builder.add(b, testing::line_link(2 * i + 1));
    builder.connect(a + ".right", b + ".left");
    builder.join(joint::Free{}, {a + ".left"});
    builder.join(joint::Fixed{}, {b + ".right"});
  }
  Network out{"pairs", builder.build(), {.method = WaveCoupling{}}};
  out.options.step_s = 0.01;
  out.options.method.waves().impedance = {2.0};
  return out;
}

/// Everything that a run leaves.
struct Left {
  std::vector<double> numbers;
  GuardStatistics guard;
};

Left run(const Network& network, ExecutorKind executor, int threads) {
  StepperOptions options = network.options;
  options.executor = executor;
  options.threads = threads;
  Stepper stepper(network.system, options);
  Left out;
  for (int n = 0; n < 12; ++n) {
    const StepLedger energy = stepper.step().energy;
    for (const double x :
         {energy.alpha, energy.withheld_J, energy.stored_J, energy.tank_J, energy.mismatch_J}) {
      out.numbers.push_back(x);
    }
  }
  for (int part = 0; part < static_cast<int>(network.system.parts().size()); ++part) {
    const auto state = stepper.state(part);
    out.numbers.insert(out.numbers.end(), state.begin(), state.end());
  }
  out.guard = testing::guard_of(stepper);
  return out;
}

void expect_same_on_threads(Network network) {
  const FourThreads available;
  std::int64_t uses = 0;
  for (const int iterations : {0, 1, 3, 8}) {
    network.options.method.waves().iterations = iterations;
    const Left alone = run(network, ExecutorKind::serial, 1);
    uses += alone.guard.uses;
    for (const ExecutorKind executor :
         {ExecutorKind::async, ExecutorKind::graph, ExecutorKind::automatic}) {
      for (const int threads : {2, 4}) {
        const Left shared = run(network, executor, threads);
        EXPECT_EQ(shared.numbers, alone.numbers) << network.name << ", " << to_string(executor)
                                                 << " on " << threads << ", K = " << iterations;
        EXPECT_EQ(shared.guard.uses, alone.guard.uses);
        EXPECT_EQ(shared.guard.trials, alone.guard.trials);
      }
    }
  }
  EXPECT_GT(uses, 0) << "the guard has nothing to do here";
}

TEST(SharedGuard, ChangesNoBitOfAChain) {
  expect_same_on_threads(generated("chain", {.blocks = 1500, .masses = 2}));
}
TEST(SharedGuard, ChangesNoBitOfDifferentParts) {
  expect_same_on_threads(generated("different", {.blocks = 1500, .masses = 2, .vary = 0.3}));
}
TEST(SharedGuard, ChangesNoBitOfNonlinearParts) { expect_same_on_threads(grid()); }
TEST(SharedGuard, ChangesNoBitOfManyIslands) { expect_same_on_threads(pairs()); }

/// Hubs that have more ports than the guard has room for on the stack, one behind another.
TEST(SharedGuard, ChangesNoBitOfPartsWithManyPorts) {
  constexpr int kHubs = 90, kLimbs = 12;
  SystemBuilder builder;
  for (int i = 0; i < kHubs; ++i) {
    const std::string hub = fmt::format("hub{}", i);
    builder.add(hub, testing::sprung_mass({.mass = 5.0,
                                           .stiffness = 10.0,
                                           .up_stiffness = 40.0,
                                           .rigid_ports = kLimbs + 1,
                                           .velocity = 1.0}));
    for (int k = 0; k < kLimbs; ++k) {
      const std::string limb = fmt::format("limb{}_{}", i, k);
      builder.add(limb, testing::sprung_mass(
                            {.mass = 1.0 + 0.1 * k, .stiffness = 5.0, .up_stiffness = 30.0 + i}));
      builder.connect(fmt::format("{}.p{}", hub, k), limb + ".up");
    }
    if (i > 0) builder.connect(fmt::format("hub{}.p{}", i - 1, kLimbs), hub + ".up");
  }
  builder.join(joint::Fixed{}, {"hub0.up"});
  builder.join(joint::Free{}, {fmt::format("hub{}.p{}", kHubs - 1, kLimbs)});
  Network hubs{"hubs", builder.build(), {.method = WaveCoupling{}}};
  ASSERT_EQ(hubs.system.island_count(), 1);
  hubs.options.step_s = 0.02;
  hubs.options.method.waves().impedance = {4.0};
  expect_same_on_threads(std::move(hubs));
}

/// Keeps the ids of the threads that come by while it is open. The first waits a while for others, in all
/// no longer than some time.
class Attendance {
 public:
  void open() { is_open_ = true; }
  void come_by() {
    if (!is_open_) return;
    std::unique_lock lock(mutex_);
    threads_.insert(std::this_thread::get_id());
    if (threads_.size() > 1 || waits_ == 0) return;
    --waits_;
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  std::size_t threads() {
    const std::lock_guard lock(mutex_);
    return threads_.size();
  }

 private:
  std::mutex mutex_;
  std::set<std::thread::id> threads_;
  std::atomic<bool> is_open_ = false;
  int waits_ = 5'000;
};

/// A linear part whose port map is asked for in view of others.
class AttendedPart final : public LinearPortHamiltonian {
 public:
  AttendedPart(const LinearPortHamiltonian& part, Attendance& attendance)
      : LinearPortHamiltonian(part.signature(), part.structure(), part.Q()),
        attendance_(attendance) {}
  std::string batch_key() const override { return "attended"; }
  std::unique_ptr<StepBatch> make_batch(std::span<const Component* const> parts) const override {
    return std::make_unique<Batch>(LinearPortHamiltonian::make_batch(parts), attendance_);
  }

 private:
  class Batch final : public testing::ExactBatch, public AffineMap {
   public:
    Batch(std::unique_ptr<StepBatch> batch, Attendance& attendance)
        : ExactBatch(std::move(batch)), attendance_(attendance) {}
    const AffineMap* affine_map() const override { return this; }
    void affine_matrix(int lane, double* matrix) const override {
      attendance_.come_by();
      passed_on().affine_map()->affine_matrix(lane, matrix);
    }
    void affine_offset(int lane, const double* record, double* offset) const override {
      passed_on().affine_map()->affine_offset(lane, record, offset);
    }

   private:
    Attendance& attendance_;
  };

  Attendance& attendance_;
};

std::size_t threads_that_ask(ExecutorKind executor, int threads) {
  Attendance attendance;
  const Network chain = generated("chain", {.blocks = 1200, .masses = 2});
  SystemBuilder builder;
  std::string before;
  for (const Part& part : chain.system.parts()) {
    const auto& physics = dynamic_cast<const LinearPortHamiltonian&>(*part.port_hamiltonian());
    builder.add(part.name, std::make_shared<AttendedPart>(physics, attendance),
                {.initial_state = {part.initial_state.begin(), part.initial_state.end()}});
    before.empty() ? builder.join(joint::Free{}, {part.name + ".left"})
                   : builder.connect(before + ".right", part.name + ".left");
    before = part.name;
  }
  builder.join(joint::Free{}, {before + ".right"});
  const System system = builder.build();
  StepperOptions options = chain.options;
  options.executor = executor;
  options.threads = threads;
  Stepper stepper(system, options);
  attendance.open();
  for (int n = 0; n < 40 && attendance.threads() < 2; ++n) stepper.step();
  EXPECT_GT(testing::guard_of(stepper).uses, 0);
  return attendance.threads();
}

TEST(SharedGuard, IsSharedWithOtherThreads) {
  const FourThreads available;
  EXPECT_GE(threads_that_ask(ExecutorKind::async, 2), 2U);
}

TEST(SharedGuard, IsNotSharedByTheSerialExecutor) {
  EXPECT_EQ(threads_that_ask(ExecutorKind::serial, 2), 1U);
}

TEST(ExecutorForEach, RunsEveryIndexOnceAndReturnsWhenAllAreDone) {
  const FourThreads available;
  const System system = testing::line(64);
  const WaveDiscretisation waves(system, 0.01,
                                 std::vector<double>(system.scalar_ports().size(), 3.0));
  const LaneCosts costs = declared_costs(waves);
  const Partition cut = make_partition(waves, costs, Grain{}, 4, 5);
  const Partition whole = whole_island_groups(waves, costs);
  const std::unique_ptr<Executor> executors[] = {
      make_serial_executor(waves, whole), make_async_executor(waves, cut, 4),
      make_graph_executor(waves, cut, 4),
      make_automatic_executor(make_serial_executor(waves, whole),
                              make_async_executor(waves, cut, 4))};
  for (int n = 0; n < 300; ++n) {
    for (const auto& executor : executors) {
      const int count = n % 41;
      std::vector<int> runs(static_cast<std::size_t>(count), 0);  // not atomic: one thread each
      executor->for_each()(count, [&](int i) { ++runs[static_cast<std::size_t>(i)]; });
      for (const int own : runs) ASSERT_EQ(own, 1) << executor->threads() << " threads, " << count;
    }
  }
}

TEST(ExecutorForEach, IsHelpedByTheThreadsOfTheAsyncExecutor) {
  const FourThreads available;
  const System system = testing::line(64);
  const WaveDiscretisation waves(system, 0.01,
                                 std::vector<double>(system.scalar_ports().size(), 3.0));
  const auto executor =
      make_async_executor(waves, make_partition(waves, declared_costs(waves), Grain{}, 2, 5), 2);
  EXPECT_TRUE(testing::runs_two_bodies_at_once(executor->for_each()));
  EXPECT_FALSE(testing::runs_two_bodies_at_once(ForEach(), 1)) << "one after another";
}

}  // namespace
}  // namespace portwave::test_shared_guard
