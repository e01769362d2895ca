#include "parallel/runner.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace portwave {
namespace {

/// Below this a step is over before a second thread could help.
constexpr double kWorthThreads_ns = 4000.0;

}  // namespace

Runner make_runner(const WaveDiscretisation& waves, const RunnerOptions& options,
                   const double* record, LaneCosts& costs) {
  const int threads = options.threads;
  const bool automatic = options.executor == ExecutorKind::automatic;
  const auto serial = [&] {
    return make_serial_executor(waves, whole_island_groups(waves, costs), options.trace);
  };
  // Costs do not change the contents of these.
  const auto serial_runner = [&](std::string description) {
    return Runner{serial(), std::move(description), {}, whole_island_groups(waves, costs)};
  };
  if (options.executor == ExecutorKind::serial) return serial_runner("serial");
  if (const int part = first_single_threaded(waves); part >= 0 && threads > 1) {
    const std::string& name = waves.system().name_of_part(part);
    return serial_runner(fmt::format("serial (subsystem \"{}\" is not thread-safe)", name));
  }
  if (automatic && threads == 1) return serial_runner("serial");
  costs = measured_costs(waves, record);
  const Partition partition =
      make_partition(waves, costs, options.grain, threads, options.iterations);
  const double step_ns =
      partition.iteration_cost_ns * options.iterations + partition.commit_cost_ns;
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
      return {make_async_executor(waves, partition, threads, options.arena, options.trace),
              "async, " + tasks,
              partition,
              {}};
    default:
      return {make_automatic_executor(serial(), make_async_executor(waves, partition, threads,
                                                                    options.arena, options.trace)),
              "serial or async, whichever is faster, " + tasks, partition,
              whole_island_groups(waves, costs)};
  }
}

int first_single_threaded(const WaveDiscretisation& waves) {
  int first = -1;
  for (const BatchSlot& slot : waves.batches()) {
    if (slot.capabilities.thread_safe) continue;
    for (const int part : slot.parts) first = first < 0 ? part : std::min(first, part);
  }
  return first;
}

WaveDiscretisation::Grouping grouping_for(const Grain& grain) {
  return grain.kind == Grain::Kind::part ? WaveDiscretisation::Grouping::none
                                         : WaveDiscretisation::Grouping::by_shape;
}

}  // namespace portwave
