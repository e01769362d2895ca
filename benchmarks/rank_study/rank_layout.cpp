#include "rank_study/rank_layout.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "parallel/island_iteration.hpp"
#include "parallel/runner.hpp"
#include "parallel/task_graph.hpp"
#include "portwave/coupling/energy/energy_ledger.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "ranks/rank_shares.hpp"
#include "ranks/shared_sums.hpp"
#include "study/scaling_model.hpp"

namespace portwave {
namespace {

/// The report of a rank on a step.
constexpr std::int64_t kHeadBytes = 24;
/// An order of rank 0, without the settings.
constexpr std::int64_t kOrderBytes = 16;

std::int64_t parts_of(const Partition::Task& task) {
  std::int64_t parts = 0;
  for (const BatchRange& range : task.ranges) parts += range.lanes.last - range.lanes.first;
  return parts;
}

/// The time to account for a step whose sums over islands are known [s].
double booking_s(const WaveDiscretisation& waves) {
  constexpr int kRepetitions = 5;
  const std::vector<double> b(at(waves.wave_size()), 0.0);
  EnergyLedger ledger(waves, waves.initial_record().data(), b.data());
  const std::array<double, SharedSums::kMostValues> nothing{};
  double best_s = std::numeric_limits<double>::infinity();
  for (int k = 0; k < kRepetitions; ++k) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < waves.system().island_count(); ++i) ledger.take(i, nothing.data());
    ledger.tally();
    ledger.close({});
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    best_s = std::min(best_s, taken.count());
  }
  return best_s;
}

/// The time to copy memory that no cache holds [s/B].
double measured_copy_s_per_B() {
  constexpr std::size_t kBytes = std::size_t{16} << 20U;
  constexpr int kRepetitions = 3;
  const std::vector<char> from(kBytes, 1);
  std::vector<char> to(kBytes, 0);
  double best_s = std::numeric_limits<double>::infinity();
  for (int k = 0; k < kRepetitions; ++k) {
    const auto start = std::chrono::steady_clock::now();
    std::memcpy(to.data(), from.data(), kBytes);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    best_s = std::min(best_s, taken.count());
  }
  // Looked at, so that the copy is made.
  return to[kBytes / 2] == 1 ? best_s / static_cast<double>(kBytes) : 0.0;
}

/// The times of the tasks of a rank, by phase.
struct TaskTimes {
  std::vector<double> edge_s, core_s, commit_s;
};

}  // namespace

void MeasuredStep::take_method_of(const Stepper& stepper) {
  const WaveCoupling& method = stepper.method().method.waves();
  impedance = method.impedance;
  may_solve = method.kind == WaveUpdate::interface || !method.interface_islands.empty() ||
              method.rescue_after > 0;
  is_judged = method.tolerance > 0.0 || method.energy_tolerance_J > 0.0 ||
              method.acceleration > 0 || method.kind == WaveUpdate::interface ||
              !method.interface_islands.empty();
  products = method.acceleration > 0 ? method.acceleration + 2 : 0;
  has_ledger = stepper.keeps_ledger();
}

RankLayout::RankLayout(const Scenario& scenario, MeasuredStep measured)
    : stepped_(scenario),
      measured_(std::move(measured)),
      waves_(stepped_.get().system, stepped_.get().options.step_s, measured_.impedance,
             grouping_for(stepped_.get().options.grain)),
      costs_(measured_costs(waves_, waves_.initial_record().data())),
      iterations_(std::max(static_cast<int>(std::round(measured_.iterations)), 0)),
      copy_s_per_B_(measured_copy_s_per_B()) {
  const Partition whole = whole_island_groups(waves_, costs_);
  if (measured_.has_ledger) ledger_s_ = std::min(booking_s(waves_), measured_.times.commit_s);
  scale_costs(costs_, whole, iterations_, measured_.times.iterate_s,
              measured_.times.commit_s - ledger_s_);
}

std::int64_t RankLayout::waves() const {
  return static_cast<std::int64_t>(stepped_.get().system.scalar_ports().size());
}

double RankLayout::iterate_s(std::span<const BatchRange> ranges) const {
  double sum = 0.0;
  for (const BatchRange& range : ranges) {
    sum += (range.lanes.last - range.lanes.first) * costs_.scatter_ns[at(range.batch)];
  }
  return 1e-9 * sum;
}
double RankLayout::commit_s(const Partition::Task& task) const {
  double sum = 0.0;
  for (const BatchRange& range : task.ranges) {
    sum += (range.lanes.last - range.lanes.first) * costs_.advance_ns[at(range.batch)];
  }
  return 1e-9 * sum;
}

namespace {

/// Phases of the tasks of a rank, each on so many threads, after those that every rank steps.
void schedule(const TaskTimes& times, const TaskTimes& whole, int threads, RankWork& rank) {
  rank.edge_s = list_schedule_s(times.edge_s, threads);
  rank.core_s = list_schedule_s(times.core_s, threads) + list_schedule_s(whole.core_s, threads);
  rank.commit_s =
      list_schedule_s(times.commit_s, threads) + list_schedule_s(whole.commit_s, threads);
}

void count_messages(const TaskGraph& graph, const std::vector<int>& rank_of_task,
                    RankLayout::Dealt& dealt) {
  std::vector<std::map<int, std::int64_t>> sent(dealt.ranks.size());
  for (const TaskGraph::Link& link : graph.links()) {
    const int from = rank_of_task[at(link.from)], to = rank_of_task[at(link.to)];
    if (from == to || from == RankShares::kEvery || to == RankShares::kEvery) continue;
    sent[at(from)][to] += static_cast<std::int64_t>(link.offsets.size());
  }
  for (std::size_t r = 0; r < sent.size(); ++r) {
    dealt.ranks[r].neighbours = static_cast<int>(sent[r].size());
    for (const auto& [to, waves] : sent[r]) {
      dealt.ranks[r].waves_sent += waves;
      dealt.model.ranks[r].messages.push_back({to, 8 * waves});
    }
  }
}

/// Counts the data that ranks send one another to form sums over islands.
void count_sums(const WaveDiscretisation& waves, const TaskGraph& graph, const RankCut& cut,
                const MeasuredStep& measured, RankStepModel& model) {
  std::vector<int> rank_of_entry(at(waves.entry_count()), RankCut::kEvery);
  std::set<int> islands;
  for (int t = 0; t < graph.size(); ++t) {
    const Task& task = graph.task(t);
    if (!task.alone()) islands.insert(task.islands().begin(), task.islands().end());
    for (const BatchRange& range : cut.partition.tasks[at(t)].ranges) {
      std::fill_n(rank_of_entry.begin() + waves.batch(range.batch).entry + range.lanes.first,
                  range.lanes.last - range.lanes.first, cut.rank_of_task[at(t)]);
    }
  }
  std::vector<int> all(at(waves.system().island_count()));
  std::iota(all.begin(), all.end(), 0);
  const auto count = static_cast<int>(model.ranks.size());
  const std::vector<int> cut_islands(islands.begin(), islands.end());
  const auto bytes_of = [&](std::span<const int> those, int terms, int values) {
    return SharedSums::bytes_of_ranks(waves.reduction(), rank_of_entry, those, count, terms,
                                      values);
  };
  const auto gaps = bytes_of(cut_islands, 3, 4), energies = bytes_of(all, 6, 7);
  const auto products = bytes_of(cut_islands, measured.products, measured.products);
  for (std::size_t r = 0; r < model.ranks.size(); ++r) {
    model.ranks[r].evaluation_bytes = gaps[r] + products[r];
    if (measured.has_ledger) model.ranks[r].step_bytes = energies[r];
  }
}

}  // namespace

RankStepModel RankLayout::frame(int ranks, bool is_any_cut) const {
  const System& system = stepped_.get().system;
  RankStepModel model;
  model.ranks.resize(at(ranks));
  model.iterations = iterations_;
  model.begin_s = measured_.times.begin_s;
  model.common_s = ledger_s_;
  model.copy_s_per_B = copy_s_per_B_;
  model.order_bytes = kOrderBytes + 8 * static_cast<std::int64_t>(system.initial_settings().size());
  model.is_driven = waves_.driven();
  model.is_judged = measured_.is_judged && is_any_cut;
  return model;
}

RankLayout::Dealt RankLayout::deal(int ranks, int threads) const {
  const RankCut by_rank = cut_for_ranks(waves_, costs_, stepped_.get().options.grain, ranks,
                                        threads, iterations_, measured_.may_solve);
  const Partition& partition = by_rank.partition;
  const std::vector<int>& rank_of_task = by_rank.rank_of_task;
  const TaskGraph graph(waves_, partition);
  bool is_any_cut = false;
  for (int t = 0; t < graph.size(); ++t) is_any_cut = is_any_cut || !graph.task(t).alone();

  Dealt dealt{.model = frame(ranks, is_any_cut),
              .ranks = std::vector<PlannedRank>(at(ranks)),
              .parts = static_cast<std::int64_t>(waves_.slots().size()),
              .tasks = graph.size()};
  std::vector<TaskTimes> times(at(ranks));
  TaskTimes whole;
  for (int t = 0; t < graph.size(); ++t) {
    const Partition::Task& cut = partition.tasks[at(t)];
    const int own = rank_of_task[at(t)];
    if (own == RankShares::kEvery) {
      dealt.whole_parts += parts_of(cut);
      whole.core_s.push_back(iterate_s(cut.ranges));
      whole.commit_s.push_back(commit_s(cut));
      continue;
    }
    const Task& task = graph.task(t);
    const bool is_awaited = std::ranges::any_of(
        task.neighbours(), [&](int other) { return rank_of_task[at(other)] != own; });
    const double all_s = iterate_s(cut.ranges);
    const double edge_s = is_awaited ? std::min(iterate_s(task.edge()), all_s) : 0.0;
    if (is_awaited) times[at(own)].edge_s.push_back(edge_s);
    times[at(own)].core_s.push_back(all_s - edge_s);
    times[at(own)].commit_s.push_back(commit_s(cut));
    PlannedRank& rank = dealt.ranks[at(own)];
    rank.parts += parts_of(cut);
    ++rank.tasks;
    rank.iterate_s += all_s * iterations_;
    rank.commit_s += commit_s(cut);
    if (!task.alone()) continue;
    dealt.model.ranks[at(own)].note_bytes +=
        static_cast<std::int64_t>(task.islands().size() * sizeof(IslandOutcome));
  }
  for (std::size_t r = 0; r < times.size(); ++r) {
    RankWork& rank = dealt.model.ranks[r];
    schedule(times[r], whole, threads, rank);
    rank.parts = dealt.ranks[r].parts;
    rank.note_bytes += kHeadBytes;
  }
  count_messages(graph, rank_of_task, dealt);
  count_sums(waves_, graph, by_rank, measured_, dealt.model);
  return dealt;
}

}  // namespace portwave
