#include <algorithm>
#include <cstddef>
#include <vector>

#include "fork_join.hpp"
#include "inner_loop.hpp"

namespace portwave {
namespace {

class TbbExecutor final : public Executor {
 public:
  TbbExecutor(WaveDiscretisation& waves, int threads, int grain)
      : waves_(waves), residual_(waves), threads_(threads), fork_join_(threads) {
    for (int i = 0; i < static_cast<int>(waves.batches().size()); ++i) {
      const int count = waves.batches()[static_cast<std::size_t>(i)].batch->lanes();
      for (int first = 0; first < count; first += grain) {
        lane_tasks_.push_back({i, {first, std::min(first + grain, count)}});
      }
    }
    const int junctions = waves.interconnection().size();
    for (int first = 0; first < junctions; first += grain) {
      junction_tasks_.push_back({first, std::min(first + grain, junctions)});
    }
    statuses_.resize(lane_tasks_.size());
  }

  int threads() const override { return threads_; }

  PhaseStatus freeze(const double* x, const double* input) override {
    return for_lanes([&](const LaneTask& t) { return waves_.freeze(t.batch, t.lanes, x, input); });
  }
  InnerResult iterate(const InnerIteration& inner, double* u, double* b, double* a) override {
    return run_inner_loop(*this, residual_, waves_.wave_size(), inner, u, b, a);
  }
  PhaseStatus advance(const double* a, double* x_next, double* b, StepEnergy* energy) override {
    return for_lanes(
        [&](const LaneTask& t) { return waves_.advance(t.batch, t.lanes, a, x_next, b, energy); });
  }
  void exchange(const double* b, double* a) override {
    for_junctions([&](JunctionRange r) { waves_.interconnection().exchange(r, b, a); });
  }

  PhaseStatus scatter(const double* a, double* b) {
    return for_lanes([&](const LaneTask& t) { return waves_.scatter(t.batch, t.lanes, a, b); });
  }
  void douglas_rachford(double relaxation, const double* b, double* u) {
    for_junctions(
        [&](JunctionRange r) { waves_.interconnection().douglas_rachford(r, relaxation, b, u); });
  }

 private:
  /// A run of lanes of one batch: the unit of work that is handed to a thread.
  struct LaneTask {
    int batch;
    LaneRange lanes;
  };

  template <class Body>
  PhaseStatus for_lanes(const Body& body) {
    fork_join_.run(static_cast<int>(lane_tasks_.size()), [&](int i) {
      const auto task = static_cast<std::size_t>(i);
      statuses_[task] = body(lane_tasks_[task]);
    });
    PhaseStatus status;
    for (PhaseStatus& one : statuses_) status.merge(std::move(one));
    return status;
  }

  template <class Body>
  void for_junctions(const Body& body) {
    fork_join_.run(static_cast<int>(junction_tasks_.size()),
                   [&](int i) { body(junction_tasks_[static_cast<std::size_t>(i)]); });
  }

  WaveDiscretisation& waves_;
  InterfaceResidual residual_;
  int threads_;
  ForkJoin fork_join_;
  std::vector<LaneTask> lane_tasks_;
  std::vector<JunctionRange> junction_tasks_;
  std::vector<PhaseStatus> statuses_;
};

}  // namespace

std::unique_ptr<Executor> make_tbb_executor(WaveDiscretisation& waves, int threads,
                                            int lanes_per_task) {
  return std::make_unique<TbbExecutor>(waves, threads, std::max(1, lanes_per_task));
}

}  // namespace portwave
