#include "step/runner.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ranks/rank_shares.hpp"
#include "step/rank_agreement.hpp"

namespace portwave {
namespace {

/// The first part that only one thread at a time may step; −1: none.
int find_single_threaded(const WaveDiscretisation& waves) {
  int first = -1;
  for (const BatchSlot& slot : waves.batches()) {
    if (slot.capabilities.thread_safe) continue;
    for (const int part : slot.parts) first = first < 0 ? part : std::min(first, part);
  }
  return first;
}

/// The first rank decides for all: every rank cuts the system alike.
LaneCosts costs_of_first_rank(Ranks& ranks, LaneCosts own) {
  const auto agree = [&](std::vector<double>& costs) {
    const std::size_t bytes = costs.size() * sizeof(double);
    std::vector<std::size_t> sizes(static_cast<std::size_t>(ranks.size()), 0);
    sizes[0] = bytes;
    std::vector<double> all(costs.size());
    const std::span<const double> given =
        ranks.rank() == 0 ? std::span<const double>(costs) : std::span<const double>();
    ranks.gather(std::as_bytes(given), sizes, std::as_writable_bytes(std::span(all)));
    costs = std::move(all);
  };
  agree(own.scatter_ns);
  agree(own.advance_ns);
  return own;
}

/// An island of one task belongs to one rank; if its interface equation may be solved, which takes all of
/// the island, the solve is every rank's work.
Runner make_rank_runner(const WaveDiscretisation& waves, const StepperOptions& options,
                        int iterations, bool may_solve, const double* record, LaneCosts& costs) {
  const std::shared_ptr<Ranks>& ranks = options.ranks;
  const int threads = find_single_threaded(waves) >= 0 ? 1 : options.threads;
  const int max_delay = options.method.waves().exchange.delay();
  if (waves.system().slice() != nullptr) {
    costs = measured_costs(waves, record);
    const RankCut cut = cut_of_slice(waves, costs, options.grain, threads, iterations);
    auto shares = std::make_shared<RankShares>(waves, cut, ranks);
    std::string description = fmt::format("{} tasks on the first of {} ranks, in slices",
                                          shares->own_tasks().size(), ranks->size());
    return {make_rank_executor(waves, cut.partition, threads, shares, 0),
            std::move(description),
            cut.partition,
            {},
            shares};
  }
  // The choice of waves that may be late affects results, so it must not depend on a measurement.
  costs = max_delay > 0 ? declared_costs(waves)
                        : costs_of_first_rank(*ranks, measured_costs(waves, record));
  const RankCut cut = cut_for_ranks(waves, costs, options.grain, ranks->size(), threads, iterations,
                                    may_solve, ranks.get());
  expect_same_cut(cut, *ranks);
  const Partition& partition = cut.partition;
  auto shares = std::make_shared<RankShares>(waves, cut, ranks);
  std::string description = fmt::format(
      "{} tasks on {} ranks, {} of them on the first", partition.tasks.size(), ranks->size(),
      std::ranges::count_if(shares->ranks_of_tasks(),
                            [](int rank) { return rank == 0 || rank == RankShares::kEvery; }));
  if (max_delay > 0) description += fmt::format(", waves up to {} late", max_delay);
  return {make_rank_executor(waves, partition, threads, shares, max_delay),
          std::move(description),
          partition,
          {},
          shares};
}

/// Below this a step is over before a second thread could help.
constexpr double kWorthThreads_ns = 4000.0;

}  // namespace

Runner make_runner(const WaveDiscretisation& waves, const StepperOptions& options, int iterations,
                   bool may_solve, const double* record, LaneCosts& costs, StepTrace* trace) {
  if (options.ranks != nullptr && options.ranks->size() > 1) {
    return make_rank_runner(waves, options, iterations, may_solve, record, costs);
  }
  const int threads = options.threads;
  const bool automatic = options.executor == ExecutorKind::automatic;
  const auto serial = [&] {
    return make_serial_executor(waves, whole_island_groups(waves, costs), trace);
  };
  // Costs do not change the contents of these.
  const auto serial_runner = [&](std::string description) {
    return Runner{serial(), std::move(description), {}, whole_island_groups(waves, costs)};
  };
  if (options.executor == ExecutorKind::serial) return serial_runner("serial");
  if (const int part = find_single_threaded(waves); part >= 0 && threads > 1) {
    const std::string& name = waves.system().name_of_part(part);
    return serial_runner(fmt::format("serial (subsystem \"{}\" is not thread-safe)", name));
  }
  if (automatic && threads == 1) return serial_runner("serial");
  costs = measured_costs(waves, record);
  const Partition partition = make_partition(waves, costs, options.grain, threads, iterations);
  const double step_ns = partition.iteration_cost_ns * iterations + partition.commit_cost_ns;
  if (automatic && step_ns < kWorthThreads_ns) {
    return serial_runner(fmt::format(
        "serial (a step of about {:.2g} us is too short for {} threads)", step_ns * 1e-3, threads));
  }
  if (automatic && partition.tasks.size() == 1) {
    return serial_runner("serial (one task: nothing to share)");
  }
  const std::string tasks =
      fmt::format("{} task{}", partition.tasks.size(), partition.tasks.size() == 1 ? "" : "s");
  switch (options.executor) {
    case ExecutorKind::graph:
      return {make_graph_executor(waves, partition, threads), "graph, " + tasks, {}, {}};
    case ExecutorKind::async:
      return {make_async_executor(waves, partition, threads, options.arena, trace),
              "async, " + tasks,
              partition,
              {}};
    default:
      return {make_automatic_executor(
                  serial(), make_async_executor(waves, partition, threads, options.arena, trace)),
              "serial or async, whichever is faster, " + tasks, partition,
              whole_island_groups(waves, costs)};
  }
}

WaveDiscretisation::Grouping grouping_for(const StepperOptions& options) {
  return options.grain.kind == Grain::Kind::part ? WaveDiscretisation::Grouping::none
                                                 : WaveDiscretisation::Grouping::by_shape;
}

}  // namespace portwave
