#include "expressions/expression_batch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "base/workspace.hpp"
#include "expressions/expression_maps.hpp"
#include "expressions/expression_newton.hpp"
#include "expressions/lane_row.hpp"
#include "kernels/bent_kernels.hpp"
#include "nonlinear/lane_solver.hpp"
#include "nonlinear/solver_of_each_lane.hpp"
#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/core/lane_exchange.hpp"

namespace portwave {

namespace {
namespace expression_lanes {

using bent::kMostPorts;
using bent::kMostStates;

/// Bit by bit: a zero of the other sign is another number.
bool are_same(std::span<const double> a, std::span<const double> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

/// Whether parts that may share a batch have the same maps.
bool have_same_numbers(const ExpressionLane& a, const ExpressionLane& b) {
  if (a.part == b.part) return true;
  const Structure &s = a.part->structure(), &t = b.part->structure();
  const auto values = [](const auto& A) {
    return std::span(A.data(), static_cast<std::size_t>(A.size()));
  };
  const auto same = [](const SparseMatrix& A, const SparseMatrix& B) {
    const auto size = [](const SparseMatrix& M) { return static_cast<std::size_t>(M.nonZeros()); };
    return are_same({A.valuePtr(), size(A)}, {B.valuePtr(), size(B)});
  };
  return a.energy->weight() == b.energy->weight() &&
         are_same(values(a.energy->Q()), values(b.energy->Q())) &&
         are_same(values(a.energy->c()), values(b.energy->c())) && same(s.J, t.J) &&
         same(s.R, t.R) && same(s.G, t.G) && same(s.P, t.P) && same(s.S, t.S) && same(s.N, t.N);
}

class ExpressionBatch final : public StepBatch, public LaneExchange {
 public:
  ExpressionBatch(std::vector<ExpressionLane> parts, NewtonOptions options)
      : StepBatch(static_cast<int>(parts.size()), parts[0].part->signature().state_size(),
                  parts[0].part->signature().wave_size(), parts[0].part->signature().input_size()),
        parts_(std::move(parts)),
        energy_(*parts_[0].energy),
        n_(state_size()),
        p_(wave_size()),
        q_(input_size()),
        r_(static_cast<int>(energy_.bent().size())),
        width_(lanes() == 1 ? 1 : kLaneGroup),
        maps_(*parts_[0].part, energy_),
        newton_(energy_, maps_, p_),
        mean_registers_(maps_.mean_registers() * at(width_)),
        register_count_(mean_registers_ +
                        maps_.frozen_registers(width_ == 1 ? 1 : bent::kGroups) * at(width_)),
        solvers_(lanes(), p_, false, [this, options](int lane) {
          return std::make_unique<LaneSolver>(*parts_[at(lane)].part, options);
        }) {}

  double scatter_cost_ns() const override { return 20.0 + 10.0 * r_ * (r_ + 1.0); }
  double advance_cost_ns() const override { return 3.0 * scatter_cost_ns(); }

  void prepare(double step_s, const double* impedance) override {
    step_s_ = step_s;
    solvers_.prepare(step_s, impedance, stride());
    coefficients_.clear();
    blocks_.clear();
    std::vector<double> own, last, values, group(at(maps_.coefficient_count * width_));
    for (int lane = 0; lane < groups() * width_; ++lane) {
      const int of = std::min(lane, lanes() - 1);
      own = impedances(of, impedance);
      const bool is_same =
          lane > 0 && have_same_numbers(parts_[at(of)], parts_[at(std::max(of - 1, 0))]);
      if (!is_same || own != last) values = coefficients(of, own);
      last = own;
      for (int k = 0; k < maps_.coefficient_count; ++k) {
        group[at(k * width_ + lane % width_)] = values[at(k)];
      }
      if (lane % width_ < width_ - 1) continue;
      const bool is_new =
          blocks_.empty() || !are_same(group, std::span(coefficients_).last(group.size()));
      if (is_new) coefficients_.insert(coefficients_.end(), group.begin(), group.end());
      blocks_.push_back(static_cast<int>(coefficients_.size() - group.size()));
    }
  }

  bool exchange(int lane, StepBatch& one, const double* impedance) override {
    auto* const other = dynamic_cast<ExpressionBatch*>(&one);
    if (other == nullptr || !maps_.has_entries_of(other->maps_)) return false;
    const ExpressionLane part = other->parts_.front();
    const std::vector<double> values =
        maps_.coefficients(*part.part, *part.energy, step_s_, impedances(lane, impedance));
    solvers_.take(lane, other->solvers_, impedance, stride());
    parts_[at(lane)] = part;
    const int last = lane == lanes() - 1 ? groups() * width_ : lane + 1;
    take_own_block(lane / width_);
    for (int l = lane; l < last; ++l) {
      double* const to = coefficients_.data() + blocks_[at(l / width_)] + l % width_;
      for (int k = 0; k < maps_.coefficient_count; ++k) to[k * width_] = values[at(k)];
    }
    return true;
  }

  std::size_t record_size() const override { return at(groups() * maps_.record_count * width_); }
  std::vector<RecordRegion> record_regions() const override {
    return {{0, at(maps_.record_count * width_)}};
  }
  void set_state(int lane, const double* x, double* record) const override {
    for (int i = 0; i < n_; ++i) *place(record, lane, maps_.state + i) = x[i];
  }
  void get_state(int lane, const double* record, double* x) const override {
    for (int i = 0; i < n_; ++i) x[i] = *place(record, lane, maps_.state + i);
  }

  void freeze(LaneRange range, double* record, const double* input) const override {
    for (int lane = range.first; lane < range.last; ++lane) {
      for (int j = 0; j < q_; ++j) {
        *place(record, lane, maps_.input + j) = input == nullptr ? 0.0 : input[lane * q_ + j];
      }
    }
    freeze_groups(record, range.first / width_, (range.last + width_ - 1) / width_);
  }

  LaneStatus scatter(LaneRange range, double* record, const double* a, double* b) const override {
    return solve_all(range, record, a, nullptr, b, {}, /*warm=*/false);
  }
  LaneStatus inexact_scatter(LaneRange range, double* record, const double* a,
                             double* b) const override {
    return solve_all(range, record, a, nullptr, b, {}, /*warm=*/true);
  }
  LaneStatus advance(LaneRange range, double* record, const double* a, double* next, double* b,
                     const EnergyColumns& energy) const override {
    return solve_all(range, record, a, next, b, energy, /*warm=*/false);
  }

  FailedSolve failed_solve(int lane, const double* record) const override {
    FailedSolve out;
    out.state.resize(at(n_));
    get_state(lane, record, out.state.data());
    for (int j = 0; j < q_; ++j) out.inputs.push_back(*place(record, lane, maps_.input + j));
    return out;
  }

 private:
  template <int W>
  using V = LaneValues<W>;
  template <int W>
  struct Width {
    static constexpr int value = W;
  };

  std::vector<double> impedances(int lane, const double* of_all) const {
    std::vector<double> own(at(p_));
    for (int j = 0; j < p_; ++j) own[at(j)] = of_all[j * stride() + lane];
    return own;
  }
  std::vector<double> coefficients(int lane, const std::vector<double>& impedance) const {
    const ExpressionLane& own = parts_[at(lane)];
    return maps_.coefficients(*own.part, *own.energy, step_s_, impedance);
  }
  /// Equal neighbours share the block of their coefficients: this group no longer.
  void take_own_block(int group) {
    const int begin = blocks_[at(group)];
    if (std::ranges::count(blocks_, begin) == 1) return;
    const auto size = at(maps_.coefficient_count * width_), end = coefficients_.size();
    coefficients_.resize(end + size);
    std::copy_n(coefficients_.begin() + begin, size,
                coefficients_.begin() + static_cast<std::ptrdiff_t>(end));
    blocks_[at(group)] = static_cast<int>(end);
  }

  int groups() const { return (lanes() + width_ - 1) / width_; }
  const double* coefficients(int group) const { return coefficients_.data() + blocks_[at(group)]; }
  template <class Pointer>
  Pointer of_group(Pointer record, int group) const {
    return record + static_cast<std::ptrdiff_t>(group) * maps_.record_count * width_;
  }
  template <class Pointer>
  Pointer place(Pointer record, int lane, int value) const {
    return of_group(record, lane / width_) + value * width_ + lane % width_;
  }
  template <class Act>
  void for_groups(LaneRange range, Act act) const {
    const int last = (range.last + width_ - 1) / width_;
    for (int group = range.first / width_; group < last; ++group) {
      if (width_ == 1) {
        act(Width<1>{}, group);
      } else {
        act(Width<kLaneGroup>{}, group);
      }
    }
  }

  template <int W>
  static void add_product(const double* coefficient, const ExpressionMaps::Block& M,
                          const double* x, V<W>* y) {
    for (int j = 0; j < M.columns; ++j) {
      const V<W> own = Row<W>::at(x, j);
      for (int i = 0; i < M.rows; ++i) y[i] += Row<W>::at(coefficient, M.entry(i, j)) * own;
    }
  }
  template <int W>
  static void store(const V<W>* y, int count, double* to) {
    for (int i = 0; i < count; ++i) Row<W>::put(to, i, y[i]);
  }
  /// What a step needs of x and ū.
  void freeze_groups(double* record, int first, int last) const {
    detail::Workspace registers(register_count_);
    bent::Task task = task_of(record, first, last);
    task.registers_of_frozen = registers.data();
    kernels_.freeze(task);
  }

  LaneStatus solve_all(LaneRange range, double* record, const double* a, double* next, double* b,
                       const EnergyColumns& energy, bool warm) const {
    if (maps_.is_one) return solve_by_kernel(range, record, a, next, b, energy, warm);
    LaneStatus status;
    for_groups(range, [&](auto width, int group) {
      constexpr int W = decltype(width)::value;
      const LaneStatus own = solve_one<W>(group, record, a, next, b, energy, warm);
      if (status.ok()) status = own;
    });
    return status;
  }

  bent::Task task_of(double* record, int first, int last) const {
    bent::Task t;
    t.layout = &maps_.layout;
    t.coefficients = coefficients_.data();
    t.block = blocks_.data();
    t.record = record;
    t.stride = stride();
    t.first = first;
    t.last = last;
    t.step_s = step_s_;
    return t;
  }
  /// Of this group alone, whose record begins at `own` and whose waves are side by side.
  bent::Task task_of_one(int group, double* own, const double* a, double* b) const {
    bent::Task t = task_of(own, 0, 1);
    t.block += group;
    t.stride = width_;
    t.a = a;
    t.b = b;
    return t;
  }

  /// Groups with a lane that the kernel does not solve are left to solve_group, which takes the others as they
  /// are.
  LaneStatus solve_by_kernel(LaneRange range, double* record, const double* a, double* next,
                             double* b, const EnergyColumns& energy, bool warm) const {
    detail::Workspace registers(register_count_);
    bent::Task task = task_of(record, range.first / width_, (range.last + width_ - 1) / width_);
    task.a = a;
    task.b = b;
    task.next = next;
    task.energy = energy;
    task.warm = warm;
    task.registers = registers.data();
    task.registers_of_frozen = registers.data() + mean_registers_;
    LaneStatus status;
    for (;;) {
      const int group = (next == nullptr ? kernels_.scatter : kernels_.advance)(task);
      if (group < 0) return status;
      for_groups({group * width_, group * width_ + 1}, [&](auto width, int) {
        constexpr int W = decltype(width)::value;
        const LaneStatus own = solve_one<W>(group, record, a, next, b, energy, warm);
        if (status.ok()) status = own;
      });
      task.first = group + 1;
    }
  }

  template <int W>
  LaneStatus solve_one(int group, double* record, const double* a, double* next, double* b,
                       const EnergyColumns& energy, bool warm) const {
    const int first = group * W, last = std::min(first + W, lanes());
    return solve_group<W>({first, last}, record, a + first, next, b + first, energy.from(first),
                          warm);
  }

  /// The increments of a group, and its b: by the kernel where the step is one equation. Its lanes
  /// keep their bits beside others that it does not solve.
  template <int W>
  void solve_increments(LaneRange range, double* record, const double* waves, bool warm,
                        IncrementSolve<W>& s, double* outgoing) const {
    double* const own = of_group(record, range.first / width_);
    const double* const coefficient = coefficients(range.first / width_);
    const int used = range.last - range.first;
    const bool has_kernel = maps_.is_one;
    double delta[W], mean[W], by_kernel[kMostPorts * W];
    double failed[W] = {};
    bool all = false;
    if (has_kernel) {
      detail::Workspace registers(register_count_);
      bent::Task task = task_of_one(range.first / width_, own, waves, by_kernel);
      task.warm = warm;
      task.registers = registers.data();
      task.delta = delta;
      task.mean = mean;
      task.failed = failed;
      all = kernels_.scatter(task) < 0;
    }
    if (r_ > 0 && !all)
      newton_.find_increments<W>(own, coefficient, waves, used, warm && !has_kernel, s);
    for (int l = 0; l < W && has_kernel; ++l) {
      if (failed[l] != 0.0) continue;
      s.delta[l] = delta[l];
      s.mean[l] = mean[l];
      s.fails[l] = false;
    }
    for (int lane = range.first; lane < range.last && r_ == 1; ++lane) {
      const int l = lane - range.first;
      if (!s.fails[l]) continue;
      double unused[kMostPorts], given[kMostPorts];
      for (int j = 0; j < p_; ++j) given[j] = waves[j * W + l];
      double by_other = 0.0;
      const StepFault fault =
          solve_damped(lane, record, given, 1, unused, 1, nullptr, l, {}, &by_other);
      if (fault == StepFault::none) {
        s.fails[l] = !newton_.polish<W>(own, coefficient, &by_other, l, s);
      } else if (fault == StepFault::not_converged || fault == StepFault::not_finite) {
        s.fails[l] = !newton_.solve_bracketed<W>(own, coefficient, l, s);
      }
    }
    for (int l = 0; l < used && r_ == 1 && !all; ++l) {
      if (!s.fails[l] && (!has_kernel || failed[l] != 0.0)) newton_.settle<W>(coefficient, l, s);
    }
    if (all) {
      std::copy_n(by_kernel, p_ * W, outgoing);
      return;
    }
    V<W> values[kMostPorts];
    for (int j = 0; j < p_; ++j) values[j] = Row<W>::at(own, maps_.b_offset + j);
    add_product<W>(coefficient, maps_.b_of_wave, waves, values);
    if (r_ > 0) add_product<W>(coefficient, maps_.b_of_mean, s.mean, values);
    store<W>(values, p_, outgoing);
    for (int l = 0; l < W && has_kernel; ++l) {
      for (int j = 0; j < p_ && failed[l] == 0.0; ++j) outgoing[j * W + l] = by_kernel[j * W + l];
    }
  }

  template <int W>
  LaneStatus solve_group(LaneRange range, double* record, const double* a, double* next, double* b,
                         const EnergyColumns& energy, bool warm) const {
    const int group = range.first / width_;
    double* const own = of_group(record, group);
    double waves[kMostPorts * W];
    for (int j = 0; j < p_; ++j) std::copy_n(a + j * stride(), W, waves + j * W);
    IncrementSolve<W> solve;
    double outgoing[kMostPorts * W];
    solve_increments<W>(range, record, waves, warm, solve, outgoing);
    if (next != nullptr) {
      bent::Task task = task_of_one(group, own, waves, outgoing);
      task.next = of_group(next, group);
      task.mean = solve.mean;
      task.delta = solve.delta;
      task.energy = energy;
      kernels_.commit(task);
    }
    LaneStatus status;
    for (int lane = range.first; lane < range.last; ++lane) {
      const int l = lane - range.first;
      bool finite = true;
      for (int j = 0; j < p_; ++j) finite = finite && std::isfinite(outgoing[j * W + l]);
      if (finite && (r_ == 0 || !solve.fails[l])) continue;
      const StepFault fault =
          solve_damped(lane, record, a + l, stride(), outgoing + l, W, next, l, energy);
      if (fault != StepFault::none && status.ok()) status = {lane, fault};
    }
    for (int j = 0; j < p_; ++j) {
      for (int l = 0; l < range.last - range.first; ++l) b[j * stride() + l] = outgoing[j * W + l];
    }
    // The lanes that were solved otherwise are completed again with the others, to the same bits.
    if (next != nullptr) freeze_groups(next, group, group + 1);
    return status;
  }

  /// One lane, by the solver of any part; its a at a[j·a_step], its b at outgoing[j·step].
  StepFault solve_damped(int lane, const double* record, const double* a, int a_step,
                         double* outgoing, int step, double* next, int l,
                         const EnergyColumns& energy, double* bent_increment = nullptr) const {
    double x[kMostStates], x_next[kMostStates], waves[kMostPorts], b[kMostPorts];
    detail::Workspace inputs(at(q_ + 1));
    get_state(lane, record, x);
    for (int j = 0; j < q_; ++j) inputs.data()[j] = *place(record, lane, maps_.input + j);
    for (int j = 0; j < p_; ++j) waves[j] = a[j * a_step];
    return solvers_.with(lane, [&](LaneSolver& solver) {
      solver.part().freeze(x, inputs.data());
      const StepFault fault = solver.solve(waves, b);
      if (fault != StepFault::none) return fault;
      for (int j = 0; j < p_; ++j) outgoing[j * step] = b[j];
      if (bent_increment != nullptr) *bent_increment = solver.increment()[energy_.bent()[0]];
      if (next == nullptr) return fault;
      const StepEnergy own = solver.part().commit(solver.increment(), x_next);
      set_state(lane, x_next, next);
      if (energy.wanted()) energy.set(l, own);
      return fault;
    });
  }

  std::vector<ExpressionLane> parts_;
  SplitEnergy energy_;  ///< V, which is that of all
  int n_, p_, q_, r_;
  int width_;
  ExpressionMaps maps_;
  ExpressionNewton newton_;
  double step_s_ = 0.0;
  const bent::Kernels& kernels_ = width_ == 1 ? bent::kernels().one : bent::kernels().eight;
  std::size_t mean_registers_, register_count_;
  AlignedVector coefficients_;
  std::vector<int> blocks_;  ///< where those of a group begin
  SolverOfEachLane<LaneSolver> solvers_;
};

}  // namespace expression_lanes
}  // namespace

bool has_lanes(const SplitEnergy& energy, const Signature& signature) {
  using namespace expression_lanes;
  return signature.state_size() <= kMostStates && signature.wave_size() <= kMostPorts &&
         signature.input_size() <= kMostStates &&
         std::ssize(energy.bent()) <= ExpressionNewton::kMostBent;
}

std::unique_ptr<StepBatch> make_expression_batch(std::vector<ExpressionLane> parts,
                                                 NewtonOptions options) {
  return std::make_unique<expression_lanes::ExpressionBatch>(std::move(parts), options);
}

}  // namespace portwave
