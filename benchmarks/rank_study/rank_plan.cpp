#include "rank_study/rank_plan.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <utility>
#include <vector>

#include "portwave/runtime/step/stepper.hpp"
#include "rank_study/rank_layout.hpp"
#include "step/stepper_options.hpp"

namespace portwave {
namespace {

double median_of(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

MeasuredStep measure_steps(const Scenario& scenario, int steps) {
  StepperOptions options = scenario.options;
  options.threads = 1;
  options.executor = ExecutorKind::serial;
  options.time = {};
  options.timed = true;
  Stepper stepper(scenario.system, options);
  MeasuredStep measured;
  std::vector<double> begin_s, iterate_s, commit_s;
  for (int n = 0; n < steps; ++n) {
    const StepReport report = stepper.step();
    begin_s.push_back(report.times.begin_s);
    iterate_s.push_back(report.times.iterate_s);
    commit_s.push_back(report.times.commit_s);
    measured.iterations += static_cast<double>(report.iterations) / steps;
  }
  // Others use the machine, too.
  measured.times = {median_of(begin_s), median_of(iterate_s), median_of(commit_s)};
  measured.take_method_of(stepper);
  return measured;
}

void check_plan(const Scenario& scenario, const RankPlanOptions& options) {
  refuse_without_waves(scenario.options.method);
  if (options.ranks < 1) throw std::invalid_argument("there must be at least one rank");
  if (options.threads < 1) throw std::invalid_argument("a rank has at least one thread");
  if (options.steps < 1) throw std::invalid_argument("at least one step has to be measured");
  if (!(options.latency_s >= 0.0) || !std::isfinite(options.latency_s)) {
    throw std::invalid_argument("a latency must be finite and >= 0");
  }
  if (!(options.bandwidth_B_per_s > 0.0)) throw std::invalid_argument("a bandwidth must be > 0");
}

}  // namespace

double RankPlan::imbalance() const {
  double most = 0.0, sum = 0.0;
  for (const PlannedRank& rank : ranks) {
    const double own = rank.iterate_s + rank.commit_s;
    most = std::max(most, own);
    sum += own;
  }
  return sum > 0.0 ? most * static_cast<double>(ranks.size()) / sum : 1.0;
}

RankPlan plan_ranks(const Scenario& scenario, const RankPlanOptions& options) {
  check_plan(scenario, options);
  const RankLayout layout(scenario, measure_steps(scenario, options.steps));
  const MeasuredStep& measured = layout.measured();
  RankLayout::Dealt dealt = layout.deal(options.ranks, options.threads);

  RankPlan plan;
  plan.ranks = std::move(dealt.ranks);
  plan.parts = dealt.parts;
  plan.whole_parts = dealt.whole_parts;
  plan.waves = layout.waves();
  for (const PlannedRank& rank : plan.ranks) {
    plan.messages += rank.neighbours;
    plan.waves_sent += rank.waves_sent;
  }
  plan.iterations = measured.iterations;
  plan.serial_step_s = measured.step_s();
  const int rounds = rounds_of(options.ranks);
  plan.gathered_bytes_per_evaluation = rounds * dealt.model.evaluation_bytes();
  plan.gathered_bytes_per_step = rounds * dealt.model.step_bytes();
  plan.time = rank_step_time(dealt.model, {options.latency_s, options.bandwidth_B_per_s});
  plan.common_s = plan.time.common_s;
  plan.waiting_s = plan.time.messages_s + plan.time.gathers_s;
  plan.step_s = plan.time.total_s();
  return plan;
}

}  // namespace portwave
