#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include <Eigen/Dense>

#include "core/lane_coefficients.hpp"
#include "core/lane_values.hpp"
#include "kernels/linear_kernels.hpp"
#include "linear/derived_damping.hpp"
#include "linear/distinct_parts.hpp"
#include "linear/energy_pattern.hpp"
#include "linear/linear_batches.hpp"
#include "linear/linear_rounding.hpp"
#include "linear/linear_sparsity.hpp"
#include "linear/linear_stages.hpp"
#include "linear/step_maps.hpp"
#include "linear/step_rows.hpp"
#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/base/equal_classes.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/core/lane_exchange.hpp"
#include "portwave/subsystems/core/port_solves.hpp"

namespace portwave {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

/// The step maps of one lane, as the kernels read them (see LinearGroup).
struct FlatMaps {
  std::vector<double> scatter, step, input, energy, mapped, increments, damped;
  void clear() {
    for (std::vector<double>* block : blocks()) block->clear();
  }
  std::array<std::vector<double>*, 7> blocks() {
    return {&scatter, &step, &input, &energy, &mapped, &increments, &damped};
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
                               public PortSolves,
                               public LaneExchange {
 public:
  explicit DenseLinearBatch(std::span<const Component* const> parts)
      : StepBatch(static_cast<int>(parts.size()), parts[0]->signature().state_size(),
                  parts[0]->signature().wave_size(), parts[0]->signature().input_size()),
        kernels_(linear_kernels()),
        signature_(&parts[0]->signature()),
        rules_{parts[0]->stage_rule()},
        stages_(rules_.front().count),
        substeps_(parts[0]->substeps()),
        width_(lanes() == 1 ? 1 : kLaneGroup) {
    for (const Component* part : parts) {
      parts_.push_back(dynamic_cast<const LinearPortHamiltonian*>(part->port_hamiltonian()));
      rule_of_lane_.push_back(number_of(part->stage_rule()));
    }
    is_damped_ = std::ranges::any_of(rules_, &StageRule::is_damped);
    shape_.n = state_size();
    shape_.p = wave_size();
    shape_.q = input_size();
    shape_.z = substeps_ * stages_ * shape_.n;
    if (is_damped_ && !has_plain_stage()) shape_.damped_count = substeps_ * shape_.n;
    if (derives_damping()) shape_.w = shape_.n;
    if (is_damped_) {
      lane_damping_.resize(at(group_count() * width_));
      for (int l = 0; l < lanes(); ++l) set_damping(l);
      shape_.lane_damping = lane_damping_.data();
    }
    for (const Port& port : signature_->ports) {
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
  const StageMotion* stage_motion() const override { return has_stages() ? this : nullptr; }
  const BoundCalls* bound_calls() const override { return this; }
  const PortSolves* port_solves() const override { return this; }

  void expect(const BatchUse& use) override {
    may_be_driven_ = use.inputs;
    keeps_increments_ = use.stage_increments && has_stages();
  }
  void prepare(double step_s, const double* impedance) override {
    const DistinctParts distinct(parts_, rule_of_lane_, impedance, shape_.p, stride());
    if (step_s != step_s_) solved_.clear();
    step_s_ = step_s;
    const std::vector<int> of_sparsity = find_sparsities(distinct);
    of_lane_ = distinct.of_lane;
    of_sparsity_ = of_sparsity;
    energies_.arrange(sparsities_, !has_plain_stage(), width_, shape_);
    if (derives_damping()) {
      derived_.arrange(distinct.parts, of_sparsity, sparsities_, stages_, width_, shape_);
    }
    arrange_rows(distinct, of_sparsity);
    store(distinct, of_sparsity);
    find_bounds();
  }

  bool exchange(int lane, StepBatch& one, const double* impedance) override {
    const auto* const other = dynamic_cast<const DenseLinearBatch*>(&one);
    if (other == nullptr || other->lanes() != 1) return false;
    const LinearPortHamiltonian& part = *other->parts_.front();
    const StageRule& rule = other->rules_.front();
    if (rule.count != stages_ || (rule.is_damped() && !is_damped_)) return false;
    if (rule.conserved != rules_.front().conserved) return false;
    const unsigned char number = number_of(rule);
    FlatMaps flat;
    try {
      if (!find_maps(lane, part, number, impedance, flat)) {
        solved_.erase({&part, number});
        return false;
      }
    } catch (...) {
      solved_.erase({&part, number});
      throw;
    }
    const int g = lane / width_, own = lane % width_;
    const int count = lane + 1 < lanes() ? 1 : width_ - own;  // padding repeats the last one
    std::size_t k = 0;
    for (const std::vector<double>* block : flat.blocks()) {
      coefficients_[k++].replace(g, own, count, width_, *block);
    }
    groups_[at(g)] = group_of(g);
    bound_group(g);
    const LinearPortHamiltonian* const before = std::exchange(parts_[at(lane)], &part);
    if (before != &part) {
      for (unsigned char i = 0; i < rules_.size(); ++i) solved_.erase({before, i});
    }
    rule_of_lane_[at(lane)] = number;
    set_damping(lane);
    if (lane == 0) signature_ = other->signature_;
    return true;
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

  std::optional<double> step_rounding(int lane, const double* record, const double* a,
                                      const double* next) const override {
    const LinearGroup& group = groups_[static_cast<std::size_t>(lane / width_)];
    double out = 0.0;
    rounding().find<1, false>(group, lane, record, a, next, &out);
    return out;
  }
  bool step_roundings(int lane, const double* record, const double* a, const double* next,
                      double* out) const override {
    if (width_ != kLaneGroup) return false;
    const int first = lane / width_ * width_;
    rounding().find<kLaneGroup, false>(groups_[static_cast<std::size_t>(lane / width_)], first,
                                       record, a, next, out);
    return true;
  }
  bool step_rounding_bounds(int lane, const double* record, const double* a, const double* next,
                            double* out) const override {
    width_ == 1 ? bound_rounding<1>(lane, record, a, next, out)
                : bound_rounding<kLaneGroup>(lane, record, a, next, out);
    return true;
  }

  int stages() const override { return stages_; }
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
  LinearRounding rounding() const {
    return {shape_, energies_, rows_, width_, stride(), !has_plain_stage(), states(), group_size()};
  }
  bool has_stages() const { return stages_ * substeps_ > 1; }
  bool is_staged() const { return has_stages() || is_damped_; }
  /// What a stage sees follows from x and x⁺: there is one, which is damped as a whole or not at all.
  bool has_plain_stage() const { return !has_stages() && rules_.front().conserved == 0; }
  bool derives_damping() const {
    return is_damped_ && stages_ > 1 && substeps_ == 1 && rules_.front().conserved == 0;
  }
  const LinearStages& stages_of(const LinearPortHamiltonian& part, unsigned char rule) {
    return solved_.try_emplace({&part, rule}, part, rules_[rule], substeps_, step_s_).first->second;
  }
  unsigned char number_of(const StageRule& rule) {
    const auto known = std::ranges::find(rules_, rule);
    const auto number = static_cast<unsigned char>(known - rules_.begin());
    if (known == rules_.end()) rules_.push_back(rule);
    return number;
  }
  /// That of a lane, and of the padding that follows the last one.
  void set_damping(int lane) {
    if (lane_damping_.empty()) return;
    const double own = std::sqrt(2.0 * rules_[rule_of_lane_[at(lane)]].damping);
    const int last = lane + 1 < lanes() ? lane + 1 : group_count() * width_;
    std::fill(lane_damping_.begin() + lane, lane_damping_.begin() + last, own);
    shape_.damping = std::max(shape_.damping, own);
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
    bounds_.resize(static_cast<std::size_t>(group_count() * width_));
    for (int g = 0; g < group_count(); ++g) {
      const LinearGroup& group = groups_[static_cast<std::size_t>(g)];
      double* const own = bounds_.data() + g * width_;
      if (g > 0 && group.shared && is_same(group, groups_[static_cast<std::size_t>(g) - 1])) {
        std::copy(own - width_, own, own);
        continue;
      }
      bound_group(g);
    }
  }
  void bound_group(int g) {
    constexpr double kOfTheSum = 1.01;  // what these sums round off themselves
    const LinearGroup& group = groups_[at(g)];
    double* const own = bounds_.data() + g * width_;
    width_ == kLaneGroup
        ? rounding().find<kLaneGroup, true>(group, g * width_, nullptr, nullptr, nullptr, own)
        : rounding().find<1, true>(group, g, nullptr, nullptr, nullptr, own);
    for (int l = 0; l < width_; ++l) own[l] *= kOfTheSum;
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
    const int sizes = shape_.work_size();
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
    for (std::size_t i = 0; i < distinct.parts.size(); ++i) {
      const LinearPortHamiltonian* const part = distinct.parts[i];
      const Structure& structure = structure_of(*part, distinct.tags[i]);
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
  const Structure& structure_of(const LinearPortHamiltonian& part, unsigned char rule) {
    return is_staged() ? stages_of(part, rule).structure() : part.structure();
  }

  void arrange_rows(const DistinctParts& distinct, const std::vector<int>& of_sparsity) {
    integrals_.assign(sparsities_.size(), std::nullopt);
    uses_integrals_.clear();
    std::vector<StepRows::Lane> lanes;
    for (std::size_t i = 0; i < distinct.parts.size(); ++i) {
      const LinearPortHamiltonian& part = *distinct.parts[i];
      auto& own = integrals_[static_cast<std::size_t>(of_sparsity[i])];
      own ? own->take_values_of(part) : static_cast<void>(own.emplace(part));
      uses_integrals_.push_back(has_plain_stage() && !own->are_stiff(part, step_s_) ? 1 : 0);
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
          port_closures(*signature_, step_s_, distinct.impedance(i), parts[k].closures);
        }
        if (!is_staged()) maps.solve(std::span(parts).first(some.size()));
        for (std::size_t k = 0; k < some.size(); ++k) {
          const unsigned char rule = distinct.tags[static_cast<std::size_t>(some[k])];
          if (is_staged()) {
            take_stages(s, parts[k], rule, step, flat);
          } else {
            maps.take(static_cast<int>(k), step);
          }
          flatten(s, parts[k], rule, uses_integrals_[static_cast<std::size_t>(some[k])] != 0, step,
                  flat);
          put(some[k]);
        }
      }
    }
    groups_.clear();
    for (int g = 0; g < group_count(); ++g) groups_.push_back(group_of(g));
  }
  LinearGroup group_of(int g) const {
    return {coefficients_[0].group(g), coefficients_[1].group(g), coefficients_[2].group(g),
            coefficients_[3].group(g), coefficients_[4].group(g), coefficients_[5].group(g),
            coefficients_[6].group(g), coefficients_[0].shared(g)};
  }

  /// The maps of another part in a lane, in the layout that is there. False where it does not fit that: the
  /// part's matrices have entries at other places, or it has to do without integrals where the part that is
  /// there has them.
  bool find_maps(int lane, const LinearPortHamiltonian& part, unsigned char rule,
                 const double* impedance, FlatMaps& flat) {
    const std::size_t i = at(of_lane_[at(lane)]), s = at(of_sparsity_[i]);
    if (!sparsities_[s].fits(part.Q(), structure_of(part, rule))) return false;
    const bool uses_integrals = uses_integrals_[i] != 0;
    integrals_[s]->take_values_of(part);
    if (uses_integrals != (has_plain_stage() && !integrals_[s]->are_stiff(part, step_s_)))
      return false;
    std::vector<double> own(at(shape_.p));
    for (int j = 0; j < shape_.p; ++j) own[at(j)] = impedance[lane + j * stride()];
    std::array<LaneStepMaps::Part, 1> one;
    one[0].physics = &part;
    port_closures(*signature_, step_s_, own.data(), one[0].closures);
    StepMaps step;
    if (is_staged()) {
      take_stages(s, one[0], rule, step, flat);
    } else {
      LaneStepMaps maps(sparsities_[s], shape_.p, step_s_);
      maps.solve(one);
      maps.take(0, step);
    }
    flatten(s, one[0], rule, uses_integrals, step, flat);
    return true;
  }

  void take_stages(std::size_t sparsity, const LaneStepMaps::Part& of, unsigned char rule,
                   StepMaps& step, FlatMaps& flat) {
    LinearStages::Maps closed = stages_of(*of.physics, rule).closed(of.closures, keeps_increments_);
    if (!closed.step.Phi_minus_I.allFinite() || !closed.step.D_minus_sigma.allFinite() ||
        !closed.z.allFinite()) {
      throw ConfigError("", "the implicit step is singular at this step size");
    }
    for (const int row : energies_.mapped()) append(closed.z.row(row), flat.mapped);
    append(closed.increments, flat.increments);
    derived_.append_rows({of.physics, &sparsities_[sparsity]}, closed.damped, flat.damped);
    step = std::move(closed.step);
  }

  void flatten(std::size_t sparsity, const LaneStepMaps::Part& of, unsigned char rule,
               bool use_integrals, StepMaps& step, FlatMaps& flat) {
    append(step.sigma, flat.scatter);
    append(step.D_minus_sigma, flat.scatter);
    energies_.append(sparsity, of.physics->Q(), structure_of(*of.physics, rule), step_s_,
                     flat.energy);
    for (const PortClosure& c : of.closures) {
      flat.energy.push_back(c.effort_in ? 0.5 * c.s : 0.5 * c.s / c.impedance);
    }
    derived_.append({of.physics, &sparsities_[sparsity]}, rules_[rule], step_s_, flat.energy);
    IntegralStates& integrals = *integrals_[sparsity];
    integrals.take_values_of(*of.physics);
    rows_.append({integrals, use_integrals}, step_s_, step, flat.step, flat.input);
  }

  const LinearKernels& kernels_;
  const Signature* signature_;  ///< of all of them, in shape
  /// Of all lanes the same number of stages; a few of one stage may be damped among others that are not, if none
  /// has states of which some are damped.
  std::vector<StageRule> rules_;
  std::vector<unsigned char> rule_of_lane_;
  int stages_;
  bool is_damped_ = false;  ///< some lane was, when the batch was made
  AlignedVector lane_damping_;
  int substeps_;
  int width_;
  double step_s_ = 0.0;
  bool keeps_increments_ = false;
  /// With stages: what was solved for at this step size, which serves at any impedance.
  std::map<std::pair<const LinearPortHamiltonian*, unsigned char>, LinearStages> solved_;
  bool may_be_driven_ = true;  ///< else nobody need look whether inputs are zero
  std::vector<const LinearPortHamiltonian*> parts_;
  LinearShape shape_;
  std::vector<double> sign_;
  /// Of what is distinct: which matrices have entries where, which states are integrals in parts of each
  /// sparsity, and whether they do in each distinct part.
  std::vector<LinearSparsity> sparsities_;
  std::vector<std::optional<IntegralStates>> integrals_;
  std::vector<char> uses_integrals_;
  std::vector<int> of_lane_,
      of_sparsity_;  ///< the distinct part of a lane, and the sparsity of that
  EnergyPattern energies_;
  DerivedDamping derived_;
  StepRows rows_;
  std::vector<LinearGroup> groups_;
  std::vector<double> bounds_;
  LaneCoefficients coefficients_[7];
};

}  // namespace

const StepMapKernels& step_map_kernels() { return PORTWAVE_KERNELS(kStepMapKernels); }

const LinearKernels& linear_kernels() { return PORTWAVE_KERNELS(kLinearKernels); }

std::unique_ptr<StepBatch> make_dense_linear_batch(std::span<const Component* const> parts) {
  return std::make_unique<DenseLinearBatch>(parts);
}

}  // namespace portwave
