#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "network/iteration/waveform_impl.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"

namespace portwave {
namespace {

SparseMatrix product(const SparseMatrix& a, const SparseMatrix& b) { return a * b; }

}  // namespace

WaveformIteration::Impl::Impl(const CondensedSystem& s, double step_s,
                              const DynamicIteration& given)
    : system(s),
      h(step_s),
      parameters(resolve_parameters(s, step_s, given)),
      table(tableau(parameters.integrator)),
      window(given.window_steps),
      stages(table.stages),
      n(s.size()),
      channels(s.channels()),
      classes(s.blocks()) {
  is_lm = parameters.kind == IterationKind::lions_mercier;
  const double points = static_cast<double>(window) * stages;
  if (points * n > 4e9 || points * std::max(channels, 1) > 4e9) {
    throw ConfigError("/method/window_steps",
                      "the waveforms of a window would not fit into memory; take shorter windows");
  }
  count = static_cast<std::size_t>(window) * static_cast<std::size_t>(stages);
  for (int c = 0; c < classes.count(); ++c) prepare(c);
  for (const CondensedBlock& own : s.blocks()) {
    block_seen.emplace_back(product(own.Q.transpose(), own.out));
    supply.push_back(own.B.nonZeros() > 0 ? product(own.Q.transpose(), own.B) : SparseMatrix());
  }
  C_rows = ColumnList(SparseMatrix(s.C().transpose()));
  if (is_lm && channels > 0) factorise_channels();
  make_groups();
  seen.assign(count * static_cast<std::size_t>(channels), 0.0);
  driving.assign(seen.size(), 0.0);
  inputs.assign(count * s.inputs().size(), 0.0);
  start.assign(static_cast<std::size_t>(n), 0.0);
  change.assign(s.blocks().size(), 0.0);
  size.assign(change.size(), 0.0);
  finite.assign(change.size(), 1);
  ledger.resize(change.size() * static_cast<std::size_t>(window));
  weight.resize(static_cast<std::size_t>(window));
  const double omega = is_lm ? parameters.omega : 0.0;
  for (int k = 0; k < window; ++k)
    weight[static_cast<std::size_t>(k)] = std::exp(-2.0 * omega * h * k);
}

void WaveformIteration::Impl::prepare(int block_class) {
  const CondensedBlock& example = block(classes.example(block_class));
  Class out;
  SparseMatrix identity(example.size, example.size);
  identity.setIdentity();
  const SparseMatrix RQ = example.R * example.Q;
  SparseMatrix generator = SparseMatrix(example.J * example.Q);
  out.energy = GroupMatrix(0.5 * product(example.Q.transpose(), example.E));
  out.Q = GroupMatrix(example.Q);
  out.R = GroupMatrix(example.R);
  const auto refuse = [&] {
    throw ConfigError(fmt::format("/subsystems/{}", example.part),
                      "the implicit step of this part by itself is singular: without what the "
                      "others do to it, it may have "
                      "no unique solution; wave coupling takes it");
  };
  if (is_lm) {
    const DynamicParameters& p = parameters;
    out.E = GroupMatrix(example.E);
    out.J = GroupMatrix(example.J);
    out.T = GroupMatrix(p.metric == IterationMetric::energy ? identity : example.Q);
    generator += SparseMatrix(p.mu * example.E - p.alpha * RQ - (1.0 / p.lambda) * out.T.M);
    if (!out.shift.factorise(
            SparseMatrix(out.T.M + p.lambda * ((1.0 - p.alpha) * RQ + p.mu * example.E))))
      refuse();
  } else {
    generator -= RQ;
  }
  generator.makeCompressed();
  if (!out.solver.prepare(table, h, example.E, generator)) refuse();
  out.operations = out.solver.operations() + 2.0 * stages * example.size;
  if (is_lm) {
    out.operations +=
        stages * (out.shift.operations() + 2.0 * static_cast<double>(out.T.M.nonZeros()));
  }
  out.operations *= window;
  prepared.push_back(std::move(out));
}

void WaveformIteration::Impl::make_groups() {
  const CouplingGroups groups = group_by_coupling(system.blocks(), classes);
  if (parameters.kind == IterationKind::gauss_seidel) {
    for (const std::vector<int>& level : order_levels()) {
      levels.push_back(static_cast<int>(lane_groups.size()));
      for (BlockGroup& lane_group : classes.lane_groups(level, groups.of))
        add_group(std::move(lane_group), groups);
    }
    levels.push_back(static_cast<int>(lane_groups.size()));
  } else {
    std::vector<int> all(system.blocks().size());
    std::iota(all.begin(), all.end(), 0);
    for (BlockGroup& lane_group : classes.lane_groups(all, groups.of))
      add_group(std::move(lane_group), groups);
  }
  cut_tasks();
}

void WaveformIteration::Impl::add_group(BlockGroup of, const CouplingGroups& groups) {
  const int first = of.blocks.front();
  const int widest =
      groups.widest[static_cast<std::size_t>(groups.of[static_cast<std::size_t>(first)])];
  const CondensedBlock& example = block(widest);
  Class& own = prepared[static_cast<std::size_t>(of.block_class)];
  if (of.by_lanes && !own.has_lanes) {
    for (GroupMatrix* m : {&own.T, &own.E, &own.J, &own.R, &own.Q, &own.energy}) m->prepare_lanes();
    own.solver.prepare_lanes();
    own.shift.prepare_lanes();
    own.has_lanes = true;
  }
  LaneGroup lane_group;
  lane_group.width = of.by_lanes ? kLaneGroup : 1;
  lane_group.size = example.size;
  SparseMatrix into = example.into;
  if (is_lm) {
    const Eigen::MatrixXd response = own.shift.solve(example.into);
    into = Eigen::MatrixXd(2.0 * parameters.lambda * (own.T.M * response)).sparseView();
  }
  lane_group.columns = CouplingColumns(system.blocks(), of, into,
                                       product(example.Q.transpose(), example.out), widest);
  for (const int i : of.blocks) lane_group.driven = lane_group.driven || block(i).B.nonZeros() > 0;
  lane_group.of = std::move(of);
  const auto states = static_cast<std::size_t>(lane_group.size * lane_group.width);
  lane_group.waveform = zeta.size();
  lane_group.start = group_start.size();
  if (is_lm) zeta.resize(zeta.size() + count * states, 0.0);
  group_start.resize(group_start.size() + states, 0.0);
  lane_groups.push_back(std::move(lane_group));
}

void WaveformIteration::Impl::factorise_channels() {
  SparseEntries entries;
  for (std::size_t i = 0; i < system.blocks().size(); ++i) {
    const CondensedBlock& own = system.blocks()[i];
    if (own.channels == 0) continue;
    const Class& shared = prepared[static_cast<std::size_t>(classes.of(static_cast<int>(i)))];
    const Eigen::MatrixXd S = parameters.lambda *
                              Eigen::MatrixXd(product(own.Q.transpose(), own.out)).transpose() *
                              shared.shift.solve(own.into);
    for (int b = 0; b < S.cols(); ++b) {
      for (int a = 0; a < S.rows(); ++a) {
        if (S(a, b) != 0.0)
          entries.emplace_back(own.first_channel + a, own.first_channel + b, S(a, b));
      }
    }
  }
  SparseMatrix S(channels, channels), one(channels, channels);
  S.setFromTriplets(entries.begin(), entries.end());
  one.setIdentity();
  if (!coupling.factorise(SparseMatrix(one - SparseMatrix(S * system.C())))) {
    throw ConfigError("/couplings", "the coupling of the stages is singular");
  }
}

/// Runs of lane groups, and of stages, that are worth a task; lane groups of Gauss–Seidel are tasks
/// by themselves.
void WaveformIteration::Impl::cut_tasks() {
  delta.assign(zeta.size(), 0.0);
  std::vector<double> cost;
  for (const LaneGroup& lane_group : lane_groups)
    cost.push_back(kNanosecondsPerOperation * class_of(lane_group).operations);
  tasks = cut_into_tasks(cost);
  // Lane groups of a task share their scratch, unless another order takes them at once. Whole cache lines
  // between tasks.
  std::size_t scratch_end = 0;
  for (std::size_t t = 0; t + 1 < tasks.size(); ++t) {
    std::size_t most = 0;
    for (int k = tasks[t]; k < tasks[t + 1]; ++k) {
      LaneGroup& lane_group = lane_groups[static_cast<std::size_t>(k)];
      lane_group.scratch = scratch_end;
      const std::size_t own = (scratch_size(lane_group) + 15) / 8 * 8;
      most = std::max(most, own);
      if (levels.empty()) continue;
      scratch_end += own;
      most = 0;
    }
    scratch_end += most;
  }
  work.assign(scratch_end, 0.0);
  const double per_stage =
      (is_lm ? coupling.operations() : 0.0) + static_cast<double>(C_rows.value.size()) + 1.0;
  stages_per_task = static_cast<std::size_t>(
      std::max(1.0, std::ceil(task_nanoseconds() / (kNanosecondsPerOperation * per_stage))));
  stage_tasks = static_cast<int>((count + stages_per_task - 1) / stages_per_task);
  channel_work.assign(
      static_cast<std::size_t>(stage_tasks) * static_cast<std::size_t>(2 * channels + 16), 0.0);
}

std::vector<std::vector<int>> WaveformIteration::Impl::order_levels() const {
  std::vector<std::vector<int>> out;
  std::vector<int> level(system.blocks().size(), 0);
  for (std::size_t i = 0; i < level.size(); ++i) {
    const CondensedBlock& own = system.blocks()[i];
    for (int c = own.first_channel; c < own.first_channel + own.channels; ++c) {
      for (int k = C_rows.begin[static_cast<std::size_t>(c)];
           k < C_rows.begin[static_cast<std::size_t>(c) + 1]; ++k) {
        const int other = system.block_of_channel(C_rows.row[static_cast<std::size_t>(k)]);
        if (other < static_cast<int>(i))
          level[i] = std::max(level[i], level[static_cast<std::size_t>(other)] + 1);
      }
    }
    if (out.size() <= static_cast<std::size_t>(level[i]))
      out.resize(static_cast<std::size_t>(level[i]) + 1);
    out[static_cast<std::size_t>(level[i])].push_back(static_cast<int>(i));
  }
  return out;
}

WaveformIteration::WaveformIteration(const CondensedSystem& system, double step_s,
                                     const DynamicIteration& options)
    : impl_(std::make_unique<Impl>(system, step_s, options)) {}
WaveformIteration::~WaveformIteration() = default;
WaveformIteration::WaveformIteration(WaveformIteration&&) noexcept = default;

const DynamicParameters& WaveformIteration::parameters() const { return impl_->parameters; }
int WaveformIteration::window_steps() const { return impl_->window; }
int WaveformIteration::stages_per_step() const { return impl_->stages; }
std::size_t WaveformIteration::stages_size() const {
  return impl_->count * static_cast<std::size_t>(impl_->n);
}
void WaveformIteration::begin(double time_s, std::span<const double> x) { impl_->begin(time_s, x); }
void WaveformIteration::start_from(std::span<const double> stages) {
  if (impl_->is_lm) throw std::logic_error("Lions-Mercier starts from a constant only");
  impl_->start_from(stages);
}

WaveformChange WaveformIteration::iterate(const ForEach& each) { return impl_->iterate(each); }
void WaveformIteration::solve(const ForEach& each, std::span<double> stages) {
  impl_->solve(each, stages);
}
void WaveformIteration::finish(const ForEach& each, std::span<double> states,
                               std::span<StepEnergies> energies) {
  impl_->finish(each, states, energies);
}

void WaveformIteration::z(std::span<double> stages) const { impl_->copy_z(stages); }

void WaveformIteration::z_of_solution(std::span<const double> stages, std::span<double> out) const {
  const Impl& i = *impl_;
  const DynamicParameters& p = i.parameters;
  const SparseMatrix Q = i.system.Q();
  const SparseMatrix KQ = SparseMatrix((1.0 - p.alpha) * i.system.R() - i.system.J_coupling()) * Q +
                          p.mu * i.system.E();
  SparseMatrix T(i.n, i.n);
  T.setIdentity();
  if (p.metric == IterationMetric::identity) T = Q;
  const SparseMatrix map = T - p.lambda * KQ;
  std::fill(out.begin(), out.end(), 0.0);
  for (std::size_t point = 0; point < i.count; ++point) {
    add_product(map, 1.0, stages.data() + point * static_cast<std::size_t>(i.n),
                out.data() + point * static_cast<std::size_t>(i.n));
  }
}

double WaveformIteration::weighted_norm(std::span<const double> stages) const {
  const Impl& i = *impl_;
  const bool energy = i.is_lm && i.parameters.metric == IterationMetric::energy;
  const SparseMatrix Q = energy ? i.system.Q() : SparseMatrix();
  double sum = 0.0;
  for (std::size_t point = 0; point < i.count; ++point) {
    const double* w = stages.data() + point * static_cast<std::size_t>(i.n);
    sum += i.point_weight(point) *
           (energy ? bilinear(Q, w, w) : Eigen::Map<const Eigen::VectorXd>(w, i.n).squaredNorm());
  }
  return std::sqrt(sum);
}

double WaveformIteration::plain_norm(std::span<const double> stages) const {
  const Impl& i = *impl_;
  double sum = 0.0;
  for (std::size_t point = 0; point < i.count; ++point) {
    const double* w = stages.data() + point * static_cast<std::size_t>(i.n);
    sum += i.h * i.table.b[point % static_cast<std::size_t>(i.stages)] *
           Eigen::Map<const Eigen::VectorXd>(w, i.n).squaredNorm();
  }
  return std::sqrt(sum);
}

std::size_t WaveformIteration::bytes() const {
  const Impl& i = *impl_;
  std::size_t doubles = i.work.capacity();
  for (const auto* v : {&i.zeta, &i.delta, &i.seen, &i.driving, &i.inputs, &i.start, &i.group_start,
                        &i.channel_work, &i.weight, &i.given_start})
    doubles += v->capacity();
  return doubles * sizeof(double) + i.ledger.capacity() * sizeof(StepEnergies);
}

int WaveformIteration::tasks() const { return static_cast<int>(impl_->tasks.size()) - 1; }

double WaveformIteration::iteration_cost_ns() const {
  double sum = 0.0;
  for (const Impl::LaneGroup& lane_group : impl_->lane_groups)
    sum += impl_->class_of(lane_group).operations;
  return kNanosecondsPerOperation * sum;
}

}  // namespace portwave
