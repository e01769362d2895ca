#pragma once

#include <memory>
#include <utility>

#include <oneapi/tbb/task_arena.h>

#include "portwave/runtime/parallel/arena.hpp"

namespace portwave {

struct Arena::Impl {
  explicit Impl(tbb::task_arena given) : arena(std::move(given)) {}

  tbb::task_arena arena;
};

/// The arena of somebody else, or one of their own for so many workers beside the caller.
inline std::shared_ptr<tbb::task_arena> arena_for_workers(const std::shared_ptr<Arena>& shared,
                                                          int workers) {
  if (shared != nullptr) return {shared, &shared->impl().arena};
  return std::make_shared<tbb::task_arena>(workers, /*reserved_for_masters=*/0);
}

}  // namespace portwave
