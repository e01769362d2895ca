#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "portwave/runtime/ranks/ranks.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// What the transport of run_thread_ranks does on purpose.
struct ThreadRanksOptions {
  /// By how many evaluations a message comes late in an asynchronous exchange, ≥ 0. Asked for every
  /// message from one rank to another; called by several threads. What comes of it does not depend on
  /// timing: waves are late by so much, or as much as `max_delay` allows. Empty: they come as they come.
  std::function<int(int from, int to, std::uint64_t number)> lateness = {};
  /// Of random pauses of up to 50 µs before calls; 0: none.
  unsigned seed = 0;
};

/// Runs body(ranks) as each of `size` ≥ 1 ranks, on as many threads of this process, and returns when all
/// have returned. To try out what ranks do (portwave study delay); several threads of one rank are
/// faster. Errors: what a body throws, the lowest rank's; a body that throws alone leaves others waiting.
void run_thread_ranks(int size, const std::function<void(const std::shared_ptr<Ranks>&)>& body,
                      const ThreadRanksOptions& options = {});

}  // namespace portwave
