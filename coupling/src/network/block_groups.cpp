#include "network/block_groups.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <map>

#include "portwave/subsystems/base/equal_classes.hpp"

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

}  // namespace portwave
