#pragma once

#include <memory>

#include "parallel/executors/executor.hpp"
#include "ranks/rank_shares.hpp"

namespace portwave {

/// An executor for the tasks of this rank, on the calling thread and others. After a step every rank knows
/// the sums of energies, the outcomes of all islands, and the failure if there is one. `max_delay`: the
/// evaluations that waves of other ranks may be late; above 0 only with a fixed budget. All ranks call it.
std::unique_ptr<Executor> make_rank_executor(const WaveDiscretisation& waves,
                                             const Partition& partition, int threads,
                                             std::shared_ptr<RankShares> shares, int max_delay);

}  // namespace portwave
