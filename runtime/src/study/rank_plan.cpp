#include "portwave/runtime/study/rank_plan.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <stdexcept>
#include <vector>

#include "execution/rank_shares.hpp"
#include "execution/runner.hpp"
#include "execution/stepper_options.hpp"
#include "execution/task_graph.hpp"
#include "portwave/runtime/execution/stepper.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "study/stepped_scenario.hpp"

namespace portwave {
namespace {

/// What of a step is shared by entries of eight bytes: by the gap of an evaluation, by the ledger.
constexpr int kGapEntries = 3, kLedgerEntries = 7;

struct MeasuredStep {
  StepTimes times;
  double step_s = 0.0;
  std::vector<double> impedance;
  double iterations = 0.0;
  bool is_judged = false;
  bool has_ledger = false;
  bool may_solve = false;
};

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
  MeasuredStep sum;
  std::vector<double> begin_s, iterate_s, commit_s;
  for (int n = 0; n < steps; ++n) {
    const StepReport report = stepper.step();
    begin_s.push_back(report.times.begin_s);
    iterate_s.push_back(report.times.iterate_s);
    commit_s.push_back(report.times.commit_s);
    sum.iterations += static_cast<double>(report.iterations) / steps;
  }
  // Others use the machine, too.
  sum.times = {median_of(begin_s), median_of(iterate_s), median_of(commit_s)};
  sum.step_s = sum.times.begin_s + sum.times.iterate_s + sum.times.commit_s;
  const WaveCoupling& method = stepper.method().method.waves();
  sum.impedance = method.impedance;
  sum.is_judged = method.tolerance > 0.0 || method.energy_tolerance_J > 0.0 ||
                  method.acceleration > 0 || method.kind == WaveUpdate::interface ||
                  !method.interface_islands.empty();
  sum.may_solve = method.kind == WaveUpdate::interface || !method.interface_islands.empty() ||
                  method.rescue_after > 0;
  sum.has_ledger = stepper.keeps_ledger();
  return sum;
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

/// Of every rank to all, by doubling.
double gather_s(std::int64_t bytes, const RankPlanOptions& options) {
  if (options.ranks == 1) return 0.0;
  return std::ceil(std::log2(options.ranks)) * options.latency_s +
         static_cast<double>(bytes) / options.bandwidth_B_per_s;
}

void count_messages(const TaskGraph& graph, const std::vector<int>& rank_of_task, RankPlan& plan) {
  std::vector<std::map<int, std::int64_t>> sent(plan.ranks.size());
  for (const TaskGraph::Link& link : graph.links()) {
    const int from = rank_of_task[at(link.from)], to = rank_of_task[at(link.to)];
    if (from == to || from == RankShares::kEvery || to == RankShares::kEvery) continue;
    sent[at(from)][to] += static_cast<std::int64_t>(link.offsets.size());
  }
  for (std::size_t r = 0; r < sent.size(); ++r) {
    plan.ranks[r].neighbours = static_cast<int>(sent[r].size());
    for (const auto& [to, waves] : sent[r]) plan.ranks[r].waves_sent += waves;
    plan.messages += plan.ranks[r].neighbours;
    plan.waves_sent += plan.ranks[r].waves_sent;
  }
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
  const MeasuredStep measured = measure_steps(scenario, options.steps);
  const SteppedScenario stepped(scenario);
  const Scenario& s = stepped.get();
  const WaveDiscretisation waves(s.system, s.options.step_s, measured.impedance,
                                 grouping_for(s.options));
  LaneCosts costs = measured_costs(waves, waves.initial_record().data());
  const int iterations = std::max(static_cast<int>(std::round(measured.iterations)), 0);
  const RankCut cut = cut_for_ranks(waves, costs, s.options.grain, options.ranks, options.threads,
                                    iterations, measured.may_solve);
  const Partition& partition = cut.partition;
  const std::vector<int>& rank_of_task = cut.rank_of_task;

  RankPlan plan;
  plan.ranks.resize(at(options.ranks));
  plan.parts = static_cast<std::int64_t>(waves.slots().size());
  plan.waves = static_cast<std::int64_t>(s.system.scalar_ports().size());
  plan.iterations = measured.iterations;
  plan.serial_step_s = measured.step_s;
  // One thread is to take what it was measured to take: port solves stand for the junctions, too.
  const double solves_s = 1e-9 * partition.iteration_cost_ns * measured.iterations;
  const double per_solve = solves_s > 0.0 ? measured.times.iterate_s / solves_s : 1.0;
  const double advances_s = 1e-9 * partition.commit_cost_ns;
  plan.common_s = measured.times.begin_s + std::max(0.0, measured.times.commit_s - advances_s);
  double whole_s = 0.0;
  for (std::size_t t = 0; t < partition.tasks.size(); ++t) {
    double iterate_s = 0.0, commit_s = 0.0;
    std::int64_t parts = 0;
    for (const TaskSlice& slice : partition.tasks[t].slices) {
      const int lanes = slice.lanes.last - slice.lanes.first;
      parts += lanes;
      iterate_s +=
          1e-9 * lanes * costs.scatter_ns[at(slice.batch)] * measured.iterations * per_solve;
      commit_s += 1e-9 * lanes * costs.advance_ns[at(slice.batch)];
    }
    if (rank_of_task[t] == RankShares::kEvery) {
      plan.whole_parts += parts;
      whole_s += iterate_s + commit_s;
      continue;
    }
    PlannedRank& rank = plan.ranks[at(rank_of_task[t])];
    rank.parts += parts;
    ++rank.tasks;
    rank.iterate_s += iterate_s;
    rank.commit_s += commit_s;
  }
  const TaskGraph graph(waves, partition);
  count_messages(graph, rank_of_task, plan);
  const std::int64_t shared = 8 * (plan.parts - plan.whole_parts);
  if (measured.is_judged) plan.gathered_bytes_per_evaluation = kGapEntries * shared;
  if (measured.has_ledger) plan.gathered_bytes_per_step = kLedgerEntries * shared;
  double work_s = 0.0;
  for (const PlannedRank& rank : plan.ranks) {
    const double bytes = 8.0 * static_cast<double>(rank.waves_sent);
    const double message_s =
        rank.neighbours > 0 ? options.latency_s + bytes / options.bandwidth_B_per_s : 0.0;
    plan.waiting_s = std::max(plan.waiting_s, measured.iterations * message_s);
    work_s = std::max(work_s, (rank.iterate_s + rank.commit_s) / options.threads);
  }
  if (measured.is_judged) {
    plan.waiting_s += measured.iterations * gather_s(plan.gathered_bytes_per_evaluation, options);
  }
  plan.waiting_s += gather_s(plan.gathered_bytes_per_step, options);
  plan.step_s = plan.common_s + work_s + whole_s / options.threads + plan.waiting_s;
  return plan;
}

}  // namespace portwave
