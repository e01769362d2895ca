#include "network/coupling_columns.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>

#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {

bool same_column(const SparseMatrix& a, int i, const SparseMatrix& b, int j) {
  SparseMatrix::InnerIterator p(a, i), q(b, j);
  for (; p && q; ++p, ++q) {
    if (p.row() != q.row() ||
        std::bit_cast<std::uint64_t>(p.value()) != std::bit_cast<std::uint64_t>(q.value()))
      return false;
  }
  return !p && !q;
}

/// The columns of `all` that the channels of `some` are, in order; empty if they are not.
std::optional<std::vector<int>> find_columns(const CondensedBlock& some,
                                             const CondensedBlock& all) {
  std::vector<int> out;
  int k = 0;
  for (int c = 0; c < some.channels; ++c, ++k) {
    while (k < all.channels &&
           !(same_column(some.into, c, all.into, k) && same_column(some.out, c, all.out, k)))
      ++k;
    if (k == all.channels) return std::nullopt;
    out.push_back(k);
  }
  return out;
}

SparseMatrix without_zeros(SparseMatrix m) {
  m.prune([](Eigen::Index, Eigen::Index, double value) { return value != 0.0; });
  return m;
}

}  // namespace

CouplingColumns::CouplingColumns(std::span<const CondensedBlock> blocks,
                                 const BlockGroup& lane_group, const SparseMatrix& into,
                                 const SparseMatrix& seen, int widest)
    : count_(blocks[at(widest)].channels),
      width_(lane_group.by_lanes ? kLaneGroup : 1),
      into_(into),
      seen_(seen) {
  channel_.assign(at(count_ * width_), -1);
  mask_.assign(channel_.size(), 0);
  for (std::size_t l = 0; l < lane_group.blocks.size(); ++l) {
    const CondensedBlock& block = blocks[at(lane_group.blocks[l])];
    const auto columns = find_columns(block, blocks[at(widest)]);
    for (int c = 0; c < block.channels; ++c) {
      const std::size_t offset = at(columns->at(at(c)) * width_) + l;
      channel_[offset] = block.first_channel + c;
      mask_[offset] = ~0ULL;
    }
  }
  for (int c = 0; c < count_; ++c) {
    for (int l = 0; l < static_cast<int>(lane_group.blocks.size()); ++l)
      full_ = full_ && channel(c, l) >= 0;
  }
  if (!lane_group.by_lanes) return;
  into_rows_ = LaneMatrix(without_zeros(into), LaneMatrix::By::rows);
  seen_rows_ = LaneMatrix(without_zeros(seen), LaneMatrix::By::columns);
}

void CouplingColumns::see(const double* x, double* w) const {
  if (width_ == kLaneGroup) {
    lane_kernels().product(seen_rows_.lines(), x, w);
    return;
  }
  for (int c = 0; c < count_; ++c) {
    if (channel(c, 0) >= 0) w[c] = seen_.dot(c, x);
  }
}

void CouplingColumns::enter(const double* channels, double* f, double* y) const {
  if (width_ == 1) {
    for (int c = 0; c < count_; ++c) {
      if (channel(c, 0) >= 0) into_.add(c, channels[channel(c, 0)], y);
    }
    return;
  }
  if (count_ == 0) return;
  for (std::size_t k = 0; k < channel_.size(); ++k)
    f[k] = channel_[k] >= 0 ? channels[channel_[k]] : 0.0;
  if (full_) {
    lane_kernels().add_product(into_rows_.lines(), 1.0, f, y);
  } else {
    lane_kernels().add_masked(into_rows_.lines(), mask_.data(), f, y);
  }
}

CouplingGroups group_by_coupling(std::span<const CondensedBlock> blocks,
                                 const BlockClasses& classes) {
  CouplingGroups out;
  out.of.assign(blocks.size(), -1);
  std::vector<int> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return blocks[at(a)].channels > blocks[at(b)].channels; });
  std::vector<std::vector<int>> groups(at(classes.count()));
  constexpr std::size_t kMany = 16;  // groups of a class that are looked through
  for (const int i : order) {
    std::vector<int>& known = groups[at(classes.of(i))];
    for (std::size_t g = 0; g < std::min(known.size(), kMany) && out.of[at(i)] < 0; ++g) {
      if (find_columns(blocks[at(i)], blocks[at(out.widest[at(known[g])])]))
        out.of[at(i)] = known[g];
    }
    if (out.of[at(i)] >= 0) continue;
    out.of[at(i)] = static_cast<int>(out.widest.size());
    known.push_back(out.of[at(i)]);
    out.widest.push_back(i);
  }
  return out;
}

}  // namespace portwave
