#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <tuple>
#include <utility>
#include <vector>

#include "portwave/coupling/energy/compensated_sum.hpp"
#include "portwave/subsystems/base/for_each.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {

/// The rows of an island in blocks, which threads share. Blocks depend on the rows alone, and sums over them are
/// taken in their order, so that results do not depend on the threads.
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
  std::size_t bytes() const {
    return firsts_.capacity() * sizeof(int) + values_.capacity() * sizeof(values_[0]);
  }

  /// Loops are run by these threads from now on; null: by the calling one.
  void share_with(const ForEach* each) { each_ = count() > 1 ? each : nullptr; }
  bool is_shared() const { return each_ != nullptr; }

  /// body(i) for i < n, in any order and possibly at once.
  template <class Body>
  void run(int n, const Body& body) const {
    if (each_ != nullptr) return (*each_)(n, body);
    for (int i = 0; i < n; ++i) body(i);
  }
  /// body(block) for all blocks, likewise.
  template <class Body>
  void run(const Body& body) const {
    run(count(), body);
  }
  /// The sums of the arrays body(block).
  template <class Body>
  auto sums(const Body& body) {
    using Values = decltype(body(0));
    constexpr std::size_t kSize = std::tuple_size_v<Values>;
    static_assert(kSize <= kMostSums);
    if (count() == 1) return body(0);
    run([&](int block) { std::ranges::copy(body(block), values_[at(block)].begin()); });
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
};

}  // namespace portwave
