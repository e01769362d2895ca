#include "parallel/threads/parallel_for_each.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/task_arena.h>

#include "parallel/threads/fork_join.hpp"
#include "parallel/threads/shared_loop.hpp"
#include "parallel/threads/worker_team.hpp"

namespace portwave {
namespace {

/// Below this a second thread brings nothing.
constexpr double kWorthFork_ns = 8000.0;

using Call = SharedLoop::Call;

/// A loop and workers of its own.
class Team final : private WorkerTeam::Work {
 public:
  Team(int threads, const std::shared_ptr<Arena>& arena)
      : loop_(threads), workers_(threads, *this, arena) {}
  // Workers must be gone before anything they use is.
  ~Team() { workers_.dismiss(); }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  void run(int count, Call call, const void* body) { loop_.run(count, call, body, workers_); }

 private:
  bool try_work(int worker) noexcept override { return loop_.try_work(worker); }

  SharedLoop loop_;
  WorkerTeam workers_;
};

class TeamForEach final : public ForEach {
 public:
  TeamForEach(int threads, const std::shared_ptr<Arena>& arena)
      : team_(std::make_unique<Team>(threads, arena)) {}

 private:
  void run(int count, Call call, const void* body) const override {
    if (count > 0) team_->run(count, call, body);
  }

  std::unique_ptr<Team> team_;
};

/// A graph for each count that there was.
class Graphs {
 public:
  explicit Graphs(int threads) : arena_(threads) {}

  void run(int count, Call call, const void* body) {
    call_ = call;
    body_ = body;
    arena_.execute([&] {
      std::unique_ptr<Graph>& graph = graphs_[count];
      if (graph == nullptr) graph = make(count);
      ForkJoin::before_fork();
      graph->start.try_put({});
      graph->graph.wait_for_all();
      ForkJoin::after_join();
    });
  }

 private:
  using Message = tbb::flow::continue_msg;
  using Node = tbb::flow::continue_node<Message>;

  struct Graph {
    tbb::flow::graph graph;
    tbb::flow::broadcast_node<Message> start{graph};
    std::vector<std::unique_ptr<Node>> nodes;
  };

  std::unique_ptr<Graph> make(int count) {
    auto made = std::make_unique<Graph>();
    for (int i = 0; i < count; ++i) {
      made->nodes.push_back(std::make_unique<Node>(made->graph, [this, i](Message message) {
        ForkJoin::after_fork();
        call_(body_, i);
        ForkJoin::before_join();
        return message;
      }));
      tbb::flow::make_edge(made->start, *made->nodes.back());
    }
    return made;
  }

  tbb::task_arena arena_;
  std::map<int, std::unique_ptr<Graph>> graphs_;
  // Of the job.
  Call call_ = nullptr;
  const void* body_ = nullptr;
};

class GraphForEach final : public ForEach {
 public:
  explicit GraphForEach(int threads) : graphs_(std::make_unique<Graphs>(threads)) {}

 private:
  void run(int count, Call call, const void* body) const override {
    if (count > 0) graphs_->run(count, call, body);
  }

  std::unique_ptr<Graphs> graphs_;
};

std::unique_ptr<ForEach> make_parallel(ExecutorKind executor, int threads,
                                       const std::shared_ptr<Arena>& arena) {
  if (executor == ExecutorKind::graph) return make_graph_for_each(threads);
  return make_team_for_each(threads, arena);
}

}  // namespace

std::unique_ptr<ForEach> make_team_for_each(int threads) {
  return make_team_for_each(threads, nullptr);
}
std::unique_ptr<ForEach> make_team_for_each(int threads, const std::shared_ptr<Arena>& arena) {
  return std::make_unique<TeamForEach>(threads, arena);
}
std::unique_ptr<ForEach> make_graph_for_each(int threads) {
  return std::make_unique<GraphForEach>(threads);
}

BlockRunner make_block_runner(ExecutorKind executor, int threads,
                              const std::shared_ptr<Arena>& arena, int tasks,
                              double shared_cost_ns) {
  const bool automatic = executor == ExecutorKind::automatic;
  BlockRunner runner;
  runner.serial = std::make_unique<ForEach>();
  runner.description = "serial";
  if (executor == ExecutorKind::serial || (automatic && threads == 1)) return runner;
  if (automatic && tasks <= 1) {
    runner.description += " (one task: nothing to share)";
    return runner;
  }
  if (automatic && shared_cost_ns < kWorthFork_ns) {
    runner.description += fmt::format(
        " (what {} threads could share of a step takes about {:.2g} us, which is too short)",
        threads, shared_cost_ns * 1e-3);
    return runner;
  }
  runner.parallel = make_parallel(executor, threads, arena);
  runner.chooses = automatic;
  runner.threads = threads;
  runner.tasks = std::max(tasks, 1);
  const std::string who =
      automatic ? "serial or async, whichever is faster" : std::string(to_string(executor));
  runner.description =
      fmt::format("{}, {} task{}", who, runner.tasks, runner.tasks == 1 ? "" : "s");
  return runner;
}

}  // namespace portwave
