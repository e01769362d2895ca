#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "portwave/coupling/waves/part_order_reduction.hpp"
#include "portwave/subsystems/base/for_each.hpp"

namespace portwave {

/// Loops over the chunks of islands (PartOrderReduction), on several threads if there are any and the parts
/// are many. The visiting thread makes no difference to the result.
///
/// Nothing is allocated after construction. Thread-safety: none.
class ChunkLoop {
 public:
  /// Parts below which one thread is faster.
  static constexpr std::size_t kWorthSharing = 1024;

  explicit ChunkLoop(const PartOrderReduction& parts) : parts_(parts) {
    chunks_.reserve(static_cast<std::size_t>(parts.chunk_count()));
  }

  /// Sets the helpers and the number of their threads from now on; null: no helpers.
  void share_with(const ForEach* for_each, int threads) {
    for_each_ = for_each;
    threads_ = threads;
  }

  /// visit(k, chunk) for the chunks of these islands, one after another; the chunks are counted by k.
  /// Several may be visited at once.
  template <class Visit>
  void visit_chunks(std::span<const int> islands, const Visit& visit) {
    const std::size_t parts = list(islands);
    if (for_each_ == nullptr || threads_ == 1 || parts < kWorthSharing) {
      return visit_some(0, chunks_.size(), visit);
    }
    const auto some = [&](std::size_t first, std::size_t last) { visit_some(first, last, visit); };
    share(std::cref(some));
  }
  /// The same one after another, on this thread.
  template <class Visit>
  void run_in_order(std::span<const int> islands, const Visit& visit) {
    list(islands);
    visit_some(0, chunks_.size(), visit);
  }

  std::size_t bytes() const { return chunks_.capacity() * sizeof(int); }

 private:
  /// Collects the chunks of these islands into chunks_. Returns the number of their parts.
  std::size_t list(std::span<const int> islands);
  /// `visit` of a range of chunks, by any available thread. Rethrows its exceptions.
  void share(const std::function<void(std::size_t first, std::size_t last)>& visit) const;
  template <class Visit>
  void visit_some(std::size_t first, std::size_t last, const Visit& visit) const {
    for (std::size_t k = first; k < last; ++k) visit(k, chunks_[k]);
  }

  const PartOrderReduction& parts_;
  const ForEach* for_each_ = nullptr;
  int threads_ = 1;
  std::vector<int> chunks_;
};

}  // namespace portwave
