#pragma once

#include <memory>

#include "parallel/executors/executor.hpp"
#include "ranks/rank_shares.hpp"

namespace portwave {

/// The tasks of this rank, on the calling thread and others; the tasks of other ranks elsewhere. What all
/// need to know at the end of a step is then known to all: energies by part, outcomes, and how it
/// failed. `max_delay`: evaluations that waves of other ranks may be late; then only for fixed budgets.
std::unique_ptr<Executor> make_rank_executor(const WaveDiscretisation& waves,
                                             const Partition& partition, int threads,
                                             std::shared_ptr<RankShares> shares, int max_delay = 0);

}  // namespace portwave
