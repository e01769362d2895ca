// The ways of running the blocks of a network on threads: each index once, and all of them done.

#include <atomic>
#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>

#include "parallel/threads/faster_of_two.hpp"
#include "parallel/threads/parallel_for_each.hpp"
#include "support/two_threads.hpp"

namespace portwave::test_for_each {
namespace {

struct Way {
  std::string name;
  std::unique_ptr<ForEach> (*make)(int threads);
};

void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

class ForEachLaw : public ::testing::TestWithParam<Way> {
 private:
  tbb::global_control threads_{tbb::global_control::max_allowed_parallelism, 8};
};

TEST_P(ForEachLaw, RunsEveryIndexOnceAndReturnsWhenAllAreDone) {
  for (const int threads : {1, 2, 3, 8}) {
    const std::unique_ptr<ForEach> each = GetParam().make(threads);
    for (const int count : {0, 1, 2, 3, 7, 64, 1000, 7, 0, 3}) {
      std::vector<int> runs(static_cast<std::size_t>(count), 0);  // not atomic: one thread each
      (*each)(count, [&](int i) { ++runs[static_cast<std::size_t>(i)]; });
      for (const int n : runs) ASSERT_EQ(n, 1) << threads << " threads, " << count;
    }
  }
}

// Jobs so short that workers are still looking at the one before.
TEST_P(ForEachLaw, ManyShortJobsOneAfterAnother) {
  const std::unique_ptr<ForEach> each = GetParam().make(4);
  std::vector<double> x(37, 1.0), next(37);
  for (int n = 0; n < 3000; ++n) {
    const int count = 1 + n % 37;
    const auto step = [&](int i) {
      const auto k = static_cast<std::size_t>(i);
      next[k] = x[k] + x[(k + 1) % static_cast<std::size_t>(count)];
    };
    (*each)(count, step);
    for (std::size_t k = 0; k < static_cast<std::size_t>(count); ++k) {
      ASSERT_EQ(next[k], x[k] + x[(k + 1) % static_cast<std::size_t>(count)]) << n << " " << k;
    }
    for (std::size_t k = 0; k < static_cast<std::size_t>(count); ++k) {
      x[k] = std::fmod(next[k], 1000.0) + 1e-3 * static_cast<double>(k);
    }
  }
}

// Workers leave when there is nothing to do, and come again.
TEST_P(ForEachLaw, JobsWithPausesBetweenThem) {
  const std::unique_ptr<ForEach> each = GetParam().make(3);
  for (int n = 0; n < 20; ++n) {
    std::atomic<int> sum = 0;
    (*each)(100, [&](int i) { sum += i; });
    ASSERT_EQ(sum, 4950);
    std::this_thread::sleep_for(std::chrono::microseconds(700));
  }
}

TEST_P(ForEachLaw, SomebodyElseHelpsWithLongBodies) {
  const std::unique_ptr<ForEach> each = GetParam().make(2);
  EXPECT_TRUE(testing::runs_two_bodies_at_once(*each));
}

INSTANTIATE_TEST_SUITE_P(Threads, ForEachLaw,
                         ::testing::Values(Way{"team", make_team_for_each},
                                           Way{"graph", make_graph_for_each}),
                         [](const auto& each) { return each.param.name; });

/// Eight threads for oneTBB whatever the machine has.
class EightThreads {
 private:
  tbb::global_control control_{tbb::global_control::max_allowed_parallelism, 8};
};

TEST(BlockRunner, SaysWhyItIsSerial) {
  const EightThreads allowed;
  const auto said = [](int threads, ExecutorKind executor, int tasks, double cost_ns) {
    return make_block_runner(executor, threads, nullptr, tasks, cost_ns).description;
  };
  EXPECT_EQ(said(1, ExecutorKind::automatic, 9, 1e6), "serial");
  EXPECT_EQ(said(4, ExecutorKind::serial, 9, 1e6), "serial");
  EXPECT_EQ(said(4, ExecutorKind::automatic, 1, 1e6), "serial (one task: nothing to share)");
  EXPECT_EQ(said(4, ExecutorKind::automatic, 9, 2500.0),
            "serial (what 4 threads could share of a step takes about 2.5 us, which is too short)");
  EXPECT_EQ(said(4, ExecutorKind::automatic, 9, 9000.0),
            "serial or async, whichever is faster, 9 tasks");
  EXPECT_EQ(said(4, ExecutorKind::async, 9, 1.0), "async, 9 tasks");
  EXPECT_EQ(said(2, ExecutorKind::graph, 1, 1.0), "graph, 1 task");
  EXPECT_EQ(said(2, ExecutorKind::graph, 3, 1.0), "graph, 3 tasks");
}

TEST(FasterOfTwo, SettlesOnTheFaster) {
  for (const int faster : {FasterOfTwo::kSerial, FasterOfTwo::kParallel}) {
    FasterOfTwo choice;
    double total_s = 0.0, with_faster_s = 0.0;
    for (int n = 0; n < 200000; ++n) {
      const bool is_faster = choice.used() == faster;
      const double took_s = is_faster ? 10e-6 : 20e-6;
      total_s += took_s;
      with_faster_s += is_faster ? took_s : 0.0;
      choice.add(took_s, 1.0);
    }
    EXPECT_GT(with_faster_s, 0.95 * total_s) << faster;
    EXPECT_LT(with_faster_s, total_s) << "the other is tried now and then";
  }
}

TEST(FasterOfTwo, DoesNotSpendLongStepsOnTrials) {
  FasterOfTwo choice;
  double total_s = 0.0, least_s = 0.0;
  for (int n = 0; n < 200; ++n) {
    const double took_s = choice.used() == FasterOfTwo::kParallel ? 33e-3 : 65e-3;
    total_s += took_s;
    least_s += 33e-3;
    choice.add(took_s, 1.0);
  }
  EXPECT_LT(total_s, 1.07 * least_s);
}

}  // namespace
}  // namespace portwave::test_for_each
