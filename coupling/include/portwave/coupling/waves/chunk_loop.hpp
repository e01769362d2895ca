#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "portwave/coupling/waves/part_order_reduction.hpp"
#include "portwave/subsystems/base/for_each.hpp"

namespace portwave {

/// Loops over the chunks of islands (PartOrderReduction), on several threads where there are some and the
/// parts are many. Who visits a chunk makes no difference to what comes of it.
///
/// Nothing is allocated after construction. Thread-safety: none.
class ChunkLoop {
 public:
  /// Parts below which one thread is faster.
  static constexpr std::size_t kWorthSharing = 1024;

  explicit ChunkLoop(const PartOrderReduction& parts) : parts_(parts) {
    chunks_.reserve(static_cast<std::size_t>(parts.chunk_count()));
  }

  /// Who helps, from now on, on how many threads; null: nobody.
  void share_with(const ForEach* for_each, int threads) {
    for_each_ = for_each;
    threads_ = threads;
  }

  /// visit(k, chunk) for the chunks of these islands, one after another; the chunks are counted by k.
  /// Several may be visited at once.
  template <class Visit>
  void run(std::span<const int> islands, const Visit& visit) {
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
  /// The chunks of these islands into chunks_. Returns how many parts they have.
  std::size_t list(std::span<const int> islands);
  /// `visit` of chunks from one of them on to another, by whoever is there. Throws what it has thrown.
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
