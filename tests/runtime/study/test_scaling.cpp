#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/runtime/generate/generate.hpp>
#include <portwave/runtime/study/scaling.hpp>

#include "study/scaling_model.hpp"
#include "support/systems/oscillator_pair.hpp"

namespace portwave::test_scaling {
namespace {

/// Tasks in a line, each with its neighbours left and right.
StepModel chain(int tasks, int iterations, double iterate_ns = 1.0, double commit_ns = 1.0) {
  StepModel model;
  model.iterations = iterations;
  model.iterate_ns.assign(static_cast<std::size_t>(tasks), iterate_ns);
  model.commit_ns.assign(static_cast<std::size_t>(tasks), commit_ns);
  model.neighbours.resize(static_cast<std::size_t>(tasks));
  for (int t = 0; t + 1 < tasks; ++t) {
    model.neighbours[static_cast<std::size_t>(t)].push_back(t + 1);
    model.neighbours[static_cast<std::size_t>(t + 1)].push_back(t);
  }
  return model;
}

TEST(Makespan, OfOneWorkerIsTheWork) {
  for (const int iterations : {0, 1, 7}) {
    StepModel model = chain(5, iterations, 2.0, 3.0);
    EXPECT_EQ(work_ns(model), 5 * (iterations * 2.0 + 3.0));
    EXPECT_EQ(makespan_ns(model, 1), work_ns(model)) << iterations;
    model.waits_with = {0, 0, 0, 0, 0};
    EXPECT_EQ(makespan_ns(model, 1), work_ns(model)) << iterations << " waiting";
  }
}

TEST(Makespan, OfEnoughWorkersIsOneTasksWork) {
  for (const int workers : {5, 8, 1000}) {
    EXPECT_EQ(makespan_ns(chain(5, 7, 2.0, 3.0), workers), 7 * 2.0 + 3.0) << workers;
  }
}

TEST(Makespan, OfAChainIsAsByHand) {
  // Four equal tasks on two cores never wait: 2 · (3 + 1).
  EXPECT_EQ(makespan_ns(chain(4, 3), 2), 8.0);
  // Three on two, one iteration: {0,1} then {2, -}: 0's commit may begin at 1, as 1 is done.
  // [0,1): 0,1   [1,2): 2, commit 0   [2,3): commit 1, 2.
  EXPECT_EQ(makespan_ns(chain(3, 1), 2), 3.0);
  // The same, waiting for all: the second core idles in [1,2).
  StepModel waiting = chain(3, 1);
  waiting.waits_with = {0, 0, 0};
  EXPECT_EQ(makespan_ns(waiting, 2), 4.0);
}

TEST(Makespan, AHeavyTaskHoldsUpItsNeighboursOnly) {
  // Control: doubling one task's cost is seen.
  StepModel model = chain(5, 10);
  const double before = makespan_ns(model, 5);
  EXPECT_EQ(before, 11.0);
  model.iterate_ns[2] = 2.0;
  EXPECT_EQ(makespan_ns(model, 5), 21.0);
  EXPECT_EQ(makespan_ns(model, 1), 5 * 11.0 + 10.0);
  // Distance delays it: a task d away starts iteration k by its own pace until k > d.
  model.iterations = 1;
  EXPECT_EQ(makespan_ns(model, 5), 3.0);
}

TEST(Makespan, LiesBetweenItsBounds) {
  StepModel model = chain(24, 6);
  for (std::size_t t = 0; t < 24; ++t) {
    model.iterate_ns[t] = 1.0 + static_cast<double>((7 * t) % 5);
    model.commit_ns[t] = 2.0 + static_cast<double>((5 * t) % 3);
  }
  const double work = work_ns(model);
  double longest = 0.0;
  for (std::size_t t = 0; t < 24; ++t) {
    longest = std::max(longest, 6 * model.iterate_ns[t] + model.commit_ns[t]);
  }
  for (int workers = 1; workers <= 32; ++workers) {
    const double makespan = makespan_ns(model, workers);
    EXPECT_GE(makespan, work / workers * (1.0 - 1e-12)) << workers;
    EXPECT_GE(makespan, longest) << workers;
    EXPECT_LE(makespan, work) << workers;
    EXPECT_EQ(makespan, makespan_ns(model, workers)) << "not deterministic";
    StepModel waiting = model;
    waiting.waits_with.assign(24, 0);
    EXPECT_LE(makespan_ns(waiting, workers), work) << workers;
  }
}

TEST(Makespan, IndependentTasksDoNotPayForMessages) {
  StepModel model = chain(2, 4);
  model.phase_ns = 0.5;
  EXPECT_EQ(makespan_ns(model, 2), 5 * 1.5);
  model.neighbours = {{}, {}};
  EXPECT_EQ(makespan_ns(model, 2), 5.0);
}

TEST(Makespan, MessagesTakeTimeBetweenCoresOnly) {
  StepModel model = chain(4, 3);
  model.message_ns.assign(4, 0.25);
  EXPECT_EQ(makespan_ns(model, 1), work_ns(model));
  // Tasks 0 and 1 on one core, 2 and 3 on the other: in each of four phases 1 reads the message of 2, and 2
  // that of 1.
  EXPECT_EQ(makespan_ns(model, 2), 8.0 + 4 * 0.25);
  // A core for each: those in the middle have two neighbours.
  EXPECT_EQ(makespan_ns(model, 4), 4.0 + 4 * 0.5);
  model.message_ns = {0.0, 0.0, 10.0, 0.0};  // of task 2, to 1 and 3
  EXPECT_EQ(makespan_ns(model, 4), 4.0 + 4 * 10.0);
}

TEST(Makespan, WithAShareOfOneThreadAgreesWithSixteenCores) {
  // A chain of 20 000 blocks, 20 evaluations, on a Xeon (docs/performance.md): with 11 % of the step on one
  // thread every measured speed-up is met, and with none, a control, that of 16 threads is not.
  const double measured[][2] = {{2, 1.8}, {4, 3.0}, {8, 4.4}, {16, 6.1}};
  const double step_ns = 8e5;
  for (const double share : {0.11, 0.0}) {
    double furthest = 0.0;
    for (const auto& [threads, speed_up] : measured) {
      const int tasks = 2 * static_cast<int>(threads);
      const double of_task_ns = (1.0 - share) * step_ns / tasks / 21.0;
      const double time_ns = share * step_ns + makespan_ns(chain(tasks, 20, of_task_ns, of_task_ns),
                                                           static_cast<int>(threads));
      furthest = std::max(furthest, std::abs(step_ns / time_ns / speed_up - 1.0));
    }
    EXPECT_EQ(furthest<0.2, share> 0.0) << furthest;
  }
}

TEST(Makespan, RefusesNeighboursThatAreNotMutual) {
  StepModel model = chain(2, 2);
  model.neighbours = {{1}, {}};
  EXPECT_THROW(makespan_ns(model, 2), std::invalid_argument);
}

TEST(Makespan, GroupsWaitForTheirOwnOnly) {
  StepModel model = chain(4, 2);
  model.neighbours = {{1}, {0}, {3}, {2}};
  model.iterate_ns = {1.0, 5.0, 1.0, 1.0};
  model.waits_with = {0, 0, 1, 1};
  EXPECT_EQ(makespan_ns(model, 4), 11.0);
  model.iterate_ns[1] = 1.0;
  EXPECT_EQ(makespan_ns(model, 4), 3.0);
}

TEST(Imbalance, IsTheLargestShareOverTheMean) {
  StepModel model = chain(4, 1);
  EXPECT_EQ(imbalance(model, 1), 1.0);
  EXPECT_EQ(imbalance(model, 2), 1.0);
  EXPECT_EQ(imbalance(model, 8), 2.0);  // four of eight have nothing
  model.iterate_ns[0] = 5.0;            // 6 + 2 against 2 + 2
  EXPECT_EQ(imbalance(model, 2), 8.0 / 6.0);
  model.iterate_ns.assign(4, 0.0);
  model.commit_ns.assign(4, 0.0);
  EXPECT_EQ(imbalance(model, 2), 1.0);
}

Scenario generated(const Network& network) {
  return parse_scenario(generate_scenario(network), "generated", ".");
}

ScalingOptions quick(ExecutorKind executor) {
  ScalingOptions options;
  options.repetitions = 2;
  options.steps = 2;
  options.cores = 2;
  options.executors = {executor};
  return options;
}

void expect_consistent(const ScalingStudy& study) {
  for (const std::vector<ScalingRow>* rows : {&study.rows, &study.curve}) {
    for (const ScalingRow& row : *rows) {
      EXPECT_GT(row.step_s, 0.0) << row.threads;
      EXPECT_GT(row.predicted_step_s, 0.0) << row.threads;
      EXPECT_NEAR(row.efficiency * row.threads, row.speed_up, 1e-9 * row.speed_up);
      EXPECT_GE(row.imbalance, 1.0 - 1e-12);
      EXPECT_GE(row.tasks, 1);
      EXPECT_EQ(row.phases.has_value(), !row.predicted);
      EXPECT_EQ(row.spread.has_value(), !row.predicted);
      EXPECT_EQ(row.predicted, row.execution.starts_with("predicted")) << row.execution;
      if (row.predicted) {
        EXPECT_EQ(row.predicted_step_s, row.step_s);
        continue;
      }
      EXPECT_LE(*row.fastest_s, row.step_s);
      EXPECT_LE(row.step_s, *row.slowest_s);
    }
  }
  ASSERT_EQ(study.curve.size(), 32u);
  for (int i = 0; i < 32; ++i) {
    const ScalingRow& row = study.curve[static_cast<std::size_t>(i)];
    EXPECT_EQ(row.threads, i + 1);
    EXPECT_TRUE(row.predicted);
  }
}

TEST(StrongScaling, MeasuresWhatTheMachineHasAndPredictsTheRest) {
  const Scenario scenario = generated(network::Chain{.blocks = 64});
  for (const ExecutorKind executor :
       {ExecutorKind::automatic, ExecutorKind::async, ExecutorKind::serial, ExecutorKind::graph}) {
    ScalingOptions options = quick(executor);
    options.threads = {4, 2};
    options.grain = Grain::of_parts(8);
    const ScalingStudy study = study_strong_scaling(scenario, options);
    ASSERT_EQ(study.rows.size(), 3u);
    EXPECT_FALSE(study.weak);
    EXPECT_EQ(study.steps, 2);
    EXPECT_EQ(study.cores, 2);
    const int threads[] = {1, 2, 4};
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(study.rows[i].threads, threads[i]);
      EXPECT_EQ(study.rows[i].predicted, threads[i] > 2);
      EXPECT_EQ(study.rows[i].size, 64);
    }
    expect_consistent(study);
    // Tasks on one thread cost more than none, which the other two do without.
    const bool is_plain = executor == ExecutorKind::automatic || executor == ExecutorKind::serial;
    if (is_plain) {
      EXPECT_EQ(study.curve.front().step_s, study.models[0].serial_step_s);
    }
    if (executor == ExecutorKind::serial) {
      EXPECT_EQ(study.rows[1].fell_back, true);
      EXPECT_EQ(study.rows[2].fell_back, true);
      EXPECT_EQ(study.rows[2].step_s, study.models[0].serial_step_s);
    } else if (executor != ExecutorKind::automatic) {
      EXPECT_EQ(study.rows[1].fell_back, false);
      EXPECT_EQ(study.rows[1].tasks, 8);
      EXPECT_EQ(study.rows[2].tasks, 8);
    }
  }
}

TEST(StrongScaling, SaysWhenOneTaskIsAllThereIs) {
  Scenario scenario = testing::pair_scenario();
  ScalingOptions options = quick(ExecutorKind::automatic);
  options.grain = Grain::of_parts(100);
  const ScalingStudy study = study_strong_scaling(scenario, options);
  expect_consistent(study);
  EXPECT_EQ(study.rows[1].fell_back, true) << study.rows[1].execution;
  for (const ScalingRow& row : study.curve) EXPECT_EQ(row.fell_back, row.threads > 1);
}

TEST(StrongScaling, CountsIterationsThatATolerancesStops) {
  Scenario scenario = generated(network::Chain{.blocks = 16});
  scenario.options.method.waves().tolerance = 0.5;
  const ScalingStudy study = study_strong_scaling(scenario, quick(ExecutorKind::async));
  expect_consistent(study);
  EXPECT_LT(study.models[0].iterations, 20.0);
}

TEST(WeakScaling, PairsSizesWithThreads) {
  std::vector<SizedScenario> scenarios;
  for (const int threads : {1, 2, 4}) {
    scenarios.push_back({generated(network::Chain{.blocks = 16 * threads}), threads});
  }
  const ScalingStudy study = study_weak_scaling(scenarios, quick(ExecutorKind::async));
  EXPECT_TRUE(study.weak);
  ASSERT_EQ(study.rows.size(), 3u);
  ASSERT_EQ(study.models.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(study.rows[i].size, 16 * scenarios[i].threads);
    EXPECT_EQ(study.models[i].size, 16 * scenarios[i].threads);
    EXPECT_EQ(study.rows[i].predicted, scenarios[i].threads > 2);
  }
  EXPECT_EQ(study.rows[0].efficiency, 1.0);
  expect_consistent(study);
}

TEST(StrongScaling, SharesOfAStepAddUpToIt) {
  for (const int blocks :
       {64, 2000}) {  // with a guard that acts; from 1024 parts on its loops are shared
    ScalingOptions options = quick(ExecutorKind::async);
    options.steps = 10;
    const ScalingStudy study =
        study_strong_scaling(generated(network::Chain{.blocks = blocks}), options);
    const ScalingModel& model = study.models.front();
    EXPECT_NEAR(model.one_thread_s + model.shared_s + model.iterate_s + model.commit_s,
                model.serial_step_s, 1e-9 * model.serial_step_s);
    EXPECT_GT(model.iterate_s, 0.0);
    EXPECT_GT(model.commit_s, 0.0);
    EXPECT_GT(model.recommits, 0.0);
    // What tasks and loops do is not counted as one thread's.
    EXPECT_LT(model.one_thread_s, 0.9 * model.serial_step_s);
    EXPECT_EQ(model.shared_loops > 0.0, blocks > 1024) << blocks;
    EXPECT_EQ(model.shared_s > 0.0, blocks > 1024) << blocks;
  }
}

TEST(StrongScaling, SolvesOfInterfaceEquationsAreNoWorkOfTasks) {
  // Between tasks that are cut one thread solves. A task that is alone would have solves and commits in its iteration.
  Scenario scenario = generated(network::Grid{.rows = 8, .columns = 8});
  scenario.options.method = WaveCoupling::automatic(1e-10);
  scenario.options.method.waves().kind = WaveUpdate::interface;
  ScalingOptions options = quick(ExecutorKind::async);
  options.steps = 20;
  const ScalingModel model = study_strong_scaling(scenario, options).models.front();
  EXPECT_GT(model.commit_s, 0.0);
  EXPECT_GT(model.one_thread_s, 0.0);
  EXPECT_LT(model.iterate_s, model.serial_phases.iterate_s);
}

TEST(Predictions, LearnWhatTwoCoresCostOneAnother) {
  const Scenario scenario = generated(network::Chain{.blocks = 64});
  // Two tasks; what each of them costs was measured, so that they need not be equal.
  ScalingOptions options;
  options.grain = Grain::of_parts(32);
  const NetworkCosts costs(scenario, options.grain);
  ScalingModel model;
  model.size = 64;
  model.executor = ExecutorKind::async;
  model.iterations = 20.0;
  model.serial_step_s = 100e-6;
  model.serial_phases = {1e-6, 60e-6, 39e-6};
  model.iterate_s = 60e-6;
  model.commit_s = 30e-6;
  model.one_thread_s = 10e-6;
  model.message_ns = 100.0;
  model.line_ns = 10.0;
  const auto step_us = [](const ScalingPredictor& own, int threads) {
    return 1e6 * own.predict(threads).step_s;
  };
  ScalingPredictor own(costs, options, model);
  const double before = step_us(own, 2), alone = step_us(own, 1), four = step_us(own, 4);
  EXPECT_GE(before, 10.0 + 45.0);
  EXPECT_LE(before, 110.0);
  own.learn({1e-6, 90e-6, 49e-6}, false);
  EXPECT_NEAR(step_us(own, 2), 140.0, 0.1);
  EXPECT_EQ(step_us(own, 1), alone);
  // Beyond: each border costs as much.
  const ScalingModel learnt = own.model();
  EXPECT_GT(learnt.message_ns, 3.0 * model.message_ns);
  EXPECT_NEAR(learnt.message_ns / learnt.line_ns, 10.0, 1e-9);
  EXPECT_GT(learnt.lines, 0.0);
  EXPECT_GT(step_us(own, 4), four + 20.0);
  // What is faster than the simulation says is no message that takes less than no time.
  own.learn({0.0, 1e-6, 1e-6}, false);
  EXPECT_GE(own.model().message_ns, 0.0);
  EXPECT_EQ(own.model().lines, 0.0);
  EXPECT_LE(step_us(own, 2), before);
  EXPECT_GE(step_us(own, 2), 50.0);
}

TEST(StrongScaling, HasARowForEverySizeExecutorAndThreadCount) {
  std::vector<Scenario> scenarios;
  for (const int blocks : {8, 16}) scenarios.push_back(generated(network::Chain{.blocks = blocks}));
  ScalingOptions options = quick(ExecutorKind::serial);
  options.executors = {ExecutorKind::serial, ExecutorKind::async, ExecutorKind::graph};
  options.threads = {1, 2};
  const ScalingStudy study = study_strong_scaling(scenarios, options);
  ASSERT_EQ(study.rows.size(), 2u * 3u * 2u);
  ASSERT_EQ(study.models.size(), 6u);
  EXPECT_EQ(study.curve.size(), 6u * 32u);
  std::size_t i = 0;
  for (const int size : {8, 16}) {
    for (const ExecutorKind executor : options.executors) {
      for (const int threads : {1, 2}) {
        const ScalingRow& row = study.rows[i++];
        EXPECT_EQ(row.size, size);
        EXPECT_EQ(row.executor, executor);
        EXPECT_EQ(row.threads, threads);
        EXPECT_EQ(row.weak_efficiency.has_value(), threads == 1 || size == 16);
        if (threads == 1) {
          EXPECT_EQ(row.weak_efficiency, 1.0);
        }
      }
    }
  }
  EXPECT_DOUBLE_EQ(*study.rows[9].weak_efficiency, study.rows[2].step_s / study.rows[9].step_s);
}

TEST(Rooflines, CountWhatTheKernelDoes) {
  // Equal blocks share their matrix; other ones have each their own.
  for (const double vary : {0.0, 0.2}) {
    const ScalingStudy study = study_strong_scaling(
        generated(network::Chain{.blocks = 64, .vary = vary}), quick(ExecutorKind::serial));
    ASSERT_FALSE(study.kernels.empty());
    // Blocks at the ends have one port that leads somewhere.
    const auto inner = std::ranges::find(study.kernels, 2, &KernelRoof::ports);
    ASSERT_NE(inner, study.kernels.end());
    const KernelRoof& kernel = *inner;
    EXPECT_EQ(kernel.flop, 12.0);
    EXPECT_EQ(kernel.bytes, vary == 0.0 ? 48.0 : 96.0);
    EXPECT_GT(kernel.solve_s, 0.0);
    const double peak = study.peak_flop_per_s;
    EXPECT_EQ(kernel.roof(peak), std::min(peak, kernel.intensity() * kernel.stream_B_per_s));
    EXPECT_FALSE(kernel.is_memory_bound(0.0));
    EXPECT_TRUE(kernel.is_memory_bound(1e30));
  }
}

TEST(ScalingErrors, AreToldAtOnce) {
  ScalingOptions options;
  options.executors.clear();
  options.threads = {0};
  options.repetitions = 0;
  options.steps = -1;
  try {
    study_strong_scaling(testing::pair_scenario(), options);
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.issues().size(), 4u);
  }
  EXPECT_THROW(study_weak_scaling({}, {}), ConfigError);
}

}  // namespace
}  // namespace portwave::test_scaling
