#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "portwave/coupling/waves/chunk_loop.hpp"
#include "portwave/coupling/waves/island_sums.hpp"
#include "portwave/coupling/waves/part_order_reduction.hpp"

namespace portwave {

/// Sums over the parts of islands in extended precision, for rare checks: by the passivity guard, and by a
/// ledger whose account does not close. They are trees as all sums over islands (PartOrderReduction); the
/// parts of a chunk are added one after another. The sum of a chunk or a branch is kept as two doubles, even
/// if no other process receives it, so that the bits do not depend on the number of processes.
///
/// Thread-safety  none, but several threads may compute the terms (share_with). Nothing is allocated after
///                construction.
class ExtendedSums final : public IslandSums {
 public:
  /// Largest number of sums found at once.
  static constexpr int kTerms = 3;
  using Terms = std::array<long double, kTerms>;

  /// `most`: largest number of islands at once. `slices`: null where this process has all parts.
  ExtendedSums(const System& system, const PartOrderReduction& parts, std::size_t most,
               SlicesTogether* slices);

  /// Helpers, as ChunkLoop: terms of parts in different chunks are then computed at once.
  void share_with(const ForEach* for_each, int threads) { loop_.share_with(for_each, threads); }

  /// Sums over the parts of `islands`, a nonempty list; add(terms, part) adds those of a part, once for each
  /// part and in the order of their numbers within a chunk. With slices all ranks call it, for the same
  /// islands.
  template <class Add>
  void find(std::span<const int> islands, const Add& add) {
    find_chunks(islands, [&](Terms& sum, std::span<const int> parts) {
      for (const int part : parts) add(sum, part);
    });
  }
  /// The same where add(terms, parts) adds those of the parts of a chunk.
  template <class Add>
  void find_chunks(std::span<const int> islands, const Add& add) {
    find_by(islands, add,
            [this](std::span<const int> of, const auto& visit) { loop_.visit_chunks(of, visit); });
  }
  /// As find, with `add` relying on one part being added after another.
  template <class Add>
  void find_in_order(std::span<const int> islands, const Add& add) {
    const auto of_parts = [&](Terms& sum, std::span<const int> parts) {
      for (const int part : parts) add(sum, part);
    };
    find_by(islands, of_parts,
            [this](std::span<const int> of, const auto& visit) { loop_.run_in_order(of, visit); });
  }
  template <class Add>
  const Terms& find_in_order(int island, const Add& add) {
    find_in_order(std::span(&island, 1), add);
    return of(0);
  }
  template <class Add>
  const Terms& find(int island, const Add& add) {
    find(std::span(&island, 1), add);
    return of(0);
  }
  /// Sum of the i-th island of the last call.
  const Terms& of(std::size_t i) const { return found_[i]; }

  std::size_t bytes() const;

  // As IslandSums.
  int sums() const override { return 2 * kTerms; }
  int maxima() const override { return 0; }
  std::span<const std::span<double>> terms() override { return {}; }
  void form(int chunk, double* values) const override;
  void add(double* values, const double* other) const override;
  void take(int island, const double* values) override;

 private:
  using OfChunk = std::function<Terms(int)>;

  template <class Add, class Run>
  void find_by(std::span<const int> islands, const Add& add, const Run& run) {
    const auto of_chunk = [&](int chunk) {
      Terms sum{};
      add(sum, parts_.parts_of_chunk(chunk));
      return rounded(sum);
    };
    found_.clear();
    if (slices_ != nullptr) return find_together(islands, std::cref(of_chunk));
    run(islands, [&](std::size_t k, int chunk) { by_chunk_[k] = of_chunk(chunk); });
    int from = 0;
    for (const int island : islands) {
      const auto [first, last] = parts_.chunks_of(island);
      const int to = from + (last - first);
      found_.push_back(PartOrderReduction::tree<Terms>(
          from, to, [this](int k) { return by_chunk_[static_cast<std::size_t>(k)]; }, added));
      from = to;
    }
  }
  static Terms rounded(Terms terms);
  static Terms added(const Terms& a, const Terms& b);
  void find_together(std::span<const int> islands, const OfChunk& of_chunk);

  const System& system_;
  const PartOrderReduction& parts_;
  SlicesTogether* slices_;
  ChunkLoop loop_;
  std::vector<Terms> by_chunk_;  // of those that are asked for, in their order
  std::vector<Terms> found_;
  std::vector<int> place_;  // with slices, by island: in found_; −1: it was not asked for
  const OfChunk* of_chunk_ = nullptr;
};

}  // namespace portwave
