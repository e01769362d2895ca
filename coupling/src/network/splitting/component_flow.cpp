#include "network/splitting/component_flow.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <utility>

#include "network/block_groups.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"

namespace portwave {
namespace {
namespace component_flow {

const double kRoot = std::sqrt(3.0);

Tableau gauss() {
  return {.stages = ComponentFlow::kStages,
          .A_inverse = {3.0, -3.0 + 2.0 * kRoot, -3.0 - 2.0 * kRoot, 3.0},
          .b = {0.5, 0.5},
          .c = {0.5 - kRoot / 6.0, 0.5 + kRoot / 6.0},
          .stiffly_accurate = false};
}

/// States that a matrix ties together, by the lowest of them; only those that it or `driven` touches.
std::map<int, std::vector<int>> components(const SparseMatrix& F, const std::vector<char>& driven) {
  std::vector<int> root(driven.size());
  std::iota(root.begin(), root.end(), 0);
  const auto find = [&root](int i) {
    while (root[at(i)] != i) {
      root[at(i)] = root[at(root[at(i)])];
      i = root[at(i)];
    }
    return i;
  };
  std::vector<char> touched = driven;
  for (int j = 0; j < F.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(F, j); it; ++it) {
      if (it.value() == 0.0) continue;
      const auto i = static_cast<int>(it.row());
      touched[at(i)] = touched[at(j)] = 1;
      const int a = find(i), b = find(j);
      const auto [low, high] = std::minmax(a, b);
      root[at(high)] = low;
    }
  }
  std::map<int, std::vector<int>> out;
  for (int i = 0; i < static_cast<int>(driven.size()); ++i) {
    if (touched[at(i)] != 0) out[find(i)].push_back(i);
  }
  return out;
}

}  // namespace component_flow
}  // namespace

std::span<const double> ComponentFlow::places() {
  static const std::vector<double> c = component_flow::gauss().c;
  return c;
}

ComponentFlow::ComponentFlow(const SparseMatrix& F, double duration_s, int steps,
                             const std::vector<char>& driven)
    : states_(static_cast<int>(F.rows())), steps_(steps), step_s_(duration_s / steps) {
  std::vector<int> number(driven.size(), -1);
  std::map<std::vector<double>, int> class_of;  // by size and entries
  for (const auto& [root, states] : component_flow::components(F, driven)) {
    for (int k = 0; k < static_cast<int>(states.size()); ++k) number[at(states[at(k)])] = k;
    std::vector<double> key = {static_cast<double>(states.size())};
    SparseEntries entries;
    for (int k = 0; k < static_cast<int>(states.size()); ++k) {
      for (SparseMatrix::InnerIterator it(F, states[at(k)]); it; ++it) {
        if (it.value() == 0.0) continue;
        const int row = number[at(static_cast<int>(it.row()))];
        entries.emplace_back(row, k, it.value());
        key.insert(key.end(), {static_cast<double>(row), static_cast<double>(k), it.value()});
      }
    }
    const auto [found, is_new] =
        class_of.try_emplace(std::move(key), static_cast<int>(classes_.size()));
    if (is_new) {
      const auto n = static_cast<Eigen::Index>(states.size());
      SparseMatrix one(n, n);
      one.setIdentity();
      Class& own = classes_.emplace_back();
      own.size = static_cast<int>(n);
      if (!own.solver.prepare(component_flow::gauss(), step_s_, one,
                              sparse_matrix(n, n, entries))) {
        throw ConfigError("/time/step_s", "an implicit step is singular at this step size");
      }
    }
    std::vector<int>& all = classes_[at(found->second)].states;
    all.insert(all.end(), states.begin(), states.end());
  }
  std::vector<double> cost;
  std::vector<std::size_t> need;
  for (int c = 0; c < static_cast<int>(classes_.size()); ++c) {
    Class& own = classes_[at(c)];
    const int count = static_cast<int>(own.states.size()) / own.size;
    if (count >= smallest_lane_group()) own.solver.prepare_lanes();
    for (int first = 0; first < count;) {
      const int left = count - first;
      const bool by_lanes = count >= smallest_lane_group() && left > 1;
      const int many = by_lanes ? std::min(left, kLaneGroup) : 1;
      groups_.push_back({c, first, many});
      const std::size_t width = many > 1 ? kLaneGroup : 1;
      need.push_back(width * (at(own.size) * (1 + kStages) + at(own.solver.scratch_size())));
      cost.push_back(kNanosecondsPerOperation * (own.solver.operations() + 3.0 * own.size));
      first += many;
    }
  }
  tasks_ = cut_into_tasks(cost);
  std::size_t size = 0;
  for (std::size_t t = 0; t + 1 < tasks_.size(); ++t) {
    std::size_t most = 0;
    for (int k = tasks_[t]; k < tasks_[t + 1]; ++k) most = std::max(most, need[at(k)]);
    work_of_.push_back(size);
    size += (most + 15) / 8 * 8;
  }
  work_.assign(size, 0.0);
}

void ComponentFlow::run(const Group& group, double* x, const double* g, double* stages,
                        double* work) const {
  const Class& own = classes_[at(group.of)];
  const int n = own.size, width = group.count > 1 ? kLaneGroup : 1;
  double* const start = work;
  double* const values = start + n * width;
  double* const scratch = values + kStages * n * width;
  const int* const states = own.states.data() + group.first * n;
  // Lanes without a component take the first one's.
  const auto state_of = [&](int i, int lane) {
    return states[(lane < group.count ? lane : 0) * n + i];
  };
  for (int i = 0; i < n; ++i) {
    for (int lane = 0; lane < width; ++lane) {
      const int state = state_of(i, lane);
      start[i * width + lane] = x[state];
      for (int k = 0; k < kStages; ++k) {
        values[(k * n + i) * width + lane] = g == nullptr ? 0.0 : g[k * states_ + state];
      }
    }
  }
  if (width > 1) {
    own.solver.step_lanes(start, values, scratch);
  } else {
    own.solver.step(start, values, scratch);
  }
  for (int i = 0; i < n; ++i) {
    for (int lane = 0; lane < group.count; ++lane) {
      const int state = state_of(i, lane);
      x[state] = start[i * width + lane];
      for (int k = 0; k < kStages && stages != nullptr; ++k) {
        stages[k * states_ + state] = values[(k * n + i) * width + lane];
      }
    }
  }
}

void ComponentFlow::step(const ForEach& each, double* x, const double* g, double* stages) {
  each(tasks(), [&](int t) {
    for (int k = tasks_[at(t)]; k < tasks_[at(t) + 1]; ++k) {
      run(groups_[at(k)], x, g, stages, work_.data() + work_of_[at(t)]);
    }
  });
}

double ComponentFlow::operations() const {
  double sum = 0.0;
  for (const Class& own : classes_) {
    sum += own.solver.operations() * static_cast<double>(own.states.size()) / own.size;
  }
  return sum * steps_;
}

}  // namespace portwave
