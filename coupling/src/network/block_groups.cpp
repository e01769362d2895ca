#include "network/block_groups.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>

#include "portwave/subsystems/base/equal_classes.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {

constexpr int kDefaultSmallestGroup = 3;
std::atomic<int> smallest_group = kDefaultSmallestGroup;
std::atomic<double> task_ns = kDefaultTask_ns;

constexpr double kWorthThreads_ns = 15000.0;
constexpr double kSmallestTask_ns = 2000.0;
constexpr double kTasksWanted = 8.0;

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  return (hash ^ value) * 0x100000001B3u;
}

std::uint64_t mixed(std::uint64_t hash, const SparseMatrix& m) {
  for (int j = 0; j < m.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(m, j); it; ++it) {
      hash = mixed(hash, static_cast<std::uint64_t>(it.row()));
      hash = mixed(hash, std::bit_cast<std::uint64_t>(it.value()));
    }
    hash = mixed(hash, static_cast<std::uint64_t>(j));
  }
  return hash;
}

bool same(const SparseMatrix& a, const SparseMatrix& b) {
  if (a.rows() != b.rows() || a.cols() != b.cols() || a.nonZeros() != b.nonZeros()) return false;
  for (int j = 0; j < a.outerSize(); ++j) {
    SparseMatrix::InnerIterator p(a, j), q(b, j);
    for (; p && q; ++p, ++q) {
      if (p.row() != q.row() ||
          std::bit_cast<std::uint64_t>(p.value()) != std::bit_cast<std::uint64_t>(q.value()))
        return false;
    }
    if (p || q) return false;
  }
  return true;
}

bool same(const CondensedBlock& a, const CondensedBlock& b) {
  return a.size == b.size && a.is_descriptor == b.is_descriptor && same(a.J, b.J) &&
         same(a.Q, b.Q) && same(a.R, b.R) && same(a.E, b.E);
}

}  // namespace

BlockClasses::BlockClasses(std::span<const CondensedBlock> blocks) {
  EqualClasses known;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    std::uint64_t hash = 0xCBF29CE484222325u;
    for (const SparseMatrix* m : {&blocks[i].E, &blocks[i].J, &blocks[i].R, &blocks[i].Q})
      hash = mixed(hash, *m);
    class_of_.push_back(known.find_or_add(hash, [&](int block_class) {
      return same(blocks[static_cast<std::size_t>(example(block_class))], blocks[i]);
    }));
    if (class_of_.back() == count()) example_.push_back(static_cast<int>(i));
  }
}

std::vector<BlockGroup> BlockClasses::lane_groups(std::span<const int> blocks,
                                                  std::span<const int> group_of) const {
  std::map<int, std::vector<int>> members;  // by group
  for (const int block : blocks)
    members[group_of[static_cast<std::size_t>(block)]].push_back(block);
  std::vector<BlockGroup> out;
  for (const auto& [group, own] : members) {
    const int c = of(own.front());
    for (std::size_t k = 0; k < own.size();) {
      const std::size_t size = std::min<std::size_t>(kLaneGroup, own.size() - k);
      const bool by_lanes = static_cast<int>(size) >= smallest_group;
      const std::size_t taken = by_lanes ? size : 1;
      const auto first = own.begin() + static_cast<std::ptrdiff_t>(k);
      out.push_back({c, by_lanes, {first, first + static_cast<std::ptrdiff_t>(taken)}});
      k += taken;
    }
  }
  std::sort(out.begin(), out.end(), [](const BlockGroup& a, const BlockGroup& b) {
    return a.blocks.front() < b.blocks.front();
  });
  return out;
}

int smallest_lane_group() { return smallest_group; }
void set_smallest_lane_group(int blocks) { smallest_group = std::max(blocks, 1); }
double task_nanoseconds() { return task_ns; }
void set_task_nanoseconds(double cost_ns) { task_ns = cost_ns; }

std::vector<int> cut_into_tasks(std::span<const double> cost_ns) {
  double all = 0.0;
  for (const double cost : cost_ns) all += cost;
  double wanted = task_nanoseconds();
  if (all > kWorthThreads_ns && wanted > kSmallestTask_ns) {
    wanted = std::clamp(all / kTasksWanted, kSmallestTask_ns, wanted);
  }
  std::vector<int> begins{0};
  double load = 0.0;
  for (std::size_t i = 0; i < cost_ns.size(); ++i) {
    // Half of what is next may stand over.
    if (load > 0.0 && load + 0.5 * cost_ns[i] > wanted) {
      begins.push_back(static_cast<int>(i));
      load = 0.0;
    }
    load += cost_ns[i];
  }
  if (!cost_ns.empty()) begins.push_back(static_cast<int>(cost_ns.size()));
  return begins;
}

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
