#include "network/splitting/local_flows.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {

constexpr int kMostAlone = 2;            // so many equal blocks make no lane group of lanes
constexpr double kMoveOperations = 1.0;  // of a state: gathered, advanced, scattered

const CondensedBlock& block_of(const CondensedSystem& system, int block) {
  return system.blocks()[at(block)];
}

/// Places of tasks in a common work array: `need` doubles for every state of a block. Whole cache
/// lines and one between.
std::vector<std::size_t> lay_out_work(const CondensedSystem& system,
                                      std::span<const BlockGroup> lane_groups,
                                      std::span<const int> tasks, int need, AlignedVector& work) {
  std::vector<std::size_t> out;
  std::size_t size = 0;
  for (std::size_t t = 0; t + 1 < tasks.size(); ++t) {
    std::size_t most = 0;
    for (int k = tasks[t]; k < tasks[t + 1]; ++k) {
      const BlockGroup& lane_group = lane_groups[at(k)];
      const auto n = at(block_of(system, lane_group.blocks.front()).size);
      most = std::max(most, n * at(need) * (lane_group.by_lanes ? kLaneGroup : 1));
    }
    out.push_back(size);
    size += (most + 15) / 8 * 8;
  }
  work.assign(size, 0.0);
  return out;
}

template <class Body>
void for_groups(const ForEach& each, std::span<const BlockGroup> lane_groups,
                std::span<const int> tasks, std::span<const std::size_t> work_of, double* work,
                const Body& body) {
  each(static_cast<int>(work_of.size()), [&](int t) {
    for (int k = tasks[at(t)]; k < tasks[at(t) + 1]; ++k)
      body(lane_groups[at(k)], work + work_of[at(t)]);
  });
}

}  // namespace

BlockEnergies::BlockEnergies(const CondensedSystem& system, const BlockClasses& classes)
    : system_(system), classes_(classes) {
  for (int c = 0; c < classes.count(); ++c) {
    const CondensedBlock& block = block_of(system, classes.example(c));
    matrices_.emplace_back(0.5 * SparseMatrix(SparseMatrix(block.Q.transpose()) * block.E));
    matrices_.back().makeCompressed();
    lanes_.emplace_back(matrices_.back(), LaneMatrix::By::columns);
  }
  std::vector<int> blocks(system.blocks().size());
  std::iota(blocks.begin(), blocks.end(), 0);
  lane_groups_ = classes.lane_groups(blocks);
  std::vector<double> cost;
  for (const BlockGroup& lane_group : lane_groups_) {
    const SparseMatrix& m = matrices_[at(lane_group.block_class)];
    cost.push_back(kNanosecondsPerOperation * 0.3 * static_cast<double>(m.nonZeros() + m.rows()));
  }
  tasks_ = cut_into_tasks(cost);
  work_of_ = lay_out_work(system, lane_groups_, tasks_, 1, work_);
}

double BlockEnergies::of(int block, const double* x) const {
  const double* own = x + block_of(system_, block).first;
  return bilinear(matrix(block), own, own);
}

void BlockEnergies::all(const ForEach& each, const double* x, double* stored) {
  const LaneKernels& kernels = lane_kernels();
  for_groups(each, lane_groups_, tasks_, work_of_, work_.data(),
             [&](const BlockGroup& lane_group, double* work) {
               if (!lane_group.by_lanes) {
                 stored[lane_group.blocks.front()] = of(lane_group.blocks.front(), x);
                 return;
               }
               const double* from[kLaneGroup];
               lane_pointers(system_.blocks(), lane_group, x, from);
               kernels.gather(block_of(system_, lane_group.blocks.front()).size, from, work);
               double sum[kLaneGroup];
               kernels.bilinear(lanes(lane_group.block_class), work, work, sum);
               for (std::size_t l = 0; l < lane_group.blocks.size(); ++l)
                 stored[lane_group.blocks[l]] = sum[l];
             });
}

std::optional<double> BlockEnergies::diagonal(int block, int state) const {
  const SparseMatrix& m = matrix(block);
  double own = 0.0;
  for (int j = 0; j < m.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(m, j); it; ++it) {
      if ((it.row() == state) != (j == state) && it.value() != 0.0) return std::nullopt;
      if (it.row() == state && j == state) own += it.value();
    }
  }
  return own;
}

LocalFlows::LocalFlows(const CondensedSystem& system, const BlockClasses& classes,
                       std::vector<int> blocks, const RecipeOf& recipe)
    : system_(system),
      classes_(classes),
      blocks_(std::move(blocks)),
      prepared_(at(classes.count())),
      lane_groups_(classes.lane_groups(blocks_)) {
  std::vector<int> members(at(classes.count()), 0);
  for (const int block : blocks_) ++members[at(classes.of(block))];
  std::vector<double> cost;
  for (const BlockGroup& lane_group : lane_groups_) {
    const CondensedBlock& example = block_of(system, lane_group.blocks.front());
    const bool alone = members[at(lane_group.block_class)] <= kMostAlone;
    Class& own = prepared_[at(lane_group.block_class)];
    if (own.sequence.empty()) {
      const Recipe steps = recipe(example);
      own.sequence = steps.sequence;
      for (const auto& [tau, terms] : steps.flows) {
        own.flows.emplace_back(example, tau, terms, alone);
      }
      for (const int f : own.sequence) own.operations += own.flows[at(f)].operations();
    }
    if (lane_group.by_lanes) {
      for (BlockFlow& flow : own.flows) flow.prepare_lanes();
    }
    cost.push_back(kNanosecondsPerOperation * (own.operations + kMoveOperations * example.size));
  }
  tasks_ = cut_into_tasks(cost);
  work_of_ = lay_out_work(system, lane_groups_, tasks_, 4, work_);
}

void LocalFlows::run(const ForEach& each, const double* from, double* to, const MovedStates* moved,
                     const BlockEnergies& energies, const Report& report) {
  const Call call{from, to, moved, energies, report};
  for_groups(each, lane_groups_, tasks_, work_of_, work_.data(),
             [&](const BlockGroup& lane_group, double* work) {
               lane_group.by_lanes ? run_lanes(lane_group, call, work)
                                   : run_alone(lane_group, call, work);
             });
}

void LocalFlows::run_lanes(const BlockGroup& lane_group, const Call& call, double* work) const {
  const LaneKernels& kernels = lane_kernels();
  const Class& own = prepared_[at(lane_group.block_class)];
  const int n = block_of(system_, lane_group.blocks.front()).size;
  const int lanes = static_cast<int>(lane_group.blocks.size());
  double* x = work;
  double* d = x + n * kLaneGroup;
  double* scratch = d + n * kLaneGroup;
  const double* from[kLaneGroup];
  double* to[kLaneGroup];
  lane_pointers(system_.blocks(), lane_group, call.from, from);
  lane_pointers(system_.blocks(), lane_group, call.to, to);
  const auto for_moved = [&](const auto& body) {
    for (int l = 0; call.moved != nullptr && l < lanes; ++l) {
      const int block = lane_group.blocks[at(l)];
      for (int k = call.moved->begin[at(block)]; k < call.moved->begin[at(block) + 1]; ++k)
        body(x[call.moved->state[at(k)] * kLaneGroup + l], call.moved->value[at(k)]);
    }
  };
  kernels.gather(n, from, x);
  for_moved([](double& state, double value) { state = value; });

  double lost[kLaneGroup] = {};
  for (const int f : own.sequence) {
    const BlockFlow& flow = own.flows[at(f)];
    flow.increment_lanes(x, d, scratch);
    if (call.report.dissipated != nullptr) {
      double now[kLaneGroup];
      flow.dissipated_lanes(x, d, scratch, now);
      for (int l = 0; l < kLaneGroup; ++l) lost[l] += now[l];
    }
    kernels.advance(n, 2.0, d, x);
  }
  kernels.scatter(n, lanes, x, to);

  double sum[kLaneGroup];
  const auto write = [&](double* by_block, const double* values) {
    for (int l = 0; l < lanes; ++l) by_block[lane_group.blocks[at(l)]] = values[l];
  };
  if (call.report.dissipated != nullptr) write(call.report.dissipated, lost);
  if (call.report.probe != nullptr) {
    kernels.sum(n, x, sum);
    write(call.report.probe, sum);
  }
  if (call.report.energy != nullptr) {
    for_moved([](double& state, double) { state = 0.0; });
    kernels.bilinear(call.energies.lanes(lane_group.block_class), x, x, sum);
    write(call.report.energy, sum);
  }
}

void LocalFlows::run_alone(const BlockGroup& lane_group, const Call& call, double* work) const {
  const int index = lane_group.blocks.front();
  const CondensedBlock& block = block_of(system_, index);
  const Class& own = prepared_[at(lane_group.block_class)];
  const int n = block.size;
  double* x = work;
  double* d = x + n;
  double* scratch = d + n;
  const auto for_moved = [&](const auto& body) {
    if (call.moved == nullptr) return;
    for (int k = call.moved->begin[at(index)]; k < call.moved->begin[at(index) + 1]; ++k)
      body(x[call.moved->state[at(k)]], call.moved->value[at(k)]);
  };
  std::copy_n(call.from + block.first, n, x);
  for_moved([](double& state, double value) { state = value; });

  double lost = 0.0;
  for (const int f : own.sequence) {
    const BlockFlow& flow = own.flows[at(f)];
    flow.increment(x, nullptr, d, scratch);
    if (call.report.dissipated != nullptr) lost += flow.dissipated(x, d, scratch);
    for (int j = 0; j < n; ++j) x[j] += 2.0 * d[j];
  }
  std::copy_n(x, n, call.to + block.first);

  if (call.report.dissipated != nullptr) call.report.dissipated[index] = lost;
  if (call.report.probe != nullptr) call.report.probe[index] = std::accumulate(x, x + n, 0.0);
  if (call.report.energy != nullptr) {
    for_moved([](double& state, double) { state = 0.0; });
    call.report.energy[index] = bilinear(call.energies.matrix(index), x, x);
  }
}

double LocalFlows::operations(int block) const {
  return prepared_[at(classes_.of(block))].operations;
}
int LocalFlows::flows_per_step(int block) const {
  return static_cast<int>(prepared_[at(classes_.of(block))].sequence.size());
}

double LocalFlows::cost_ns() const {
  double sum = 0.0;
  for (const BlockGroup& lane_group : lane_groups_)
    sum += kNanosecondsPerOperation * prepared_[at(lane_group.block_class)].operations;
  return sum;
}

}  // namespace portwave
