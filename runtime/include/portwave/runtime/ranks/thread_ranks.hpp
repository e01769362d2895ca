#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "portwave/runtime/ranks/ranks.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Deliberate disturbances of the transport of run_thread_ranks.
struct ThreadRanksOptions {
  /// Number of evaluations by which a message is late in an asynchronous exchange, ≥ 0. Called for every
  /// message from one rank to another, by several threads. Results do not depend on timing: waves are late
  /// by this number, or by as much as `max_delay` allows. Empty: messages are not delayed.
  std::function<int(int from, int to, std::uint64_t number)> lateness = {};
  /// Seed of random pauses of up to 50 µs before calls; 0: none.
  unsigned seed = 0;
};

/// Runs body(ranks) as each of `size` ≥ 1 ranks, on as many threads of this process, and returns when all
/// have returned. For experiments with ranks (portwave study delay); several threads of one rank are
/// faster. Errors: the exception of the lowest rank's body; a body that throws alone leaves others waiting.
void run_thread_ranks(int size, const std::function<void(const std::shared_ptr<Ranks>&)>& body,
                      const ThreadRanksOptions& options = {});

}  // namespace portwave
