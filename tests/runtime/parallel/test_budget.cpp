// The deadline scheduler, with a clock of its own: time is what the tests say it is.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/runtime/parallel/budget.hpp"

namespace portwave::test_budget {
namespace {

using Time = DeadlineScheduler::Time;
using Clock = DeadlineScheduler::Clock;

Time at(double us) {
  return Time(
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::micro>(us)));
}

/// A step from 0 that has made its iterations at `inner_us`.
void finish(DeadlineScheduler& scheduler, int iterations, double inner_us, double commit_us) {
  scheduler.finish(
      {.iterations = iterations, .inner_end = at(inner_us), .end = at(inner_us + commit_us)});
}

/// Lives through `steps` steps of `iterations` iterations of `iteration_us`, and a commit.
void live(DeadlineScheduler& scheduler, int steps, int iterations, double iteration_us,
          double commit_us) {
  for (int n = 0; n < steps; ++n) {
    scheduler.begin(at(0));
    finish(scheduler, iterations, iterations * iteration_us, commit_us);
  }
}

TEST(DeadlineScheduler, FillsTheTimeAndLeavesRoomForTheCommit) {
  DeadlineScheduler scheduler(100e-6, 1e-6, 10e-6);
  live(scheduler, 200, 20, 2.0, 30.0);
  EXPECT_NEAR(scheduler.iteration_s(), 2e-6, 2e-8);
  EXPECT_NEAR(scheduler.commit_s(), 30e-6, 3e-7);
  scheduler.begin(at(0));
  int done = 0, polls = 0;
  for (;;) {
    const int next = scheduler.horizon(done, 100000, at(done * 2.0));
    if (next == done) break;
    ASSERT_GT(next, done);
    done = next;
    ++polls;
  }
  EXPECT_LE(done * 2.0 + 30.0, 100.0) << "the commit is late";
  EXPECT_GE(done * 2.0 + 30.0, 75.0) << "time was given away";
  EXPECT_LE(polls, 8) << "the clock is read for every few iterations only";
}

TEST(DeadlineScheduler, WithNoTimeDoesNoIteration) {
  DeadlineScheduler scheduler(20e-6, 2e-6, 30e-6);
  scheduler.begin(at(0));
  EXPECT_EQ(scheduler.horizon(0, 100, at(0)), 0);
  scheduler.set_deadline(1e-3);
  EXPECT_GT(scheduler.horizon(0, 100, at(0)), 0);
  EXPECT_EQ(scheduler.horizon(100, 100, at(200)), 100) << "the budget is used up";
  EXPECT_LE(scheduler.horizon(0, 3, at(0)), 3) << "more than the budget";
  // One fits before the commit, and another does not.
  DeadlineScheduler one(34e-6, 2e-6, 30e-6);
  one.begin(at(0));
  EXPECT_EQ(one.horizon(0, 100, at(0)), 1);
  EXPECT_EQ(one.horizon(1, 100, at(2)), 1) << "it would be late";
  one.set_deadline(60e-6);
  EXPECT_GT(one.horizon(1, 100, at(2)), 1) << "control: it would not";
}

/// Steps of which the first evaluation takes 20 µs and each other one 8, before a commit of 30. Returns how many were
/// made in the last one.
int filled_from_cold(DeadlineScheduler& scheduler, int steps, double* end_us) {
  int done = 0;
  for (int n = 0; n < steps; ++n) {
    scheduler.begin(at(0));
    done = 0;
    double us = 0.0;
    for (int next; (next = scheduler.horizon(done, 1000, at(us))) > done; done = next) {
      us += (next - done) * 8.0 + (done == 0 ? 12.0 : 0.0);
    }
    *end_us = us + 30.0;
    finish(scheduler, done, us, 30.0);
  }
  return done;
}

TEST(DeadlineScheduler, TheFirstEvaluationOfAStepIsWorkOfItsOwn) {
  double end_us = 0.0;
  for (const double deadline_us : {62.0, 70.0, 78.0}) {
    DeadlineScheduler scheduler(1e-6 * deadline_us, 12e-6, 30e-6);
    const int fits = static_cast<int>((deadline_us - 30.0 - 20.0) / 8.0) + 1;
    EXPECT_EQ(filled_from_cold(scheduler, 200, &end_us), fits) << deadline_us;
    EXPECT_LE(end_us, deadline_us);
    EXPECT_NEAR(scheduler.iteration_s(), 8e-6, 2e-7);
    EXPECT_NEAR(scheduler.first_iteration_s(), 20e-6, 5e-7);
  }
}

/// Steps of up to one iteration that takes `iteration_us`; returns in how many there was one.
int tried(DeadlineScheduler& scheduler, int steps, double iteration_us) {
  int tried = 0;
  for (int n = 0; n < steps; ++n) {
    scheduler.begin(at(0));
    const int done = std::min(scheduler.horizon(0, 100, at(0)), 1);
    tried += done;
    finish(scheduler, done, done * iteration_us, 30.0);
  }
  return tried;
}

TEST(DeadlineScheduler, FindsOutThatIterationsFitAfterAll) {
  DeadlineScheduler wrong_guess(1e-3, 10e-3, 30e-6);
  EXPECT_EQ(tried(wrong_guess, 8, 50.0), 0);
  EXPECT_EQ(tried(wrong_guess, 100, 50.0), 100);
  EXPECT_NEAR(wrong_guess.iteration_s(), 50e-6, 1e-12);
  // Slow ones at the start, as where something is set up in them.
  DeadlineScheduler slow_start(1e-3, 1e-6, 30e-6);
  live(slow_start, 100, 1, 2000.0, 30.0);
  EXPECT_GE(tried(slow_start, 1000, 50.0), 990);
  // Control: what never fits is tried ever more rarely.
  DeadlineScheduler too_slow(1e-3, 1e-6, 30e-6);
  live(too_slow, 100, 1, 2000.0, 30.0);
  EXPECT_LE(tried(too_slow, 10'000, 2000.0), 16);
}

// The first commit finds nothing in the caches, and after 1, 2, 4, … steps the run is examined. Neither is what
// later commits take: were it kept for them, steps would have no time for iterations.
TEST(DeadlineScheduler, ColdStartsAndExaminationsAreNotTakenForCommits) {
  DeadlineScheduler scheduler(400e-6, 20e-6, 30e-6), control(400e-6, 20e-6, 30e-6);
  finish(scheduler, 3, 60.0, 600.0);
  finish(control, 3, 60.0, 600.0);
  EXPECT_LT(scheduler.commit_s(), 33e-6);
  for (int n = 0; n < 40; ++n) {
    scheduler.begin(at(0));
    control.begin(at(0));
    int done = 0;
    for (int next; (next = scheduler.horizon(done, 100, at(20.0 * done))) > done;) done = next;
    EXPECT_GE(done, 14);
    scheduler.finish(
        {.iterations = 3, .inner_end = at(60.0), .end = at(390.0), .examined_s = 300e-6});
    finish(control, 3, 60.0, 330.0);
  }
  control.begin(at(0));
  EXPECT_LE(control.horizon(0, 100, at(0)), 1) << "where commits do take that long";
}

TEST(DeadlineScheduler, AMissForTheSakeOfAnExaminationIsToldApart) {
  DeadlineScheduler scheduler(100e-6, 1e-6, 10e-6);
  live(scheduler, 200, 10, 2.0, 30.0);
  scheduler.begin(at(0));
  scheduler.finish(
      {.iterations = 10, .inner_end = at(20.0), .end = at(350.0), .examined_s = 300e-6});
  EXPECT_EQ(scheduler.statistics().misses, 1);
  EXPECT_EQ(scheduler.statistics().guard_misses, 1);
  EXPECT_EQ(scheduler.statistics().preempted_misses, 0);
}

TEST(DeadlineScheduler, OneStalledStepDoesNotSpoilTheEstimates) {
  DeadlineScheduler scheduler(1e-3, 1e-6, 10e-6);
  live(scheduler, 200, 10, 2.0, 30.0);
  const double iteration_s = scheduler.iteration_s(), commit_s = scheduler.commit_s();
  live(scheduler, 1, 10, 300.0, 4000.0);
  live(scheduler, 20, 10, 2.0, 30.0);
  EXPECT_NEAR(scheduler.iteration_s(), iteration_s, 0.01 * iteration_s);
  EXPECT_NEAR(scheduler.commit().most_s(), commit_s, 0.1 * commit_s);
  live(scheduler, 100, 10, 4.0, 60.0);  // control: a lasting change is learnt
  EXPECT_NEAR(scheduler.iteration_s(), 4e-6, 4e-7);
  EXPECT_NEAR(scheduler.commit_s(), 60e-6, 6e-6);
}

/// Steps whose commit and guard follow `done` iterations; returns how many those of the last step were.
struct Spent {
  int iterations = 0;
  double end_us = 0.0;
};
Spent spent(DeadlineScheduler& scheduler, double iteration_us, double commit_us, double lost_us,
            double guard_us(int)) {
  scheduler.begin(at(0));
  int done = 0;
  double us = 0.0;
  for (int next; (next = scheduler.horizon(done, 1000, at(us))) > done; done = next) {
    us += (next - done) * iteration_us;
    if (done == 0) us += lost_us;
  }
  const double guarded_us = guard_us(done), end_us = us + commit_us + guarded_us;
  scheduler.finish({.iterations = done,
                    .inner_end = at(us),
                    .end = at(end_us),
                    .guard_s = 1e-6 * guarded_us,
                    .converged = false,
                    .out_of_time = true});
  return {done, end_us};
}

// Two iterations fit before the commit, after which the guard takes as long as four. After three it does not act.
TEST(DeadlineScheduler, WhatTheGuardWouldTakeIsTakenForIterations) {
  DeadlineScheduler scheduler(63e-6, 12e-6, 25e-6), control(63e-6, 12e-6, 25e-6);
  double mean_end_us = 0.0;
  for (int n = 0; n < 400; ++n) {
    const Spent own =
        spent(scheduler, 12.0, 25.0, 0.0, [](int done) { return done < 3 ? 50.0 : 0.0; });
    const Spent other = spent(control, 12.0, 25.0, 0.0, [](int) { return 0.0; });
    if (n < 100) continue;
    mean_end_us += own.end_us / 300.0;
    EXPECT_EQ(other.iterations, 3) << "control: three fit by a hair";
  }
  EXPECT_LE(mean_end_us, 64.0);
  DeadlineScheduler tight(58e-6, 12e-6, 25e-6), calm(58e-6, 12e-6, 25e-6);
  int made = 0;
  for (int n = 0; n < 400; ++n) {
    made +=
        spent(tight, 12.0, 25.0, 0.0, [](int done) { return done < 3 ? 50.0 : 0.0; }).iterations;
    if (n > 100) {
      EXPECT_EQ(spent(calm, 12.0, 25.0, 0.0, [](int) { return 0.0; }).iterations, 2) << "control";
    } else {
      spent(calm, 12.0, 25.0, 0.0, [](int) { return 0.0; });
    }
  }
  EXPECT_GE(made, 3 * 370) << "3 µs late in place of 41";
}

// What the guard does is no reason to stop where the step is in time without it, or late in any case.
TEST(DeadlineScheduler, TimeIsKeptForTheGuardWhereThatIsInTime) {
  DeadlineScheduler scheduler(100e-6, 10e-6, 20e-6);
  int late = 0;
  for (int n = 0; n < 400; ++n) {
    const Spent own = spent(scheduler, 10.0, 20.0, 0.0, [](int) { return 30.0; });
    if (n < 200) continue;
    late += own.end_us > 100.0 ? 1 : 0;
    EXPECT_GE(own.iterations, 4) << "control: time is used";
  }
  EXPECT_LE(late, 20);
}

TEST(DeadlineScheduler, AStepInWhichTheProcessorWasLostMakesItsIterations) {
  DeadlineScheduler scheduler(100e-6, 2e-6, 30e-6);
  const auto none = [](int) { return 0.0; };
  int usual = 0;
  for (int n = 0; n < 200; ++n) usual = spent(scheduler, 2.0, 30.0, 0.0, none).iterations;
  EXPECT_GE(usual, 30);
  const Spent lost = spent(scheduler, 2.0, 30.0, 500.0, none);
  EXPECT_NEAR(lost.iterations, usual, 2);
  const Spent made_up = spent(scheduler, 2.0, 30.0, 30.0, none);
  EXPECT_LE(made_up.end_us, 100.0) << "control: where fewer iterations are in time, fewer are made";
  EXPECT_LT(made_up.iterations, usual);
}

TEST(DeadlineScheduler, TellsMissesOfItsOwnFromPreemption) {
  DeadlineScheduler scheduler(100e-6, 1e-6, 10e-6);
  live(scheduler, 200, 10, 2.0, 30.0);
  EXPECT_EQ(scheduler.statistics().misses, 0);
  live(scheduler, 1, 10, 2.0, 500.0);  // the commit stalled
  EXPECT_EQ(scheduler.statistics().misses, 1);
  EXPECT_EQ(scheduler.statistics().preempted_misses, 1);
  live(scheduler, 1, 40, 2.0, 31.0);  // too many iterations: nobody else's fault
  EXPECT_EQ(scheduler.statistics().misses, 2);
  EXPECT_EQ(scheduler.statistics().preempted_misses, 1);
  EXPECT_NEAR(scheduler.statistics().worst_slack_s, -420e-6, 1e-9);
  EXPECT_NEAR(scheduler.statistics().slack_p50_s, 50e-6, 1e-9);
  EXPECT_EQ(scheduler.statistics().steps, 202);
}

/// How many iterations of 20 µs a step makes before a commit of `commit_us`.
int filled(DeadlineScheduler& scheduler, double commit_us) {
  scheduler.begin(at(0));
  int done = 0;
  for (;;) {
    const int next = scheduler.horizon(done, 1000, at(done * 20.0));
    if (next == done) break;
    done = next;
  }
  finish(scheduler, done, done * 20.0, commit_us);
  return done;
}

// On a crowded machine the longest commits are longer than the deadline. What is kept for them helps nobody.
TEST(DeadlineScheduler, CommitsThatNothingHelpsAgainstLeaveTimeForIterations) {
  DeadlineScheduler scheduler(1e-3, 20e-6, 50e-6);
  int fewest = 1000;
  for (int n = 0; n < 1000; ++n) {
    const int done = filled(scheduler, n % 10 == 9 ? 20'000.0 : 50.0);
    if (n > 200) fewest = std::min(fewest, done);
  }
  EXPECT_GE(fewest, 15);
  EXPECT_LT(scheduler.commit().most_s(), 0.5e-3);
  DeadlineScheduler control(1e-3, 20e-6, 50e-6);
  for (int n = 0; n < 1000; ++n) fewest = std::min(fewest, filled(control, 20'000.0));
  EXPECT_LE(fewest, 1) << "control: where all commits take that long";
}

TEST(DeadlineScheduler, ATrialIsNoPreemption) {
  DeadlineScheduler scheduler(1e-3, 10e-3, 30e-6);  // a wrong guess: it is longer yet
  EXPECT_EQ(tried(scheduler, 100, 50'000.0), 3);
  EXPECT_EQ(scheduler.statistics().misses, 3);
  EXPECT_EQ(scheduler.statistics().preempted_misses, 0);
  DeadlineScheduler control(100e-6, 1e-6, 10e-6);
  live(control, 200, 10, 2.0, 30.0);
  live(control, 1, 10, 50.0, 30.0);
  EXPECT_EQ(control.statistics().preempted_misses, 1);
}

TEST(DeadlineScheduler, WorkAfterAChangeIsNoPreemption) {
  for (const bool is_told : {true, false}) {
    DeadlineScheduler scheduler(100e-6, 1e-6, 10e-6);
    live(scheduler, 200, 10, 2.0, 30.0);
    if (is_told) scheduler.expect_new_work();
    live(scheduler, 1, 10, 300.0, 30.0);
    EXPECT_EQ(scheduler.statistics().misses, 1);
    EXPECT_EQ(scheduler.statistics().preempted_misses, is_told ? 0 : 1);
    live(scheduler, 1, 10, 300.0, 30.0);
    EXPECT_EQ(scheduler.statistics().preempted_misses, is_told ? 1 : 2) << "control: once only";
  }
}

TEST(DeadlineScheduler, SolvesAreMadeWhereTheyFitBeforeAnIterationAndTheCommit) {
  using Solve = DeadlineScheduler::Solve;
  DeadlineScheduler scheduler(1500e-6, 60e-6, 100e-6);
  scheduler.rehearse(Solve::new_factors, 5e-3);
  scheduler.rehearse(Solve::with_factors, 200e-6);
  scheduler.begin(at(0));
  EXPECT_EQ(scheduler.affords(at(0)), Solve::with_factors);
  EXPECT_EQ(scheduler.affords(at(1000)), Solve::with_factors);
  EXPECT_EQ(scheduler.affords(at(1130)), Solve::none);
  scheduler.set_deadline(10e-3);
  EXPECT_EQ(scheduler.affords(at(0)), Solve::new_factors);
}

TEST(DeadlineScheduler, TheTimeOfSolvesIsNotThatOfIterations) {
  using Solve = DeadlineScheduler::Solve;
  DeadlineScheduler scheduler(10e-3, 60e-6, 100e-6);
  DeadlineScheduler control(10e-3, 60e-6, 100e-6);
  for (int n = 0; n < 50; ++n) {
    for (DeadlineScheduler* own : {&scheduler, &control}) {
      own->begin(at(0));
      if (own == &scheduler) own->took(Solve::new_factors, 5e-3);
      finish(*own, 4, 5000 + 4 * 60, 100);
    }
  }
  EXPECT_NEAR(scheduler.iteration_s(), 60e-6, 1e-9);
  EXPECT_GT(control.iteration_s(), 0.5e-3);
}

// Iterations that were planned before solves took their time would come after the deadline.
TEST(DeadlineScheduler, SolvesTakeTheTimeOfIterationsThatWerePlanned) {
  using Solve = DeadlineScheduler::Solve;
  for (const double renewal_us : {0.0, 90.0}) {
    DeadlineScheduler scheduler(300e-6, 10e-6, 20e-6);
    scheduler.rehearse(Solve::with_factors, 20e-6);
    scheduler.rehearse(Solve::new_factors, (90.0 + 20.0) * 1e-6);
    for (int n = 0; n < 40; ++n) {
      scheduler.begin(at(0));
      double us = 0.0;
      int done = 0, solves = 0;
      for (int next; (next = scheduler.horizon(done, 1000, at(us))) > done;) {
        for (; done < next; ++done) {
          us += 10.0;
          const Solve most = scheduler.affords(at(us));
          if (most == Solve::none) continue;
          const bool renews = renewal_us > 0.0 && most == Solve::new_factors && solves == 0;
          const double took_us = renews ? renewal_us + 20.0 : 20.0;
          us += took_us;
          scheduler.took(renews ? Solve::new_factors : Solve::with_factors, 1e-6 * took_us);
          ++solves;
        }
      }
      EXPECT_GE(solves, renewal_us > 0.0 ? 5 : 7) << "control: time is used";
      EXPECT_LE(us + 20.0, 300.0) << n << ", " << renewal_us;
      EXPECT_GE(us + 20.0, 250.0) << n << ", " << renewal_us;
      finish(scheduler, done, us, 20.0);
    }
  }
}

/// How many steps were plain, which leave 1e-4 of the gap.
int plain_steps(int steps, double solving) {
  using Solve = DeadlineScheduler::Solve;
  DeadlineScheduler scheduler(1500e-6, 60e-6, 100e-6);
  scheduler.rehearse(Solve::with_factors, 200e-6);
  int plain = 0;
  for (int n = 0; n < steps; ++n) {
    scheduler.begin(at(0));
    const bool solves = scheduler.solves();
    if (solves) scheduler.took(Solve::with_factors, 200e-6);
    plain += solves ? 0 : 1;
    const double residual = solves ? solving : 1e-4;
    scheduler.finish({4, at(700), at(800), 0.0, 0.0, residual, false});
  }
  return plain;
}

TEST(DeadlineScheduler, NoStepIsATrialThatCostsMoreThanItMayGain) {
  EXPECT_EQ(plain_steps(2000, 5e-9), 0);
  EXPECT_LE(plain_steps(100'000, 5e-9), 100);
  EXPECT_GE(plain_steps(2000, 1e-2), 1900) << "control: where plain ones leave less";
}

/// Steps of 700 µs and a commit; what is left where they solve, and where they are plain.
struct Kinds {
  double solving, plain;
  bool converges = false;
};
int steps_with_solves(const Kinds& kinds, int steps) {
  using Solve = DeadlineScheduler::Solve;
  DeadlineScheduler scheduler(1500e-6, 60e-6, 100e-6);
  scheduler.rehearse(Solve::with_factors, 200e-6);
  int solved = 0;
  for (int n = 0; n < steps; ++n) {
    scheduler.begin(at(0));
    const bool solves = scheduler.affords(at(0)) != Solve::none;
    EXPECT_EQ(solves, scheduler.solves());
    if (solves) scheduler.took(Solve::with_factors, 200e-6);
    solved += solves ? 1 : 0;
    scheduler.finish({.iterations = 4,
                      .inner_end = at(700),
                      .end = at(800),
                      .residual = solves ? kinds.solving : kinds.plain,
                      .converged = kinds.converges && solves});
  }
  return solved;
}

// Steps that cannot converge in time still solve where that leaves less of the gap, and only there.
TEST(DeadlineScheduler, StepsAreOfTheKindThatLeavesLess) {
  EXPECT_GE(steps_with_solves({.solving = 1e-4, .plain = 0.3}, 1000), 990);
  const int tried = steps_with_solves({.solving = 0.9, .plain = 0.3}, 1000);
  EXPECT_LE(tried, 30) << "two steps each time, because the first may have old factors";
  EXPECT_GE(tried, 10) << "they may have become better";
  EXPECT_EQ(steps_with_solves({.solving = 1e-12, .plain = 0.3, .converges = true}, 1000), 1000);
}

/// Steps that solve where the scheduler says so, with factors that are old after plain steps: what a solving step leaves
/// falls by `gain` per step in a row, from 0.5. Plain ones leave 0.1. Returns how many of the last half have solved.
int solved_with_old_factors(double gain) {
  using Solve = DeadlineScheduler::Solve;
  constexpr int kSteps = 400;
  DeadlineScheduler scheduler(1500e-6, 60e-6, 100e-6);
  scheduler.rehearse(Solve::with_factors, 200e-6);
  int solved = 0, in_a_row = 0;
  for (int n = 0; n < kSteps; ++n) {
    scheduler.begin(at(0));
    const bool solves = scheduler.solves();
    if (solves) scheduler.took(Solve::with_factors, 200e-6);
    in_a_row = solves ? in_a_row + 1 : 0;
    if (n == 20) in_a_row = 0;  // something happens that makes the factors old
    if (n >= kSteps / 2 && solves) ++solved;
    scheduler.finish({.iterations = 4,
                      .inner_end = at(700),
                      .end = at(800),
                      .residual = solves ? 0.5 * std::pow(gain, std::min(in_a_row, 5) - 1) : 0.1,
                      .converged = false});
  }
  return solved;
}

TEST(DeadlineScheduler, SolvingIsTriedAsLongAsItImproves) {
  EXPECT_GE(solved_with_old_factors(0.5), 190);
  EXPECT_LE(solved_with_old_factors(0.99), 10) << "control: where it does not";
}

// What the guard does in every step while waves hardly agree is no reason not to make them agree.
TEST(DeadlineScheduler, TheTimeOfTheGuardIsNotThatOfTheCommit) {
  const auto iterations = [](bool is_told) {
    DeadlineScheduler scheduler(1500e-6, 60e-6, 100e-6);
    int sum = 0;
    for (int n = 0; n < 100; ++n) {
      scheduler.begin(at(0));
      int done = 0;
      for (int next; (next = scheduler.horizon(done, 5, at(60.0 * done))) > done;) done = next;
      sum += done;
      scheduler.finish({.iterations = done,
                        .inner_end = at(60.0 * done),
                        .end = at(60.0 * done + 100.0 + 5000.0),
                        .guard_s = is_told ? 5e-3 : 0.0});
    }
    EXPECT_EQ(scheduler.statistics().misses, 100);
    EXPECT_EQ(scheduler.statistics().guard_misses >= 90, is_told);
    return sum;
  };
  EXPECT_EQ(iterations(true), 500);
  EXPECT_LE(iterations(false), 150) << "control";
}

TEST(DeadlineScheduler, CountsTheTimeThatStepsCouldHaveUsed) {
  DeadlineScheduler scheduler(1e-3, 60e-6, 100e-6);
  for (int n = 0; n < 10; ++n) {
    scheduler.begin(at(0));
    scheduler.finish(
        {.iterations = 1, .inner_end = at(600), .end = at(700), .out_of_time = n % 2 == 0});
  }
  EXPECT_NEAR(scheduler.statistics().unused_share, 0.3, 1e-9);
}

/// Steps under 1500 µs that solve where they may. A solve takes `solve_us`; only steps with one converge.
struct Solved {
  int solved = 0, longest_pause = 0;
};
Solved live_with_solves(DeadlineScheduler& scheduler, int steps, double solve_us) {
  using Solve = DeadlineScheduler::Solve;
  Solved out;
  int pause = 0;
  for (int n = 0; n < steps; ++n) {
    scheduler.begin(at(0));
    const bool solves = scheduler.affords(at(100)) != Solve::none;
    if (solves) scheduler.took(Solve::with_factors, 1e-6 * solve_us);
    out.solved += solves ? 1 : 0;
    pause = solves ? 0 : pause + 1;
    out.longest_pause = std::max(out.longest_pause, pause);
    const double inner_us = 4 * 60 + (solves ? solve_us : 0.0);
    scheduler.finish({.iterations = 4,
                      .inner_end = at(inner_us),
                      .end = at(inner_us + 100),
                      .residual = solves ? 1e-14 : 6e-3,
                      .converged = solves,
                      .out_of_time = !solves});
  }
  return out;
}

// Solves that were held up once, or for some time, are no reason to leave them out for good.
TEST(DeadlineScheduler, SolvesThatWereHeldUpAreTriedAgain) {
  using Solve = DeadlineScheduler::Solve;
  DeadlineScheduler scheduler(1500e-6, 60e-6, 100e-6);
  scheduler.rehearse(Solve::with_factors, 200e-6);
  EXPECT_EQ(live_with_solves(scheduler, 200, 200.0).solved, 200);
  live_with_solves(scheduler, 1, 20'000.0);
  EXPECT_EQ(live_with_solves(scheduler, 200, 200.0).solved, 200) << "one alone is no reason at all";
  live_with_solves(scheduler, 300, 20'000.0);
  const Solved after = live_with_solves(scheduler, 1000, 200.0);
  EXPECT_GE(after.solved, 740);
  EXPECT_LE(after.longest_pause, 256);
  EXPECT_EQ(live_with_solves(scheduler, 1000, 200.0).solved, 1000);
  // Control: what has become too slow for good is tried rarely.
  EXPECT_LE(live_with_solves(scheduler, 10'000, 20'000.0).solved, 100);
}

TEST(DeadlineScheduler, ALateBeginningIsDueToTheStepBefore) {
  const auto late = [](double commit_us, double late_us) {
    DeadlineScheduler scheduler(1000e-6, 2e-6, 30e-6);
    live(scheduler, 200, 10, 2.0, 30.0);
    scheduler.begin(at(0));
    scheduler.finish({.iterations = 10,
                      .inner_end = at(20),
                      .end = at(20 + commit_us),
                      .examined_s = commit_us < 1000.0 ? 0.0 : 1e-6 * (commit_us - 30.0)});
    scheduler.set_deadline(1e-6 * (1000.0 - late_us));
    scheduler.begin(at(0), 1e-6 * late_us);
    scheduler.finish({.iterations = 0, .inner_end = at(2), .end = at(32)});
    return scheduler.statistics();
  };
  const auto own = late(1960.0, 980.0);  // the step before ended 980 µs late
  EXPECT_EQ(own.misses, 2);
  EXPECT_EQ(own.preempted_misses, 0);
  EXPECT_EQ(own.guard_misses, 1);
  EXPECT_EQ(own.late_misses, 1);
  const auto of_caller = late(30.0, 980.0);  // it was asked for late
  EXPECT_EQ(of_caller.misses, 1);
  EXPECT_EQ(of_caller.late_misses, 0);
  DeadlineScheduler lost(1000e-6, 2e-6, 30e-6);
  live(lost, 200, 10, 2.0, 30.0);
  live(lost, 1, 10, 2.0, 1960.0);  // the processor was lost in the commit
  lost.set_deadline(20e-6);
  lost.begin(at(0), 980e-6);
  lost.finish({.iterations = 0, .inner_end = at(2), .end = at(32)});
  EXPECT_EQ(lost.statistics().preempted_misses, 2);
  EXPECT_EQ(lost.statistics().late_misses, 0);
}

// Before the first evaluation a step prepares its inputs. That is no loss of the processor.
TEST(DeadlineScheduler, StepsWithoutAnEvaluationAreNotTakenForPreempted) {
  DeadlineScheduler scheduler(100e-6, 40e-6, 110e-6);
  live(scheduler, 100, 0, 0.0, 110.0);
  for (int n = 0; n < 10; ++n) {
    scheduler.begin(at(0));
    EXPECT_EQ(scheduler.horizon(0, 100, at(12)), 0);
    finish(scheduler, 0, 15.0, 110.0);
  }
  EXPECT_EQ(scheduler.statistics().misses, 110);
  EXPECT_EQ(scheduler.statistics().preempted_misses, 0);
}

TEST(DeadlineScheduler, WorkAfterTheStepIsOfTheStep) {
  DeadlineScheduler scheduler(100e-6, 1e-6, 10e-6);
  live(scheduler, 50, 10, 2.0, 30.0);
  EXPECT_TRUE(scheduler.fits(at(50), 35e-6));
  EXPECT_FALSE(scheduler.fits(at(50), 45e-6));
  EXPECT_NEAR(scheduler.extend(at(90)), 10e-6, 1e-12);
  EXPECT_EQ(scheduler.statistics().misses, 0);
  EXPECT_NEAR(scheduler.extend(at(110)), -10e-6, 1e-12);
  EXPECT_NEAR(scheduler.extend(at(120)), -20e-6, 1e-12);
  EXPECT_EQ(scheduler.statistics().misses, 1);
  EXPECT_EQ(scheduler.statistics().guard_misses, 1);
  EXPECT_NEAR(scheduler.statistics().worst_slack_s, -20e-6, 1e-12);
}

}  // namespace
}  // namespace portwave::test_budget
