#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "portwave/coupling/energy/compensated_sum.hpp"
#include "portwave/coupling/network/network_peers.hpp"
#include "portwave/subsystems/base/for_each.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {

/// The rows of an island in blocks, which threads and ranks share. Blocks depend on the rows alone, and sums over them
/// are taken in their order, so that results depend on neither.
class SharedRows {
 public:
  /// `firsts`: where blocks begin, increasing from 0.
  SharedRows(std::vector<int> firsts, int rows) : firsts_(std::move(firsts)) {
    firsts_.push_back(rows);
    values_.resize(at(count()));
  }
  /// Where blocks of about `block` rows begin.
  static std::vector<int> cut(int rows, int block) {
    std::vector<int> firsts = {0};
    while (firsts.back() + 2 * block <= rows) firsts.push_back(firsts.back() + block);
    return firsts;
  }

  int count() const { return static_cast<int>(firsts_.size()) - 1; }
  int first(int block) const { return firsts_[at(block)]; }
  int end(int block) const { return firsts_[at(block) + 1]; }
  int block_of(int row) const {
    return static_cast<int>(std::ranges::upper_bound(firsts_, row) - firsts_.begin()) - 1;
  }
  std::size_t bytes() const {
    return firsts_.capacity() * sizeof(int) + values_.capacity() * sizeof(values_[0]);
  }

  /// Loops are run by these threads from now on; null: by the calling one.
  void share_with(const ForEach* each) { each_ = count() > 1 ? each : nullptr; }
  bool is_shared() const { return each_ != nullptr; }
  /// Loops are over the blocks of this rank from now on; sums are known to all ranks.
  void share_among(NetworkPeers& peers, std::span<const int> ranks_of_blocks) {
    peers_ = &peers;
    blocks_of_rank_.assign(at(peers.size()), {});
    for (int block = 0; block < count(); ++block) {
      blocks_of_rank_[at(ranks_of_blocks[at(block)])].push_back(block);
    }
  }
  bool is_on_ranks() const { return peers_ != nullptr; }
  /// The blocks of each rank, in order. Precondition: ranks share them.
  std::span<const int> own_blocks() const { return blocks_of_rank_[at(peers_->rank())]; }

  /// body(i) for i < n, in any order and possibly at once.
  template <class Body>
  void run(int n, const Body& body) const {
    if (each_ != nullptr) return (*each_)(n, body);
    for (int i = 0; i < n; ++i) body(i);
  }
  /// body(block) for all blocks of this process, likewise.
  template <class Body>
  void run(const Body& body) const {
    if (peers_ == nullptr) return run(count(), body);
    run(own_blocks(), body);
  }
  /// body(block) for these, likewise.
  template <class Body>
  void run(std::span<const int> blocks, const Body& body) const {
    run(static_cast<int>(blocks.size()), [&](int i) { body(blocks[at(i)]); });
  }
  /// Makes known to all ranks what blocks have: `size` values at values[k*size] for every k of
  /// numbers_of(block). Alone it does nothing.
  template <class NumbersOf>
  void gather(double* values, std::size_t size, const NumbersOf& numbers_of) {
    if (peers_ == nullptr) return;
    sent_.clear();
    counts_.assign(blocks_of_rank_.size(), 0);
    std::size_t all = 0;
    for (std::size_t rank = 0; rank < counts_.size(); ++rank) {
      for (const int block : blocks_of_rank_[rank]) {
        counts_[rank] += size * std::size(numbers_of(block));
        if (static_cast<int>(rank) != peers_->rank()) continue;
        for (const int k : numbers_of(block)) {
          sent_.insert(sent_.end(), values + at(k) * size, values + at(k + 1) * size);
        }
      }
      all += counts_[rank];
    }
    received_.resize(all);
    peers_->gather(sent_, counts_, received_);
    auto from = received_.cbegin();
    for (const std::vector<int>& blocks : blocks_of_rank_) {
      for (const int block : blocks) {
        for (const int k : numbers_of(block)) {
          std::copy_n(from, size, values + at(k) * size);
          from += static_cast<std::ptrdiff_t>(size);
        }
      }
    }
  }
  /// Of each block, at values[block*size].
  void gather(double* values, std::size_t size) {
    gather(values, size, [](int block) { return std::array{block}; });
  }
  /// The sums of the arrays body(block).
  template <class Body>
  auto sums(const Body& body) {
    using Values = decltype(body(0));
    constexpr std::size_t kSize = std::tuple_size_v<Values>;
    static_assert(kSize <= kMostSums);
    if (count() == 1 && peers_ == nullptr) return body(0);
    run([&](int block) { std::ranges::copy(body(block), values_[at(block)].begin()); });
    gather(values_.data()->data(), kMostSums);
    Values out;
    for (std::size_t k = 0; k < kSize; ++k) {
      CompensatedSum sum;
      for (const auto& values : values_) sum.add(values[k]);
      out[k] = sum.value();
    }
    return out;
  }
  /// The sum of body(block).
  template <class Body>
  double sum(const Body& body) {
    return sums([&](int block) { return std::array{body(block)}; })[0];
  }

 private:
  std::vector<int> firsts_;  ///< and the number of rows
  static constexpr std::size_t kMostSums = 6;
  std::vector<std::array<double, kMostSums>> values_;  ///< by block
  const ForEach* each_ = nullptr;
  NetworkPeers* peers_ = nullptr;
  std::vector<std::vector<int>> blocks_of_rank_;
  std::vector<double> sent_, received_;  // of `gather`
  std::vector<std::size_t> counts_;
};

}  // namespace portwave
