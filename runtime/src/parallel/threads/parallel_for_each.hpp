#pragma once

#include <memory>
#include <string>

#include "portwave/runtime/parallel/arena.hpp"
#include "portwave/runtime/parallel/executor_kind.hpp"
#include "portwave/subsystems/base/for_each.hpp"

namespace portwave {

// Bodies run on threads of oneTBB; they must not throw. Calls take no memory of their own, but for
// the graph's first call with a new count.

/// A fork and join over a WorkerTeam. Indices are dealt out in ranges, one per thread; who is done
/// with his own takes from the others'. The caller never waits for a worker that has not come, only
/// for bodies that somebody is in.
/// Cost: some 0.2 µs for each of two threads while the workers are there.
std::unique_ptr<ForEach> make_team_for_each(int threads);
/// The same with workers of that arena.
std::unique_ptr<ForEach> make_team_for_each(int threads, const std::shared_ptr<Arena>& arena);
/// tbb::parallel_for.
/// A tbb::flow::graph with a node per index; one is kept for each count.
std::unique_ptr<ForEach> make_graph_for_each(int threads);

/// Who runs the tasks of a network.
struct BlockRunner {
  std::unique_ptr<ForEach> serial;
  std::unique_ptr<ForEach> parallel;  ///< null: serial alone
  bool chooses = false;  ///< whichever of the two the clock finds faster, else the parallel one
  int threads = 1;
  int tasks = 1;
  std::string description;  ///< what Stepper::execution says
};

/// What is asked for, with workers of `arena` unless it is null. `tasks` and `shared_cost_ns`: see
/// NetworkMethod.
BlockRunner make_block_runner(ExecutorKind executor, int threads,
                              const std::shared_ptr<Arena>& arena, int tasks,
                              double shared_cost_ns);

}  // namespace portwave
