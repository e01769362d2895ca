#include "execution/parallel_for_each.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/task_arena.h>

#include "execution/fork_join.hpp"
#include "execution/worker_team.hpp"

namespace portwave {
namespace {

/// Below this a second thread brings nothing.
constexpr double kWorthFork_ns = 8000.0;

using Call = void (*)(const void* body, int i);

/// Indices that are still to be run are in one word per thread, [first, last). A range is taken
/// from by compare and swap, so that each index is taken once. The job is over when all bodies have
/// returned; until then nobody writes `call_` and `body_`, and whoever has taken indices reads
/// those of the job that the indices belong to: a word that compared equal holds indices of the
/// present job, whichever it is.
class Team final : private WorkerTeam::Work {
 public:
  Team(int threads, const std::shared_ptr<Arena>& arena)
      : ranges_(static_cast<std::size_t>(threads)), workers_(threads, *this, arena) {}
  // Workers must be gone before anything they use is.
  ~Team() { workers_.dismiss(); }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  void run(int count, Call call, const void* body) {
    call_ = call;
    body_ = body;
    left_.store(count, std::memory_order_relaxed);
    const auto shares = static_cast<std::int64_t>(ranges_.size());
    for (std::int64_t r = 0; r < shares; ++r) {
      const auto first = static_cast<std::uint64_t>(count * r / shares);
      const auto last = static_cast<std::uint64_t>(count * (r + 1) / shares);
      // Whoever takes from it sees the job.
      ranges_[static_cast<std::size_t>(r)].word.store(last << 32U | first,
                                                      std::memory_order_release);
    }
    if (ranges_.size() > 1) workers_.summon();
    work(0);
    for (int turns = 0; left_.load(std::memory_order_acquire) > 0; ++turns) back_off(turns);
  }

 private:
  struct alignas(128) Range {
    std::atomic<std::uint64_t> word{0};  ///< last · 2³² + first; empty: first ≥ last
  };
  struct Indices {
    int first = 0, last = 0;
  };

  bool try_work(int worker) noexcept override {
    if (left_.load(std::memory_order_relaxed) <= 0) return false;
    return work(static_cast<std::size_t>(worker) % ranges_.size());
  }

  /// Runs what is left, one's own first. False when there was nothing.
  bool work(std::size_t own) {
    int done = 0;
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      Range& range = ranges_[(own + i) % ranges_.size()];
      for (;;) {
        const Indices taken = take(range);
        if (taken.first >= taken.last) break;
        for (int k = taken.first; k < taken.last; ++k) call_(body_, k);
        done += taken.last - taken.first;
      }
    }
    if (done > 0) left_.fetch_sub(done, std::memory_order_acq_rel);
    return done > 0;
  }

  /// A quarter of what is left, so that the ends are shared finely.
  static Indices take(Range& range) {
    std::uint64_t word = range.word.load(std::memory_order_relaxed);
    for (;;) {
      const auto first = static_cast<std::uint32_t>(word);
      const auto last = static_cast<std::uint32_t>(word >> 32U);
      if (first >= last) return {};
      const std::uint32_t some = first + 1 + (last - first - 1) / 4;
      const std::uint64_t rest = std::uint64_t{last} << 32U | some;
      if (range.word.compare_exchange_weak(word, rest, std::memory_order_acq_rel,
                                           std::memory_order_relaxed)) {
        return {static_cast<int>(first), static_cast<int>(some)};
      }
    }
  }

  // Of the job. Written before the ranges are.
  Call call_ = nullptr;
  const void* body_ = nullptr;
  alignas(128) std::atomic<int> left_{0};  ///< bodies that have not returned
  std::vector<Range> ranges_;              ///< by thread
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

class BarrierForEach final : public ForEach {
 public:
  explicit BarrierForEach(int threads) : fork_join_(std::make_unique<ForkJoin>(threads)) {}

 private:
  void run(int count, Call call, const void* body) const override {
    fork_join_->run(count, [call, body](int i) { call(body, i); });
  }

  std::unique_ptr<ForkJoin> fork_join_;
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

std::unique_ptr<ForEach> make_parallel(const StepperOptions& options) {
  const ExecutorKind executor = options.executor;
  const int threads = options.threads;
  if (executor == ExecutorKind::graph) return make_graph_for_each(threads);
  if (executor == ExecutorKind::barrier) return make_barrier_for_each(threads);
  return make_team_for_each(threads, options.arena);
}

}  // namespace

std::unique_ptr<ForEach> make_team_for_each(int threads) {
  return make_team_for_each(threads, nullptr);
}
std::unique_ptr<ForEach> make_team_for_each(int threads, const std::shared_ptr<Arena>& arena) {
  return std::make_unique<TeamForEach>(threads, arena);
}
std::unique_ptr<ForEach> make_barrier_for_each(int threads) {
  return std::make_unique<BarrierForEach>(threads);
}
std::unique_ptr<ForEach> make_graph_for_each(int threads) {
  return std::make_unique<GraphForEach>(threads);
}

BlockRunner make_block_runner(const StepperOptions& options, int tasks, double shared_cost_ns) {
  const int threads = options.threads;
  const bool automatic = options.executor == ExecutorKind::automatic;
  BlockRunner runner;
  runner.serial = std::make_unique<ForEach>();
  runner.description = "serial";
  if (options.executor == ExecutorKind::serial || (automatic && threads == 1)) return runner;
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
  runner.parallel = make_parallel(options);
  runner.chooses = automatic;
  runner.threads = threads;
  runner.tasks = std::max(tasks, 1);
  const std::string who =
      automatic ? "serial or async, whichever is faster" : std::string(to_string(options.executor));
  runner.description =
      fmt::format("{}, {} task{}", who, runner.tasks, runner.tasks == 1 ? "" : "s");
  return runner;
}

}  // namespace portwave
