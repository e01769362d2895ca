#pragma once

#include <functional>

#include "parallel/executors/layered_executor.hpp"
#include "parallel/threads/fork_join.hpp"

namespace portwave::bench {

/// To compare others with: tbb::parallel_for over the tasks, and a barrier after every phase.
class BarrierExecutor final : public LayeredExecutor {
 public:
  BarrierExecutor(const WaveDiscretisation& waves, const Partition& partition, int threads)
      : LayeredExecutor(waves, partition, threads), fork_join_(threads) {}

 private:
  void for_tasks(const std::function<void(int)>& body) override { fork_join_.run(tasks(), body); }

  ForkJoin fork_join_;
};

}  // namespace portwave::bench
