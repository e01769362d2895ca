#include <map>
#include <memory>
#include <vector>

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/task_arena.h>

#include "parallel/executors/layered_executor.hpp"
#include "parallel/threads/fork_join.hpp"

namespace portwave {
namespace {

/// One node per task and iteration, each waiting for the iteration before of the task itself and of
/// its neighbours.
class GraphExecutor final : public LayeredExecutor {
 public:
  GraphExecutor(const WaveDiscretisation& waves, const Partition& partition, int threads)
      : LayeredExecutor(waves, partition, threads), arena_(threads) {}

 private:
  using Node = tbb::flow::continue_node<tbb::flow::continue_msg>;

  /// `layers` iterations from `first` on.
  struct Layers {
    tbb::flow::graph graph;
    tbb::flow::broadcast_node<tbb::flow::continue_msg> start{graph};
    std::vector<std::unique_ptr<Node>> nodes;  // layer by layer
  };
  /// More layers than this are run in several goes.
  static constexpr int kMostLayers = 64;

  void for_tasks(const std::function<void(int)>& body) override {
    body_ = &body;
    arena_.execute([&] {
      if (flat_ == nullptr) make_flat();
      ForkJoin::before_fork();
      flat_->start.try_put({});
      flat_->graph.wait_for_all();
      ForkJoin::after_join();
    });
  }

  /// One layer, for whatever body there is.
  void make_flat() {
    flat_ = std::make_unique<Layers>();
    for (int i = 0; i < tasks(); ++i) {
      flat_->nodes.push_back(
          std::make_unique<Node>(flat_->graph, [this, i](tbb::flow::continue_msg message) {
            ForkJoin::Ordered ordered;
            (*body_)(i);
            return message;
          }));
      tbb::flow::make_edge(flat_->start, *flat_->nodes.back());
    }
  }

  bool run_fixed(int iterations) override {
    for (first_ = 0; first_ < iterations; first_ += kMostLayers) {
      const int layers = std::min(kMostLayers, iterations - first_);
      arena_.execute([&] {
        Layers& ready = layered(layers);
        ForkJoin::before_fork();
        ready.start.try_put({});
        ready.graph.wait_for_all();
        ForkJoin::after_join();
      });
    }
    return true;
  }

  Layers& layered(int layers) {
    std::unique_ptr<Layers>& made = graphs_[layers];
    if (made != nullptr) return *made;
    made = std::make_unique<Layers>();
    const auto node = [&](int layer, int task) -> Node& {
      return *made->nodes[static_cast<std::size_t>(layer * tasks() + task)];
    };
    for (int layer = 0; layer < layers; ++layer) {
      for (int i = 0; i < tasks(); ++i) {
        made->nodes.push_back(
            std::make_unique<Node>(made->graph, [this, layer, i](tbb::flow::continue_msg message) {
              ForkJoin::Ordered ordered;
              iterate(i, first_ + layer);
              return message;
            }));
        if (layer == 0) {
          tbb::flow::make_edge(made->start, node(0, i));
          continue;
        }
        tbb::flow::make_edge(node(layer - 1, i), node(layer, i));
        for (const int j : graph().task(i).neighbours()) {
          tbb::flow::make_edge(node(layer - 1, j), node(layer, i));
        }
      }
    }
    return *made;
  }

  tbb::task_arena arena_;
  std::map<int, std::unique_ptr<Layers>> graphs_;
  std::unique_ptr<Layers> flat_;
  const std::function<void(int)>* body_ = nullptr;
  int first_ = 0;  // iteration of the first layer in the graph that runs
};

}  // namespace

std::unique_ptr<Executor> make_graph_executor(const WaveDiscretisation& waves,
                                              const Partition& partition, int threads) {
  return std::make_unique<GraphExecutor>(waves, partition, threads);
}

}  // namespace portwave
