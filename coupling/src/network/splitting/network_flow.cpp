#include "network/splitting/network_flow.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "network/group_algebra.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"

namespace portwave {
namespace {

SparseMatrix pruned_product(const SparseMatrix& a, const SparseMatrix& b) {
  SparseMatrix out = a * b;
  out.prune(0.0);
  return out;
}

SparseMatrix generator(const CondensedBlock& block, FlowTerms terms) {
  switch (terms) {
    case FlowTerms::conservative:
      return pruned_product(block.J, block.Q);
    case FlowTerms::dissipative:
      return pruned_product(-block.R, block.Q);
    case FlowTerms::all:
      break;
  }
  return pruned_product(block.J - block.R, block.Q);
}

SparseMatrix sparse(const Eigen::MatrixXd& m) { return m.sparseView(); }

[[noreturn]] void refuse_singular(const CondensedBlock& block, const char* what) {
  throw ConfigError(fmt::format("/subsystems/{}", block.part), what);
}

}  // namespace

BlockFlow::BlockFlow(const CondensedBlock& block, double tau, FlowTerms terms, bool alone)
    : block_(&block),
      tau_(tau),
      dissipates_(terms != FlowTerms::conservative && block.R.nonZeros() > 0),
      A_(generator(block, terms)) {
  A_.makeCompressed();
  if (!solver_.factorise(SparseMatrix((2.0 / tau) * block.E - A_))) {
    refuse_singular(block, "the implicit step is singular at this step size");
  }
  // A term of a dense product takes less than a tenth of one of a sparse solve, which waits for the
  // last.
  constexpr double kDenseGain = 12.0;
  const double n = block.size;
  if (!alone || n * n > kDenseGain * operations()) return;
  const Eigen::MatrixXd map = solver_.solve(A_);
  stride_ = (block.size + kLaneGroup - 1) / kLaneGroup * kLaneGroup;
  map_.assign(static_cast<std::size_t>(stride_) * static_cast<std::size_t>(block.size), 0.0);
  for (Eigen::Index j = 0; j < map.cols(); ++j) {
    std::copy_n(map.col(j).data(), map.rows(), map_.data() + j * stride_);
  }
}

void BlockFlow::increment(const double* x, const double* extra, double* d, double* scratch) const {
  const int n = solver_.size();
  if (extra == nullptr && !map_.empty()) {
    return lane_kernels().matrix_vector(map_.data(), n, stride_, x, d);
  }
  double* rhs = scratch + n;
  for (int i = 0; i < n; ++i) rhs[i] = extra == nullptr ? 0.0 : extra[i];
  add_product(A_, 1.0, x, rhs);
  solver_.solve(rhs, d, scratch);
}

double BlockFlow::dissipated(const double* x, const double* d, double* z) const {
  if (!dissipates_) return 0.0;
  const int n = solver_.size();
  for (int i = 0; i < n; ++i) z[i] = 0.0;
  add_product(block_->Q, 1.0, x, z);
  add_product(block_->Q, 1.0, d, z);
  return tau_ * bilinear(block_->R, z, z);
}

void BlockFlow::prepare_lanes() {
  solver_.prepare_lanes();
  if (lanes_) return;
  lanes_ = Lanes{{A_, LaneMatrix::By::rows},
                 {block_->Q, LaneMatrix::By::rows},
                 {block_->R, LaneMatrix::By::columns}};
}

void BlockFlow::increment_lanes(const double* x, double* d, double* scratch) const {
  if (!map_.empty()) {
    return lane_kernels().dense_product(map_.data(), solver_.size(), stride_, x, d);
  }
  double* rhs = scratch + solver_.size() * kLaneGroup;
  lane_kernels().product(lanes_->A.lines(), x, rhs);
  solver_.solve_lanes(rhs, d, scratch);
}

void BlockFlow::dissipated_lanes(const double* x, const double* d, double* z, double* sum) const {
  for (int l = 0; l < kLaneGroup; ++l) sum[l] = 0.0;
  if (!dissipates_) return;
  lane_kernels().product(lanes_->Q.lines(), x, z);
  lane_kernels().add_product(lanes_->Q.lines(), 1.0, d, z);
  lane_kernels().bilinear(lanes_->R.lines(), z, z, sum);
  for (int l = 0; l < kLaneGroup; ++l) sum[l] *= tau_;
}

CoupledFlow::CoupledFlow(const CondensedSystem& system, const BlockClasses& classes, double tau,
                         const std::vector<bool>& active)
    : system_(system), tau_(tau), flows_(static_cast<std::size_t>(classes.count())) {
  const auto channels = static_cast<std::size_t>(system.channels());
  std::vector<int> moving;
  SparseEntries S;
  for (std::size_t i = 0; i < system.blocks().size(); ++i) {
    const CondensedBlock& block = system.blocks()[i];
    Member member;
    member.block = &block;
    member.active = active[i];
    member.driven = block.B.nonZeros() > 0;
    const SparseMatrix seen = pruned_product(block.Q.transpose(), block.out);
    SparseMatrix into, inputs;
    if (active[i]) {
      auto& flow = flows_[static_cast<std::size_t>(classes.of(static_cast<int>(i)))];
      if (!flow) flow.emplace(block, tau, FlowTerms::all);
      into = sparse(flow->response(block.into));
      inputs = sparse(flow->response(block.B));
      moving.push_back(static_cast<int>(i));
    } else {
      LinearSolver E;
      if (block.is_descriptor && !E.factorise(block.E)) refuse_singular(block, "E is singular");
      const auto at_rest = [&](const SparseMatrix& columns) -> SparseMatrix {
        if (!block.is_descriptor) return 0.5 * tau * columns;
        return sparse(0.5 * tau * E.solve(columns));
      };
      into = at_rest(block.into);
      inputs = at_rest(block.B);
    }
    const SparseMatrix loop = pruned_product(seen.transpose(), into);
    for (int c = 0; c < loop.outerSize(); ++c) {
      for (SparseMatrix::InnerIterator it(loop, c); it; ++it) {
        S.emplace_back(block.first_channel + static_cast<int>(it.row()), block.first_channel + c,
                       it.value());
      }
    }
    if (!active[i]) {
      member.into = ColumnList(into);
      member.seen = ColumnList(seen);
    }
    member.inputs = ColumnList(inputs);
    member.supply = ColumnList(pruned_product(block.Q.transpose(), block.B));
    members_.push_back(std::move(member));
  }
  if (channels > 0) {
    const auto r = static_cast<Eigen::Index>(channels);
    SparseMatrix within(r, r), one(r, r);
    within.setFromTriplets(S.begin(), S.end());
    one.setIdentity();
    if (!channels_.factorise(SparseMatrix(one - pruned_product(within, system.C())))) {
      throw ConfigError("/couplings", "the coupled implicit step is singular at this step size");
    }
    C_ = ColumnList(SparseMatrix(system.C().transpose()));
  }
  for (auto* v : {&w0_, &w_, &f_, &scratch_}) v->assign(channels, 0.0);
  make_groups(classes, moving);
}

void CoupledFlow::make_groups(const BlockClasses& classes, std::span<const int> blocks) {
  const CouplingGroups groups = group_by_coupling(system_.blocks(), classes);
  std::vector<double> cost;
  std::size_t work = 0;
  for (BlockGroup& of : classes.lane_groups(blocks, groups.of)) {
    BlockFlow& flow = *flows_[static_cast<std::size_t>(of.block_class)];
    if (of.by_lanes) flow.prepare_lanes();
    const auto group =
        static_cast<std::size_t>(groups.of[static_cast<std::size_t>(of.blocks.front())]);
    const CondensedBlock& widest = system_.blocks()[static_cast<std::size_t>(groups.widest[group])];
    LaneGroup lane_group;
    lane_group.size = widest.size;
    lane_group.columns =
        CouplingColumns(system_.blocks(), of, sparse(flow.response(widest.into)),
                        pruned_product(widest.Q.transpose(), widest.out), groups.widest[group]);
    lane_group.work = work;
    const int width = of.by_lanes ? kLaneGroup : 1;
    const int need = (4 * lane_group.size + 2 * lane_group.columns.count()) * width;
    work += (static_cast<std::size_t>(need) + 15) / 8 * 8;  // whole cache lines
    cost.push_back(kNanosecondsPerOperation * flow.operations());
    lane_group.of = std::move(of);
    lane_groups_.push_back(std::move(lane_group));
  }
  tasks_ = cut_into_tasks(cost);
  work_.assign(work, 0.0);
}

template <class Body>
void CoupledFlow::for_groups(const ForEach& each, const Body& body) {
  each(static_cast<int>(tasks_.size()) - 1, [&](int t) {
    for (int k = tasks_[static_cast<std::size_t>(t)]; k < tasks_[static_cast<std::size_t>(t) + 1];
         ++k) {
      const LaneGroup& lane_group = lane_groups_[static_cast<std::size_t>(k)];
      lane_group.of.by_lanes ? body(SideBySide(), lane_group) : body(Alone(), lane_group);
    }
  });
}

/// d as far as a lane group knows without the others, and what is then seen of it.
template <class Algebra>
void CoupledFlow::solve_group(const LaneGroup& lane_group, const double* x, const double* u) {
  constexpr int W = Algebra::kWidth;
  const int n = lane_group.size;
  double* own = work_.data() + lane_group.work;
  double* d = own + n * W;
  double* scratch = d + n * W;
  double* seen = scratch + 2 * n * W;
  double* seen_moved = seen + lane_group.columns.count() * W;
  const double* from[kLaneGroup];
  lane_pointers(system_.blocks(), lane_group.of, x, from);
  Algebra::gather(n, from, own);
  Algebra::increment(flow_of(lane_group.of), own, d, scratch);
  const int lanes = static_cast<int>(lane_group.of.blocks.size());
  for (int l = 0; u != nullptr && l < lanes; ++l) {
    const Member& m =
        members_[static_cast<std::size_t>(lane_group.of.blocks[static_cast<std::size_t>(l)])];
    if (!m.driven) continue;
    for (int k = 0; k < m.inputs.columns(); ++k) {
      for (int e = m.inputs.begin[static_cast<std::size_t>(k)];
           e < m.inputs.begin[static_cast<std::size_t>(k) + 1]; ++e)
        d[m.inputs.row[static_cast<std::size_t>(e)] * W + l] +=
            m.inputs.value[static_cast<std::size_t>(e)] * u[k];
    }
  }
  lane_group.columns.see(own, seen);
  lane_group.columns.see(d, seen_moved);
  for (int c = 0; c < lane_group.columns.count(); ++c) {
    for (int l = 0; l < lanes; ++l) {
      const int channel = lane_group.columns.channel(c, l);
      if (channel >= 0)
        w0_[static_cast<std::size_t>(channel)] = seen[c * W + l] + seen_moved[c * W + l];
    }
  }
}

template <class Algebra>
void CoupledFlow::finish_group(const LaneGroup& lane_group, double* x, double* dissipated_J) {
  constexpr int W = Algebra::kWidth;
  const int n = lane_group.size;
  double* own = work_.data() + lane_group.work;
  double* d = own + n * W;
  double* scratch = d + n * W;
  const int lanes = static_cast<int>(lane_group.of.blocks.size());
  lane_group.columns.enter(f_.data(), scratch + 2 * n * W, d);
  if (dissipated_J != nullptr) {
    double lost[W];
    Algebra::dissipated(flow_of(lane_group.of), own, d, scratch, lost);
    for (int l = 0; l < lanes; ++l)
      dissipated_J[lane_group.of.blocks[static_cast<std::size_t>(l)]] += lost[l];
  }
  Algebra::advance(n, 2.0, d, own);
  double* to[kLaneGroup];
  lane_pointers(system_.blocks(), lane_group.of, x, to);
  Algebra::scatter(n, lanes, own, to);
}

/// At rest but for inputs: their increment is taken with the coupling's, here only seen.
void CoupledFlow::see_at_rest(const Member& member, const double* x, const double* u) {
  const CondensedBlock& block = *member.block;
  const double* own = x + block.first;
  for (int c = 0; c < block.channels; ++c) {
    double w = member.seen.dot(c, own);
    if (u != nullptr && member.driven) {
      for (int e = member.seen.begin[c]; e < member.seen.begin[c + 1]; ++e) {
        double moved = 0.0;
        for (int k = 0; k < member.inputs.columns(); ++k) {
          for (int g = member.inputs.begin[k]; g < member.inputs.begin[k + 1]; ++g) {
            if (member.inputs.row[g] == member.seen.row[e]) moved += member.inputs.value[g] * u[k];
          }
        }
        w += member.seen.value[e] * moved;
      }
    }
    w0_[static_cast<std::size_t>(block.first_channel + c)] = w;
  }
}

void CoupledFlow::apply(const ForEach& each, double* x, const double* u, double& supplied_J,
                        double* dissipated_J) {
  const auto supply = [&] {
    double sum = 0.0;
    for (const Member& m : members_) {
      if (!m.driven) continue;
      for (int k = 0; k < m.supply.columns(); ++k)
        sum += u[k] * m.supply.dot(k, x + m.block->first);
    }
    return sum;
  };
  const double before = u != nullptr ? supply() : 0.0;
  for_groups(each, [&]<class Algebra>(Algebra, const LaneGroup& lane_group) {
    solve_group<Algebra>(lane_group, x, u);
  });
  for (const Member& m : members_) {
    if (!m.active) see_at_rest(m, x, u);
  }
  if (!w0_.empty()) {
    channels_.solve(w0_.data(), w_.data(), scratch_.data());
    for (std::size_t c = 0; c < f_.size(); ++c) f_[c] = C_.dot(static_cast<int>(c), w_.data());
  }
  for_groups(each, [&]<class Algebra>(Algebra, const LaneGroup& lane_group) {
    finish_group<Algebra>(lane_group, x, dissipated_J);
  });
  for (const Member& m : members_) {
    if (m.active) continue;
    double* own = x + m.block->first;
    for (int c = 0; c < m.block->channels; ++c) {
      m.into.add(c, 2.0 * f_[static_cast<std::size_t>(m.block->first_channel + c)], own);
    }
    if (u != nullptr && m.driven) {
      for (int k = 0; k < m.inputs.columns(); ++k) m.inputs.add(k, 2.0 * u[k], own);
    }
  }
  if (u != nullptr) supplied_J += 0.5 * tau_ * (before + supply());
}

double CoupledFlow::shared_cost_ns() const {
  double sum = 0.0;
  for (const LaneGroup& lane_group : lane_groups_)
    sum += kNanosecondsPerOperation * flow_of(lane_group.of).operations();
  return sum;
}

double CoupledFlow::operations() const {
  double sum = static_cast<double>(C_.value.size());
  if (!w0_.empty()) sum += channels_.operations();
  for (const Member& m : members_) {
    if (!m.active) sum += static_cast<double>(m.into.value.size() + m.seen.value.size());
  }
  for (const LaneGroup& lane_group : lane_groups_) {
    sum += static_cast<double>(lane_group.of.blocks.size()) *
           (flow_of(lane_group.of).operations() + lane_group.columns.operations());
  }
  return sum;
}

ScalarFlow::ScalarFlow(const CondensedSystem& system, double tau,
                       std::span<const ScalarCoupling> couplings)
    : tau_(tau) {
  for (const ScalarCoupling& c : couplings) {
    const double j2 = 0.5 * tau * c.forward, j1 = 0.5 * tau * c.backward;
    const double s = j1 * j2;  // ≤ 0: the coupling conserves energy
    pairs_.push_back(
        {c.row, c.column, (1.0 + s) / (1.0 - s), 2.0 * j2 / (1.0 - s), 2.0 * j1 / (1.0 - s)});
  }
  if (system.inputs().empty()) return;
  SparseEntries acts;
  for (const CondensedBlock& block : system.blocks()) {
    SparseMatrix own = block.B;
    if (block.is_descriptor) {
      LinearSolver E;
      if (!E.factorise(block.E)) refuse_singular(block, "E is singular");
      own = sparse(E.solve(block.B));
    }
    for (int k = 0; k < own.outerSize(); ++k) {
      for (SparseMatrix::InnerIterator it(own, k); it; ++it)
        acts.emplace_back(block.first + static_cast<int>(it.row()), k, it.value());
    }
  }
  SparseMatrix all =
      sparse_matrix(system.size(), static_cast<Eigen::Index>(system.inputs().size()), acts);
  inputs_ = ColumnList(all);
  supply_ = ColumnList(pruned_product(system.Q().transpose(), system.B()));
}

double ScalarFlow::power(const double* x, const double* u) const {
  double sum = 0.0;
  for (int k = 0; k < supply_.columns(); ++k) sum += u[k] * supply_.dot(k, x);
  return sum;
}

void ScalarFlow::apply(double* x, const double* u, double& supplied_J) const {
  if (u != nullptr) {
    supplied_J += 0.5 * tau_ * power(x, u);
    for (int k = 0; k < inputs_.columns(); ++k) inputs_.add(k, 0.5 * tau_ * u[k], x);
  }
  for (const Pair& pair : pairs_) {
    pair.map(x[pair.row], x[pair.column], x[pair.row], x[pair.column]);
  }
  if (u != nullptr) {
    for (int k = 0; k < inputs_.columns(); ++k) inputs_.add(k, 0.5 * tau_ * u[k], x);
    supplied_J += 0.5 * tau_ * power(x, u);
  }
}

}  // namespace portwave
