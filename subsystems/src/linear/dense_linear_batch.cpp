#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include <Eigen/Dense>

#include "base/workspace.hpp"
#include "core/lane_coefficients.hpp"
#include "core/lane_values.hpp"
#include "kernels/linear_kernels.hpp"
#include "linear/distinct_parts.hpp"
#include "linear/energy_pattern.hpp"
#include "linear/linear_batches.hpp"
#include "linear/linear_sparsity.hpp"
#include "linear/linear_stages.hpp"
#include "linear/step_maps.hpp"
#include "linear/step_rows.hpp"
#include "portwave/subsystems/base/equal_classes.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/core/port_solves.hpp"

namespace portwave {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

/// The step maps of one lane, as the kernels read them (see LinearGroup).
struct FlatMaps {
  std::vector<double> scatter, step, input, energy, mapped, increments;
  void clear() {
    for (std::vector<double>* block : blocks()) block->clear();
  }
  std::array<std::vector<double>*, 6> blocks() {
    return {&scatter, &step, &input, &energy, &mapped, &increments};
  }
};

void append(const Matrix& m, std::vector<double>& out) {
  for (Eigen::Index i = 0; i < m.rows(); ++i) {
    for (Eigen::Index j = 0; j < m.cols(); ++j) out.push_back(m(i, j));
  }
}

/// Parts of equal shape with dense step maps, of one stage or several. Coefficients lie eight lanes side by side; lane
/// groups whose eight parts are equal, impedances too, share one set with all others of the same
/// values.
class DenseLinearBatch final : public StepBatch,
                               public AffineMap,
                               public StepRoundings,
                               public StageMotion,
                               public BoundCalls,
                               public PortSolves {
 public:
  explicit DenseLinearBatch(std::span<const Component* const> parts)
      : StepBatch(static_cast<int>(parts.size()), parts[0]->signature().state_size(),
                  parts[0]->signature().wave_size(), parts[0]->signature().input_size()),
        kernels_(linear_kernels()),
        signature_(parts[0]->signature()),
        stages_(gauss_stages(parts[0]->stages())),
        substeps_(parts[0]->substeps()),
        width_(lanes() == 1 ? 1 : kLaneGroup) {
    for (const Component* part : parts) {
      parts_.push_back(dynamic_cast<const LinearPortHamiltonian*>(part->port_hamiltonian()));
    }
    shape_.n = state_size();
    shape_.p = wave_size();
    shape_.q = input_size();
    shape_.z = substeps_ * stages_.count * shape_.n;
    for (const Port& port : signature_.ports) {
      sign_.insert(sign_.end(), static_cast<std::size_t>(port.dimension),
                   port.causality == Causality::effort_in ? 1.0 : -1.0);
    }
    shape_.input_sign = sign_.data();
  }

  double advance_cost_ns() const override {
    return 2.0 + 0.06 * (shape_.n + shape_.p) * (shape_.n + shape_.p);
  }

  const AffineMap* affine_map() const override { return this; }
  const StepRoundings* roundings() const override { return this; }
  const StageMotion* stage_motion() const override { return is_staged() ? this : nullptr; }
  const BoundCalls* bound_calls() const override { return this; }
  const PortSolves* port_solves() const override { return this; }

  void expect(const BatchUse& use) override {
    may_be_driven_ = use.inputs;
    keeps_increments_ = use.stage_increments && is_staged();
  }
  void prepare(double step_s, const double* impedance) override {
    const DistinctParts distinct(parts_, impedance, shape_.p, stride());
    if (step_s != step_s_) solved_.clear();
    step_s_ = step_s;
    const std::vector<int> of_sparsity = find_sparsities(distinct);
    energies_.arrange(sparsities_, is_staged(), width_, shape_);
    arrange_rows(distinct, of_sparsity);
    store(distinct, of_sparsity);
    find_bounds();
  }

  std::size_t record_size() const override {
    return scratch() + static_cast<std::size_t>(group_count()) * scratch_size();
  }
  std::vector<RecordRegion> record_regions() const override {
    return {{0, static_cast<std::size_t>(shape_.p * width_)},
            {states(), group_size()},
            {scratch(), scratch_size()}};
  }
  void set_state(int lane, const double* x, double* record) const override {
    double* own = record + offset_in_record(lane);
    for (int i = 0; i < shape_.n; ++i) own[i * width_] = x[i];
  }
  void get_state(int lane, const double* record, double* x) const override {
    const double* own = record + offset_in_record(lane);
    for (int i = 0; i < shape_.n; ++i) x[i] = own[i * width_];
  }

  void freeze(LaneRange range, double* record, const double* input) const override {
    for (int l = range.first; l < range.last; ++l) {
      double* own = record + offset_in_record(l) + shape_.n * width_;
      for (int j = 0; j < shape_.q; ++j) {
        own[j * width_] = input == nullptr ? 0.0 : input[l * shape_.q + j];
      }
    }
    LinearTask task = task_for(range, record);
    task.driven = input != nullptr && shape_.q > 0;
    kernels_.freeze(task);
  }

  LaneStatus scatter(LaneRange range, double* record, const double* a, double* b) const override {
    LinearTask task = task_for(range, record);
    task.a = a;
    task.b = b;
    kernels_.scatter(task);
    return {};
  }

  BoundCall bind_scatter(LaneRange range, double* record, const double* a,
                         double* b) const override {
    LinearTask task = task_for(range, record);
    task.a = a;
    task.b = b;
    return BoundCall::of(kernels_.scatter_of(width_, shape_.p), task);
  }
  PortSolve port_solve(int lane, double* record) const override {
    const LinearGroup& group = groups_[static_cast<std::size_t>(lane / width_)];
    return {.form = PortSolve::Form::affine,
            .ports = shape_.p,
            .coefficient_step = group.shared ? 1 : width_,
            .step = width_,
            .coefficients = group.scatter + (group.shared ? 0 : lane % width_),
            .offset = record + (lane / width_) * shape_.p * width_ + lane % width_};
  }
  BoundCall bind_advance(LaneRange range, double* record, const double* a, double* next, double* b,
                         const EnergyColumns& energy) const override {
    return BoundCall::of(advance_kernel(), advance_task(range, record, a, next, b, energy));
  }

  LaneStatus advance(LaneRange range, double* record, const double* a, double* next, double* b,
                     const EnergyColumns& energy) const override {
    const LinearTask task = advance_task(range, record, a, next, b, energy);
    const int bad = advance_kernel()(&task);
    if (bad >= 0 && bad < range.last) return {bad, StepFault::not_finite};
    return {};
  }

  /// Every increment is known to ε of its terms and every state to ε of itself, weighed by what x⁺
  /// changes the balance by; every b to ε of its own terms; and the work of an input to ε of the
  /// terms of what it acts on.
  std::optional<double> step_rounding(int lane, const double* record, const double* a,
                                      const double* next) const override {
    const LinearGroup& group = groups_[static_cast<std::size_t>(lane / width_)];
    double rounding = 0.0;
    find_rounding<1, false>(group, lane, record, a, next, &rounding);
    return rounding;
  }
  bool step_roundings(int lane, const double* record, const double* a, const double* next,
                      double* out) const override {
    if (width_ != kLaneGroup) return false;
    const int first = lane / width_ * width_;
    find_rounding<kLaneGroup, false>(groups_[static_cast<std::size_t>(lane / width_)], first,
                                     record, a, next, out);
    return true;
  }
  bool step_rounding_bounds(int lane, const double* record, const double* a, const double* next,
                            double* out) const override {
    width_ == 1 ? bound_rounding<1>(lane, record, a, next, out)
                : bound_rounding<kLaneGroup>(lane, record, a, next, out);
    return true;
  }

  int stages() const override { return stages_.count; }
  void stage_increments(LaneRange range, const double* record, const double* a,
                        const double* /*next*/, double* out) const override {
    // The kernel writes nothing to the record.
    LinearTask task = task_for(range, const_cast<double*>(record));  // NOLINT(*-const-cast)
    task.a = a;
    kernels_.increments(task, out);
  }

  void affine_matrix(int lane, double* matrix) const override {
    const LinearGroup& group = groups_[static_cast<std::size_t>(lane / width_)];
    const int step = group.shared ? 1 : width_;
    const double* sigma = group.scatter + (group.shared ? 0 : lane % width_);
    const double* gain = sigma + shape_.p * step;
    for (int i = 0; i < shape_.p; ++i) {
      for (int j = 0; j < shape_.p; ++j) {
        matrix[i * shape_.p + j] =
            gain[(i * shape_.p + j) * step] + (i == j ? sigma[i * step] : 0.0);
      }
    }
  }
  void affine_offset(int lane, const double* record, double* offset) const override {
    const double* own = record + (lane / width_) * shape_.p * width_ + lane % width_;
    for (int i = 0; i < shape_.p; ++i) offset[i] = own[i * width_];
  }

 private:
  /// Of so many lanes from `lane` on. `kBound`: what it cannot exceed where no state, wave or input is
  /// larger than 1, none of which are then read.
  template <int width, bool kBound>
  void find_rounding(const LinearGroup& group, int lane, const double* record, const double* a,
                     const double* next, double* out) const {
    constexpr double kPerTerm = 8.0 * std::numeric_limits<double>::epsilon();
    const int step = group.shared ? 1 : width_;
    const int own = group.shared ? 0 : lane % width_;
    const int n = shape_.n, p = shape_.p, q = shape_.q;
    using V = LaneValues<width>;
    const auto size = [&](const double* block, int i) {
      return group.shared ? V::all(std::abs(block[i])) : abs(V::from(block + i * step + own));
    };
    const auto value = [&](const double* block, int i) {
      if (kBound) return size(block, i);
      return group.shared ? V::all(block[i]) : V::from(block + i * step + own);
    };
    const double* x = kBound ? nullptr : record + offset_in_record(lane);
    const double* after = kBound ? nullptr : next + offset_in_record(lane);
    const auto state = [&](const double* of, int i) {
      return kBound ? V::all(1.0) : V::from(of + i * width_);
    };
    const auto incident = [&](int j) {
      return kBound ? V::all(1.0) : V::from(a + j * stride() + lane);
    };
    const double* output =
        group.energy +
        (n + shape_.storage_count + shape_.gradient_count + shape_.dissipation_count) * step;
    const double* per_wave = output + shape_.output_count * step;
    const auto sizes = static_cast<std::size_t>(5 * n + q + shape_.z + 2 * p);
    detail::Workspace work(sizes * width);
    V* const slope =
        reinterpret_cast<V*>(work.data());  // what an error of x⁺ changes the balance by
    std::uninitialized_fill_n(slope, sizes, V::all(0.0));
    V* const terms = slope + n;               // of [z; u]
    V* const shifted = terms + shape_.z + p;  // x⁺ less what the inputs work on
    V* const of_gradient = shifted + n;       // terms of Qx
    V* const size_of_x = of_gradient + n;     // and of the inputs
    V* const size_of_a = size_of_x + n + q;
    V* const terms_of_x = size_of_a + p;  // of x⁺
    for (int i = 0; i < n + q; ++i) size_of_x[i] = abs(state(x, i));
    for (int i = 0; i < p; ++i) size_of_a[i] = abs(incident(i));
    for (int i = 0; i < n; ++i) shifted[i] = state(after, i);
    // With stages inputs work on x⁺ by way of the maps of z, whose terms are counted below.
    for (int e = 0; !is_staged() && e < shape_.output_count; ++e) {
      const LinearEntry& entry = energies_.output()[static_cast<std::size_t>(e)];
      if (entry.column >= n) continue;
      const V taken = (kBound ? -0.5 : 0.5) * value(output, e) * state(x, n + entry.row);
      shifted[entry.column] -= taken;
    }
    const auto add_slope = [&](int i, int j, const V& half_q) {
      slope[i] += 2.0 * half_q * shifted[j];
      of_gradient[i] += abs(half_q) * (size_of_x[j] + abs(state(after, j)));
    };
    for (int i = 0; i < n; ++i) add_slope(i, i, value(group.energy, i));
    for (int e = 0; e < shape_.storage_count; ++e) {
      const LinearEntry& entry = energies_.storage()[static_cast<std::size_t>(e)];
      const V half_q = 0.5 * value(group.energy, n + e);
      add_slope(entry.row, entry.column, half_q);
      add_slope(entry.column, entry.row, half_q);
    }
    const auto moved = [&](const StepRows::Run& by_state, const StepRows::Run& by_wave,
                           const StepRows::Run& by_input) {
      V sum = V::all(0.0);
      const auto add = [&](const StepRows::Run& row, int count, const V* of) {
        for (int j = 0; j < count; ++j) sum += size(row.block, row.first + j * row.step) * of[j];
      };
      add(by_state, n, size_of_x);
      add(by_wave, p, size_of_a);
      add(by_input, q, size_of_x + n);
      return sum;
    };
    for (int i = 0; i < n && !is_staged(); ++i) terms[i] = of_gradient[i];
    for (int m = 0; m < shape_.mapped_count; ++m) {
      V& own_terms = terms[energies_.mapped()[static_cast<std::size_t>(m)]];
      const double* row = group.mapped + m * (n + p + q) * step;
      for (int j = 0; j < n; ++j) own_terms += size(row, j) * size_of_x[j];
      for (int j = 0; j < p; ++j) own_terms += size(row, n + j) * size_of_a[j];
      for (int j = 0; j < q; ++j) own_terms += size(row, n + p + j) * size_of_x[n + j];
    }
    for (int i = 0; i < n; ++i) terms_of_x[i] = abs(state(after, i));
    for (int k = 0; k < rows_.count(); ++k) {
      terms_of_x[rows_.state(k)] +=
          moved(rows_.of_state(group, k), rows_.of_wave(group, k), rows_.of_input(group, k));
    }
    for (std::size_t e = 0; e < rows_.integrals().size(); ++e) {
      const auto& [row, column] = rows_.integrals()[e];
      terms_of_x[row] +=
          size(group.step, rows_.place(e)) * (size_of_x[column] + terms_of_x[column]);
    }
    V sum = V::all(0.0);
    for (int i = 0; i < n; ++i) sum += abs(slope[i]) * terms_of_x[i];
    for (int i = 0; i < p; ++i) {
      const StepRows::Run gain{group.scatter, p + i * p, 1};
      const StepRows::Run C = rows_.of_port_state(group, i), C_u = rows_.of_port_input(group, i);
      V b = value(group.scatter, i) * incident(i);
      for (int j = 0; j < n; ++j) b += value(C.block, C.first + j * C.step) * state(x, j);
      for (int j = 0; j < p; ++j) b += value(gain.block, gain.first + j) * incident(j);
      for (int j = 0; j < q; ++j) b += value(C_u.block, C_u.first + j * C_u.step) * state(x, n + j);
      const V terms_of_b = moved(C, gain, C_u);
      sum += (abs(b) + kPerTerm * terms_of_b) * terms_of_b;
      terms[shape_.z + i] = size_of_a[i] + abs(b) + terms_of_b;
    }
    // The work of the inputs on z, where u is a sum of waves.
    for (int e = 0; e < shape_.output_count; ++e) {
      const LinearEntry& entry = energies_.output()[static_cast<std::size_t>(e)];
      if (entry.column >= shape_.z + p) continue;
      V of_z = terms[entry.column];
      if (entry.column >= shape_.z) of_z *= size(per_wave, entry.column - shape_.z);
      sum += size(output, e) * size_of_x[n + entry.row] * of_z;
    }
    const V rounding = kPerTerm * sum;
    rounding.to(out);
  }

  bool is_staged() const { return stages_.count > 1 || substeps_ > 1; }
  const LinearStages& stages_of(const LinearPortHamiltonian& part) {
    return solved_.try_emplace(&part, part, stages_, substeps_, step_s_).first->second;
  }

  template <int width>
  void bound_rounding(int lane, const double* record, const double* a, const double* next,
                      double* out) const {
    using V = LaneValues<width>;
    const int first = lane / width * width;
    V squares = V::all(0.0);  // no less than that of the largest
    const auto take = [&squares](const double* values, int count, int step) {
      for (int i = 0; i < count; ++i) {
        const V value = V::from(values + i * step);
        squares += value * value;
      }
    };
    take(record + offset_in_record(first), shape_.n + shape_.q, width);
    take(next + offset_in_record(first), shape_.n, width);
    take(a + first, shape_.p, stride());
    squares *= V::from(bounds_.data() + first);
    squares.to(out);
  }

  /// For step_rounding_bounds: per lane, times the largest magnitude squared.
  void find_bounds() {
    constexpr double kOfTheSum = 1.01;  // what these sums round off themselves
    bounds_.resize(static_cast<std::size_t>(group_count() * width_));
    for (int g = 0; g < group_count(); ++g) {
      const LinearGroup& group = groups_[static_cast<std::size_t>(g)];
      double* const own = bounds_.data() + g * width_;
      if (g > 0 && group.shared && is_same(group, groups_[static_cast<std::size_t>(g) - 1])) {
        std::copy(own - width_, own, own);
        continue;
      }
      width_ == kLaneGroup
          ? find_rounding<kLaneGroup, true>(group, g * width_, nullptr, nullptr, nullptr, own)
          : find_rounding<1, true>(group, g, nullptr, nullptr, nullptr, own);
      for (int l = 0; l < width_; ++l) own[l] *= kOfTheSum;
    }
  }

  static bool is_same(const LinearGroup& a, const LinearGroup& b) {
    // Some of these may be empty.
    return a.scatter == b.scatter && a.step == b.step && a.energy == b.energy;
  }

  int group_count() const { return (lanes() + width_ - 1) / width_; }
  std::size_t group_size() const {
    return static_cast<std::size_t>((shape_.n + shape_.q) * width_);
  }
  /// Where states begin in a record: behind b⁰ of all groups.
  std::size_t states() const { return static_cast<std::size_t>(group_count() * shape_.p * width_); }
  /// Scratch of an advance, where it is too large for the stack: behind the states, a stretch for
  /// each lane group.
  std::size_t scratch() const {
    return states() + static_cast<std::size_t>(group_count()) * group_size();
  }
  std::size_t scratch_size() const {
    const int sizes = shape_.z + shape_.p + shape_.q;
    return sizes <= LinearTask::kOnStack ? 0 : static_cast<std::size_t>(sizes * width_);
  }
  std::size_t offset_in_record(int lane) const {
    return states() + static_cast<std::size_t>(lane / width_) * group_size() +
           static_cast<std::size_t>(lane % width_);
  }
  int (*advance_kernel() const)(const void*) {
    return kernels_.advance_of(width_, shape_.p, shape_.n);
  }
  LinearTask task_for(LaneRange range, double* record) const {
    LinearTask task;
    task.shape = &shape_;
    task.groups = groups_.data();
    task.first = range.first / width_;
    task.last = (range.last + width_ - 1) / width_;
    task.width = width_;
    task.stride = stride();
    task.record = record;
    task.states = static_cast<long>(states());
    task.may_be_driven = may_be_driven_;
    return task;
  }

  LinearTask advance_task(LaneRange range, double* record, const double* a, double* next, double* b,
                          const EnergyColumns& energy) const {
    LinearTask task = task_for(range, record);
    task.a = a;
    task.b = b;
    task.next = next;
    task.energy = energy;
    task.work = record + scratch();
    return task;
  }

  /// The sparsities of the distinct parts; which of them each has is returned.
  std::vector<int> find_sparsities(const DistinctParts& distinct) {
    sparsities_.clear();
    EqualClasses known;
    std::vector<int> out;
    for (const LinearPortHamiltonian* part : distinct.parts) {
      const Structure& structure = structure_of(*part);
      const auto fits = [&](int k) {
        return sparsities_[static_cast<std::size_t>(k)].fits(part->Q(), structure);
      };
      int found = !out.empty() && fits(out.back()) ? out.back() : -1;
      if (found < 0) {
        found = known.find_or_add(LinearSparsity::hash_of(part->Q(), structure), fits);
        if (found == std::ssize(sparsities_)) {
          sparsities_.emplace_back(part->Q(), structure, shape_.p);
        }
      }
      out.push_back(found);
    }
    return out;
  }
  const Structure& structure_of(const LinearPortHamiltonian& part) {
    return is_staged() ? stages_of(part).structure() : part.structure();
  }

  void arrange_rows(const DistinctParts& distinct, const std::vector<int>& of_sparsity) {
    integrals_.assign(sparsities_.size(), std::nullopt);
    uses_integrals_.clear();
    std::vector<StepRows::Lane> lanes;
    for (std::size_t i = 0; i < distinct.parts.size(); ++i) {
      const LinearPortHamiltonian& part = *distinct.parts[i];
      auto& own = integrals_[static_cast<std::size_t>(of_sparsity[i])];
      own ? own->take_values_of(part) : static_cast<void>(own.emplace(part));
      uses_integrals_.push_back(!is_staged() && !own->are_stiff(part, step_s_) ? 1 : 0);
      lanes.push_back({*own, uses_integrals_.back() != 0});
    }
    rows_.arrange(lanes, width_, shape_);
  }

  /// Makes the maps of the distinct parts, those of one sparsity side by side, and puts them where they
  /// belong.
  void store(const DistinctParts& distinct, const std::vector<int>& of_sparsity) {
    const int count = static_cast<int>(distinct.parts.size());
    const LaneSets sets(distinct.of_lane, count, width_);
    FlatMaps flat;
    StepMaps step;
    bool arranged = false;
    const auto put = [&](int i) {
      std::size_t k = 0;
      for (const std::vector<double>* block : flat.blocks()) {
        if (!arranged) coefficients_[k].arrange(sets, block->size());
        coefficients_[k++].put(sets, i, *block);
      }
      arranged = true;
      flat.clear();
    };
    std::vector<std::vector<int>> by_sparsity(sparsities_.size());
    for (int i = 0; i < count; ++i) {
      by_sparsity[static_cast<std::size_t>(of_sparsity[static_cast<std::size_t>(i)])].push_back(i);
    }
    std::vector<LaneStepMaps::Part> parts(kLaneGroup);
    for (std::size_t s = 0; s < by_sparsity.size(); ++s) {
      LaneStepMaps maps(sparsities_[s], shape_.p, step_s_);
      std::span<const int> own = by_sparsity[s];
      while (!own.empty()) {
        const auto some = own.first(std::min(own.size(), static_cast<std::size_t>(kLaneGroup)));
        own = own.subspan(some.size());
        for (std::size_t k = 0; k < some.size(); ++k) {
          const auto i = static_cast<std::size_t>(some[k]);
          parts[k].physics = distinct.parts[i];
          port_closures(signature_, step_s_, distinct.impedance(i), parts[k].closures);
        }
        if (!is_staged()) maps.solve(std::span(parts).first(some.size()));
        for (std::size_t k = 0; k < some.size(); ++k) {
          if (is_staged()) {
            take_stages(parts[k], step, flat);
          } else {
            maps.take(static_cast<int>(k), step);
          }
          flatten(s, parts[k], uses_integrals_[static_cast<std::size_t>(some[k])] != 0, step, flat);
          put(some[k]);
        }
      }
    }
    groups_.clear();
    for (int g = 0; g < group_count(); ++g) {
      groups_.push_back({coefficients_[0].group(g), coefficients_[1].group(g),
                         coefficients_[2].group(g), coefficients_[3].group(g),
                         coefficients_[4].group(g), coefficients_[5].group(g),
                         coefficients_[0].shared(g)});
    }
  }

  void take_stages(const LaneStepMaps::Part& of, StepMaps& step, FlatMaps& flat) {
    LinearStages::Maps closed = stages_of(*of.physics).closed(of.closures, keeps_increments_);
    if (!closed.step.Phi_minus_I.allFinite() || !closed.step.D_minus_sigma.allFinite() ||
        !closed.z.allFinite()) {
      throw ConfigError("", "the implicit step is singular at this step size");
    }
    for (const int row : energies_.mapped()) append(closed.z.row(row), flat.mapped);
    append(closed.increments, flat.increments);
    step = std::move(closed.step);
  }

  void flatten(std::size_t sparsity, const LaneStepMaps::Part& of, bool use_integrals,
               StepMaps& step, FlatMaps& flat) {
    append(step.sigma, flat.scatter);
    append(step.D_minus_sigma, flat.scatter);
    energies_.append(sparsity, of.physics->Q(), structure_of(*of.physics), step_s_, flat.energy);
    for (const PortClosure& c : of.closures) {
      flat.energy.push_back(c.effort_in ? 0.5 * c.s : 0.5 * c.s / c.impedance);
    }
    IntegralStates& integrals = *integrals_[sparsity];
    integrals.take_values_of(*of.physics);
    rows_.append({integrals, use_integrals}, step_s_, step, flat.step, flat.input);
  }

  const LinearKernels& kernels_;
  const Signature& signature_;  ///< of all of them, in shape
  const GaussStages& stages_;
  int substeps_;
  int width_;
  double step_s_ = 0.0;
  bool keeps_increments_ = false;
  /// With stages: what was solved for at this step size, which serves at any impedance.
  std::map<const LinearPortHamiltonian*, LinearStages> solved_;
  bool may_be_driven_ = true;  ///< else nobody need look whether inputs are zero
  std::vector<const LinearPortHamiltonian*> parts_;
  LinearShape shape_;
  std::vector<double> sign_;
  /// Of what is distinct: which matrices have entries where, which states are integrals in parts of each
  /// sparsity, and whether they do in each distinct part.
  std::vector<LinearSparsity> sparsities_;
  std::vector<std::optional<IntegralStates>> integrals_;
  std::vector<char> uses_integrals_;
  EnergyPattern energies_;
  StepRows rows_;
  std::vector<LinearGroup> groups_;
  std::vector<double> bounds_;
  LaneCoefficients coefficients_[6];
};

}  // namespace

const StepMapKernels& step_map_kernels() { return PORTWAVE_KERNELS(kStepMapKernels); }

const LinearKernels& linear_kernels() { return PORTWAVE_KERNELS(kLinearKernels); }

std::unique_ptr<StepBatch> make_dense_linear_batch(std::span<const Component* const> parts) {
  return std::make_unique<DenseLinearBatch>(parts);
}

}  // namespace portwave
