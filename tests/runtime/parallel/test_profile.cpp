// Where the time of steps goes: the sums belong together, the trace is of the steps that it names, and
// looking changes no result.

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <portwave/runtime/parallel/profile.hpp>
#include <portwave/runtime/step/stepper.hpp>

#include "support/systems/oscillator_pair.hpp"
#include "support/systems/systems.hpp"
#include "support/trace.hpp"

namespace portwave::test_profile {
namespace {

using Kind = ProfileEvent::Kind;

StepperOptions options_for(ExecutorKind executor, int threads) {
  StepperOptions options{.method = WaveCoupling{}};
  options.start = Start::as_given;
  options.step_s = 0.01;
  options.method.waves().iterations = 12;
  options.method.waves().tolerance = 1e-9;
  options.method.waves().guard = true;
  options.executor = executor;
  options.threads = threads;
  options.grain = Grain::of_parts(4);
  return options;
}

Profile profile_of(const System& system, StepperOptions options, std::int64_t steps,
                   ProfileOptions own = {}) {
  options.profile = own;
  Stepper stepper(system, options);
  stepper.step(steps);
  return stepper.profile();
}

const std::vector<std::pair<ExecutorKind, int>>& followed_executors() {
  static const std::vector<std::pair<ExecutorKind, int>> kAll = {{ExecutorKind::serial, 1},
                                                                 {ExecutorKind::async, 1},
                                                                 {ExecutorKind::async, 2},
                                                                 {ExecutorKind::async, 4},
                                                                 {ExecutorKind::automatic, 2}};
  return kAll;
}

TEST(Profile, LookingChangesNoResult) {
  const System system = testing::chain_of_blocks(24, 3);
  for (const ExecutorKind executor :
       {ExecutorKind::serial, ExecutorKind::async, ExecutorKind::automatic, ExecutorKind::graph}) {
    for (const int threads : {1, 2}) {
      StepperOptions options = options_for(executor, threads);
      const std::vector<double> expected = testing::trace(system, options, 60);
      options.profile.emplace();
      EXPECT_TRUE(testing::same_bits(expected, testing::trace(system, options, 60)))
          << to_string(executor) << " threads=" << threads;
    }
  }
}

/// What threads did and what tasks did are the same events, summed twice.
TEST(Profile, SumsBelongTogether) {
  const System system = testing::chain_of_blocks(24, 3);
  for (const auto& [executor, threads] : followed_executors()) {
    const Profile p = profile_of(system, options_for(executor, threads), 50);
    SCOPED_TRACE(std::string(to_string(executor)) + " threads=" + std::to_string(threads));
    ASSERT_EQ(p.steps, 50);
    ASSERT_EQ(p.sampled, 50);
    ASSERT_EQ(p.workers.size(), static_cast<std::size_t>(threads));
    double tasks_s = 0.0;
    int parts = 0;
    for (const ProfileTask& task : p.tasks) {
      tasks_s += task.all_s();
      EXPECT_FALSE(task.first_part.empty());
      EXPECT_GT(task.parts, 0);
      if (task.number >= 0 || executor == ExecutorKind::serial) parts += task.parts;
    }
    if (executor != ExecutorKind::automatic) {
      EXPECT_EQ(parts, 24);
    }
    EXPECT_NEAR(tasks_s, p.working_s(), 1e-9 * tasks_s);
    EXPECT_GT(tasks_s, 0.0);
    EXPECT_NEAR(p.begin_s + p.inner_s + p.ledger_s, p.step_s, 1e-9 * p.step_s);
    // Nobody works longer than there is time.
    EXPECT_LE(p.tasks_s, p.step_s * (1.0 + 1e-9));
    EXPECT_LE(p.working_s(), threads * p.tasks_s * (1.0 + 1e-9));
    EXPECT_GE(p.imbalance(), 1.0);
    EXPECT_LE(p.imbalance(), threads + 1e-9);
    EXPECT_GT(p.iterations, 50);
  }
}

TEST(Profile, EventsAreWithinTheirStepsAndOneAfterTheOther) {
  const System system = testing::chain_of_blocks(24, 3);
  for (const auto& [executor, threads] : followed_executors()) {
    const Profile p = profile_of(system, options_for(executor, threads), 30);
    SCOPED_TRACE(std::string(to_string(executor)) + " threads=" + std::to_string(threads));
    std::map<std::int64_t, std::pair<double, double>> spans;  // from freezing to the ledger
    for (const ProfileEvent& event : p.events) {
      if (event.kind == Kind::inner) spans[event.step].first = event.begin_s;
      if (event.kind == Kind::ledger) spans[event.step].second = event.end_s;
    }
    EXPECT_EQ(spans.size(), 30u);
    std::map<int, double> end_of_worker;
    std::set<int> tasks;
    for (const ProfileEvent& event : p.events) {
      EXPECT_LE(event.begin_s, event.end_s);
      if (event.kind > Kind::commit) continue;
      tasks.insert(event.task);
      EXPECT_GE(event.begin_s, spans.at(event.step).first - 1e-9);
      EXPECT_LE(event.end_s, spans.at(event.step).second + 1e-9);
      double& end_s = end_of_worker[event.worker];
      EXPECT_GE(event.begin_s, end_s - 1e-9) << "worker " << event.worker;
      end_s = event.end_s;
    }
    EXPECT_EQ(tasks.size(), p.tasks.size());
  }
}

/// Every task commits once in every step that is looked at: none is lost, none counted twice.
TEST(Profile, EveryTaskCommitsOncePerStep) {
  const System system = testing::chain_of_blocks(24, 3);
  StepperOptions options = options_for(ExecutorKind::async, 2);
  options.method.waves().guard = false;  // it commits again
  const Profile p = profile_of(system, options, 40);
  std::map<std::pair<std::int64_t, int>, int> commits;
  for (const ProfileEvent& event : p.events) {
    if (event.kind == Kind::commit) ++commits[{event.step, event.task}];
  }
  EXPECT_EQ(commits.size(), 40u * p.tasks.size());
  for (const auto& [where, count] : commits) EXPECT_EQ(count, 1);
}

TEST(Profile, LongRunsAreLookedAtNowAndThen) {
  const System system = testing::chain_of_blocks(8, 3);
  for (const auto& [executor, threads] : followed_executors()) {
    const Profile p =
        profile_of(system, options_for(executor, threads), 5000, {.most_events = 2000});
    EXPECT_EQ(p.steps, 5000);
    EXPECT_LE(p.events.size(), 2000u);
    EXPECT_LT(p.sampled, 2500);
    EXPECT_GT(p.sampled, 10);
    EXPECT_GT(p.other_step_s, 0.0);
    // What is kept is spread over the run.
    std::set<std::int64_t> steps;
    for (const ProfileEvent& event : p.events) steps.insert(event.step);
    EXPECT_LT(*steps.begin(), 1000);
    EXPECT_GT(*steps.rbegin(), 4000);
  }
}

TEST(Profile, HasEveryPartInABatch) {
  const System system = testing::chain_of_blocks(24, 3);
  const Profile p = profile_of(system, options_for(ExecutorKind::serial, 1), 20);
  int parts = 0;
  for (const ProfileBatch& batch : p.batches) {
    EXPECT_FALSE(batch.type.empty());
    EXPECT_GT(batch.iterate_s, 0.0);
    EXPECT_GT(batch.commit_s, 0.0);
    parts += batch.parts;
  }
  EXPECT_EQ(parts, 24);
}

TEST(Profile, TheTraceIsJsonOfTheSameEvents) {
  const System system = testing::chain_of_blocks(24, 3);
  const Profile p = profile_of(system, options_for(ExecutorKind::async, 2), 10);
  const auto json = nlohmann::json::parse(trace_json(p));
  std::size_t events = 0;
  std::set<std::int64_t> threads;
  for (const auto& event : json.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    EXPECT_NEAR(event.at("ts").get<double>(), 1e6 * p.events[events].begin_s, 1e-3);
    EXPECT_GE(event.at("dur").get<double>(), 0.0);
    EXPECT_EQ(event.at("args").at("step"), p.events[events].step);
    threads.insert(event.at("tid").get<std::int64_t>());
    ++events;
  }
  EXPECT_EQ(events, p.events.size());
  EXPECT_TRUE(threads.contains(0));
  EXPECT_TRUE(threads.contains(1));
  EXPECT_EQ(nlohmann::json::parse(trace_json(Profile{})).at("traceEvents").size(), 2u);
}

TEST(Profile, TheTextNamesPhasesThreadsTasksAndTypes) {
  const System system = testing::chain_of_blocks(24, 3);
  const Profile p = profile_of(system, options_for(ExecutorKind::async, 2), 10);
  const std::string text = profile_text(p);
  for (const char* what : {"10 of 10 steps", "inner iteration", "between steps", "waiting",
                           "imbalance", "first part", "us/iteration"}) {
    EXPECT_NE(text.find(what), std::string::npos) << what << "\n" << text;
  }
  EXPECT_NE(profile_text(Profile{}).find("0 of 0"), std::string::npos);
}

TEST(Profile, WithoutTasksThereArePhases) {
  const System system = testing::chain_of_blocks(8, 3);
  const Profile p = profile_of(system, options_for(ExecutorKind::graph, 2), 10);
  EXPECT_TRUE(p.workers.empty());
  EXPECT_TRUE(p.tasks.empty());
  EXPECT_GT(p.inner_s, 0.0);
  EXPECT_NE(profile_text(p).find("serial and async only"), std::string::npos);
}

TEST(Profile, ChosenStepsAreFollowedToo) {
  const System system = testing::chain_of_blocks(8, 3);
  StepperOptions options = options_for(ExecutorKind::serial, 1);
  options.sizes.emplace();
  options.profile.emplace();
  Stepper stepper(system, options);
  stepper.run_until(0.5);
  const Profile p = stepper.profile();
  EXPECT_EQ(p.steps, stepper.step_index());
  EXPECT_GT(p.working_s(), 0.0);
  EXPECT_LE(p.working_s(), p.step_s * (1.0 + 1e-9));
}

TEST(Profile, MustBeAskedFor) {
  const System system = testing::duffing_linear_pair();
  Stepper stepper(system, testing::pair_options(3));
  stepper.step();
  EXPECT_THROW(stepper.profile(), std::logic_error);
}

}  // namespace
}  // namespace portwave::test_profile
