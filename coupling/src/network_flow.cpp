#include "network_flow.hpp"

#include <cstddef>
#include <utility>

#include <fmt/format.h>

namespace portwave {
namespace {

SparseMatrix product(const SparseMatrix& a, const SparseMatrix& b) {
  SparseMatrix out = a * b;
  out.prune(0.0);
  return out;
}

SparseMatrix generator(const CondensedBlock& block, FlowTerms terms) {
  switch (terms) {
    case FlowTerms::conservative:
      return product(block.J, block.Q);
    case FlowTerms::dissipative:
      return product(-block.R, block.Q);
    case FlowTerms::all:
      break;
  }
  return product(block.J - block.R, block.Q);
}

SparseMatrix sparse(const Eigen::MatrixXd& m) { return m.sparseView(); }

[[noreturn]] void refuse_singular(const CondensedBlock& block, const char* what) {
  throw ConfigError(fmt::format("/subsystems/{}", block.part), what);
}

}  // namespace

BlockFlow::BlockFlow(const CondensedBlock& block, double tau, FlowTerms terms)
    : block_(&block),
      tau_(tau),
      dissipates_(terms != FlowTerms::conservative && block.R.nonZeros() > 0),
      A_(generator(block, terms)) {
  A_.makeCompressed();
  if (!solver_.factorise(SparseMatrix((2.0 / tau) * block.E - A_))) {
    refuse_singular(block, "the implicit step is singular at this step size");
  }
}

void BlockFlow::increment(const double* x, const double* extra, double* d, double* scratch) const {
  const int n = solver_.size();
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
  double* rhs = scratch + solver_.size() * kLanes;
  lane_kernels().product(lanes_->A.lines(), x, rhs);
  solver_.solve_lanes(rhs, d, scratch);
}

void BlockFlow::dissipated_lanes(const double* x, const double* d, double* z, double* sum) const {
  for (int l = 0; l < kLanes; ++l) sum[l] = 0.0;
  if (!dissipates_) return;
  lane_kernels().product(lanes_->Q.lines(), x, z);
  lane_kernels().add_product(lanes_->Q.lines(), 1.0, d, z);
  lane_kernels().bilinear(lanes_->R.lines(), z, z, sum);
  for (int l = 0; l < kLanes; ++l) sum[l] *= tau_;
}

CoupledFlow::CoupledFlow(const CondensedSystem& system, double tau, std::vector<bool> active)
    : system_(system), tau_(tau) {
  const auto channels = static_cast<std::size_t>(system.channels());
  flows_.reserve(system.blocks().size());
  std::vector<Eigen::Triplet<double>> S;
  std::size_t work = 0;
  for (std::size_t i = 0; i < system.blocks().size(); ++i) {
    const CondensedBlock& block = system.blocks()[i];
    Member member;
    member.block = &block;
    member.driven = block.B.nonZeros() > 0;
    const SparseMatrix seen = product(block.Q.transpose(), block.out);
    SparseMatrix into, inputs;
    if (active[i]) {
      member.flow = static_cast<int>(flows_.size());
      flows_.emplace_back(block, tau, FlowTerms::all);
      into = sparse(flows_.back().response(block.into));
      inputs = sparse(flows_.back().response(block.B));
      active_.push_back(static_cast<int>(i));
      member.work = work;
      work += static_cast<std::size_t>(2 * block.size + flows_.back().scratch_size());
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
    const SparseMatrix loop = product(seen.transpose(), into);
    for (int c = 0; c < loop.outerSize(); ++c) {
      for (SparseMatrix::InnerIterator it(loop, c); it; ++it) {
        S.emplace_back(block.first_channel + static_cast<int>(it.row()), block.first_channel + c,
                       it.value());
      }
    }
    member.into = ColumnList(into);
    member.seen = ColumnList(seen);
    member.inputs = ColumnList(inputs);
    member.supply = ColumnList(product(block.Q.transpose(), block.B));
    members_.push_back(std::move(member));
  }
  if (channels > 0) {
    const auto r = static_cast<Eigen::Index>(channels);
    SparseMatrix within(r, r), one(r, r);
    within.setFromTriplets(S.begin(), S.end());
    one.setIdentity();
    if (!channels_.factorise(SparseMatrix(one - product(within, system.C())))) {
      throw ConfigError("/couplings", "the coupled implicit step is singular at this step size");
    }
    C_ = ColumnList(SparseMatrix(system.C().transpose()));
  }
  for (auto* v : {&w0_, &w_, &f_, &scratch_}) v->assign(channels, 0.0);
  work_.assign(work, 0.0);
}

void CoupledFlow::solve_block(const Member& member, const double* x, const double* u) {
  const CondensedBlock& block = *member.block;
  const double* own = x + block.first;
  if (member.flow >= 0) {
    double* d = work_.data() + member.work;
    flows_[static_cast<std::size_t>(member.flow)].increment(own, nullptr, d, d + block.size);
    if (u != nullptr && member.driven) {
      for (int k = 0; k < member.inputs.columns(); ++k) member.inputs.add(k, u[k], d);
    }
    for (int c = 0; c < block.channels; ++c) {
      w0_[static_cast<std::size_t>(block.first_channel + c)] =
          member.seen.dot(c, own) + member.seen.dot(c, d);
    }
    return;
  }
  // At rest but for inputs: their increment is taken with the coupling's, here only seen.
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
  each(static_cast<int>(active_.size()), [&](int i) {
    solve_block(members_[static_cast<std::size_t>(active_[static_cast<std::size_t>(i)])], x, u);
  });
  for (const Member& m : members_) {
    if (m.flow < 0) solve_block(m, x, u);
  }
  if (!w0_.empty()) {
    channels_.solve(w0_.data(), w_.data(), scratch_.data());
    for (std::size_t c = 0; c < f_.size(); ++c) f_[c] = C_.dot(static_cast<int>(c), w_.data());
  }
  each(static_cast<int>(active_.size()), [&](int i) {
    const int index = active_[static_cast<std::size_t>(i)];
    const Member& m = members_[static_cast<std::size_t>(index)];
    const CondensedBlock& block = *m.block;
    double* own = x + block.first;
    double* d = work_.data() + m.work;
    for (int c = 0; c < block.channels; ++c) {
      m.into.add(c, f_[static_cast<std::size_t>(block.first_channel + c)], d);
    }
    if (dissipated_J != nullptr) {
      dissipated_J[index] +=
          flows_[static_cast<std::size_t>(m.flow)].dissipated(own, d, d + block.size);
    }
    for (int k = 0; k < block.size; ++k) own[k] += 2.0 * d[k];
  });
  for (const Member& m : members_) {
    if (m.flow >= 0) continue;
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

double CoupledFlow::shared_operations() const {
  double sum = 0.0;
  for (const int i : active_) {
    const Member& m = members_[static_cast<std::size_t>(i)];
    sum += flows_[static_cast<std::size_t>(m.flow)].operations() +
           static_cast<double>(m.into.value.size() + 2 * m.seen.value.size());
  }
  return sum;
}

double CoupledFlow::operations() const {
  double sum = shared_operations() + static_cast<double>(C_.value.size());
  if (!w0_.empty()) sum += channels_.operations();
  for (const Member& m : members_) {
    if (m.flow < 0) sum += static_cast<double>(m.into.value.size() + m.seen.value.size());
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
  std::vector<Eigen::Triplet<double>> acts;
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
  SparseMatrix all(system.size(), static_cast<Eigen::Index>(system.inputs().size()));
  all.setFromTriplets(acts.begin(), acts.end());
  inputs_ = ColumnList(all);
  supply_ = ColumnList(product(system.Q().transpose(), system.B()));
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
