#include "portwave/runtime/execution/arena.hpp"

#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "execution/arena_impl.hpp"
#include "portwave/runtime/execution/stepper.hpp"

namespace portwave {

Arena::Arena(int threads) {
  if (threads < 1 || threads > kMaxThreads) {
    throw std::invalid_argument(
        fmt::format("an arena has 1 to {} threads, got {}", kMaxThreads, threads));
  }
  impl_ = std::make_unique<Impl>(tbb::task_arena(threads, /*reserved_for_masters=*/1));
}

Arena::Arena(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Arena::~Arena() = default;

std::shared_ptr<Arena> Arena::current() {
  auto impl = std::make_unique<Impl>(tbb::task_arena(tbb::task_arena::attach()));
  return std::shared_ptr<Arena>(new Arena(std::move(impl)));
}

int Arena::threads() const { return impl_->arena.max_concurrency(); }

}  // namespace portwave
