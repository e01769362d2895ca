#include "portwave/coupling/waves/chunk_loop.hpp"

#include <algorithm>
#include <exception>
#include <mutex>

namespace portwave {

std::size_t ChunkLoop::list(std::span<const int> islands) {
  std::size_t parts = 0;
  chunks_.clear();
  for (const int island : islands) {
    const auto [first, last] = parts_.chunks_of(island);
    for (int chunk = first; chunk < last; ++chunk) chunks_.push_back(chunk);
    parts += parts_.parts_of(island).size();
  }
  return parts;
}

void ChunkLoop::share(const std::function<void(std::size_t first, std::size_t last)>& visit) const {
  // Several blocks for each thread, so that a late thread does not hold up the others.
  constexpr std::size_t kPerThread = 4;
  const std::size_t count =
      std::min(chunks_.size(), kPerThread * static_cast<std::size_t>(threads_));
  std::exception_ptr failure;  // that of the first part that throws, whichever thread finds it
  int of_block = 0;
  std::mutex failing;
  (*for_each_)(static_cast<int>(count), [&](int block) {
    const auto i = static_cast<std::size_t>(block);
    try {
      visit(chunks_.size() * i / count, chunks_.size() * (i + 1) / count);
    } catch (...) {  // a part's
      const std::lock_guard lock(failing);
      if (failure && of_block < block) return;
      failure = std::current_exception();
      of_block = block;
    }
  });
  if (failure) std::rethrow_exception(failure);
}

}  // namespace portwave
