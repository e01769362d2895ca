#include "catalogue/duffing_batch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>

#include "core/lane_coefficients.hpp"
#include "kernels/duffing_kernels.hpp"
#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/core/lane_exchange.hpp"
#include "portwave/subsystems/core/port_solves.hpp"

namespace portwave {
namespace {

using namespace duffing;  // NOLINT(google-build-using-namespace): of the header of this file

class DuffingBatch final : public StepBatch,
                           public StepRoundings,
                           public BoundCalls,
                           public PortSolves,
                           public LaneExchange {
 public:
  DuffingBatch(int springs, int masses, const Kernels& kernels,
               std::span<const DuffingOscillatorParameters> parts, double theta)
      : StepBatch(static_cast<int>(parts.size()), 2 + springs, springs + masses, 1),
        kernels_(kernels),
        springs_(springs),
        masses_(masses),
        width_(lanes() == 1 ? 1 : kLaneGroup),
        theta_(theta),
        parameters_(parameters_of(parts, width_)) {}

  double scatter_cost_ns() const override { return lanes() == 1 ? 8.0 : 2.5; }
  double advance_cost_ns() const override { return lanes() == 1 ? 25.0 : 8.0; }

  const StepRoundings* roundings() const override { return this; }
  const BoundCalls* bound_calls() const override { return this; }
  const PortSolves* port_solves() const override { return this; }

  void prepare(double step_s, const double* impedance) override {
    step_s_ = step_s;
    scatter_.begin(group_count());
    step_.begin(group_count());
    for (int g = 0; g < group_count(); ++g) {
      GroupMaps maps;
      find_maps(g, impedance, maps);
      scatter_.add(maps.scatter, maps.shared);
      step_.add(maps.step, maps.shared);
    }
    groups_.clear();
    for (int g = 0; g < group_count(); ++g) {
      groups_.push_back({scatter_.group(g), step_.group(g), scatter_.shared(g)});
    }
  }

  bool exchange(int lane, StepBatch& one, const double* impedance) override {
    const auto* const other = dynamic_cast<const DuffingBatch*>(&one);
    if (other == nullptr || other->springs_ != springs_ || other->masses_ != masses_) return false;
    if (other->theta_ != theta_) return false;
    const int g = lane / width_;
    const auto size = static_cast<std::size_t>(kParameterCount * width_);
    double* const own = parameters_.data() + static_cast<std::size_t>(g) * size;
    const AlignedVector before(own, own + size);
    for (int l = lane % width_; l < width_; ++l) {
      for (int k = 0; k < kParameterCount; ++k) own[k * width_ + l] = other->parameters_[at(k)];
      if (lane + 1 < lanes()) break;  // else padding repeats it
    }
    GroupMaps maps;
    try {
      find_maps(g, impedance, maps);
    } catch (...) {
      std::ranges::copy(before, own);
      throw;
    }
    scatter_.replace_group(g, maps.scatter, maps.shared);
    step_.replace_group(g, maps.step, maps.shared);
    groups_[at(g)] = {scatter_.group(g), step_.group(g), scatter_.shared(g)};
    return true;
  }

  std::size_t record_size() const override {
    return static_cast<std::size_t>(group_count()) * group_size();
  }
  std::vector<RecordRegion> record_regions() const override { return {{0, group_size()}}; }
  void set_state(int lane, const double* x, double* record) const override {
    double* own = record + offset(lane, state_slot(wave_size()));
    for (int i = 0; i < state_size(); ++i) own[i * width_] = x[i];
  }
  void get_state(int lane, const double* record, double* x) const override {
    const double* own = record + offset(lane, state_slot(wave_size()));
    for (int i = 0; i < state_size(); ++i) x[i] = own[i * width_];
  }

  void freeze(LaneRange range, double* record, const double* input) const override {
    for (int l = range.first; l < range.last; ++l) {
      record[offset(l, force_slot(springs_, masses_))] = input == nullptr ? 0.0 : input[l];
    }
    (void)kernels_.freeze(task_for(range, record));
  }

  LaneStatus scatter(LaneRange range, double* record, const double* a, double* b) const override {
    Task task = task_for(range, record);
    task.a = a;
    task.b = b;
    return outcome(scatter_kernel()(&task), range, a);
  }
  BoundCall bind_scatter(LaneRange range, double* record, const double* a,
                         double* b) const override {
    Task task = task_for(range, record);
    task.a = a;
    task.b = b;
    return BoundCall::of(scatter_kernel(), task);
  }
  PortSolve port_solve(int lane, double* record) const override {
    const Group& group = groups_[static_cast<std::size_t>(lane / width_)];
    const auto at = [&](int quantity) { return record + offset(lane, quantity); };
    return {.form = PortSolve::Form::cubic,
            .ports = wave_size(),
            .coefficient_step = group.shared ? 1 : width_,
            .step = width_,
            .coefficients = group.scatter + (group.shared ? 0 : lane % width_),
            .offset = at(offset_slot(0)),
            .cubic = at(kC2),
            .last = at(kWarmIncrement)};
  }

  LaneStatus advance(LaneRange range, double* record, const double* a, double* next, double* b,
                     const EnergyColumns& energy) const override {
    const Task task = advance_task(range, record, a, next, b, energy);
    return outcome(kernels_.advance(&task), range, a);
  }
  BoundCall bind_advance(LaneRange range, double* record, const double* a, double* next, double* b,
                         const EnergyColumns& energy) const override {
    return BoundCall::of(kernels_.advance, advance_task(range, record, a, next, b, energy));
  }

  std::optional<double> step_rounding(int lane, const double* record, const double* a,
                                      const double* next) const override {
    double roundings[kLaneGroup];
    find_roundings(lane / width_, record, a, next, roundings);
    return roundings[lane % width_];
  }
  bool step_roundings(int lane, const double* record, const double* a, const double* next,
                      double* out) const override {
    if (width_ != kLaneGroup) return false;
    find_roundings(lane / width_, record, a, next, out);
    return true;
  }

  bool step_rounding_bounds(int lane, const double* record, const double* a, const double* next,
                            double* out) const override {
    find_roundings(lane / width_, record, a, next, out);
    return true;
  }

 private:
  /// ε of each state is multiplied by a force, some of which add up.
  void find_roundings(int group, const double* record, const double* a, const double* next,
                      double* out) const {
    constexpr double kPerTerm = 64.0 * std::numeric_limits<double>::epsilon();
    // The kernel writes to neither.
    Task task = task_for({0, 0}, const_cast<double*>(record));  // NOLINT(*-const-cast)
    task.next = const_cast<double*>(next);                      // NOLINT(*-const-cast)
    task.a = a;
    kernels_.energy_terms(task, group, out);
    for (int l = 0; l < width_; ++l) out[l] *= kPerTerm;
  }

  static constexpr int kMostSprings = 2, kMostMasses = 2, kMostPorts = kMostSprings + kMostMasses;
  struct GroupMaps {
    double room_for_scatter[scatter_size(kMostSprings, kMostMasses) * kLaneGroup];
    double room_for_step[duffing::step_size(kMostSprings, kMostMasses) * kLaneGroup];
    std::span<const double> scatter, step;
    bool shared = false;
  };
  /// Errors: ConfigError.
  void find_maps(int g, const double* impedance, GroupMaps& out) const {
    MapTask task;
    task.width = width_;
    task.step_s = step_s_;
    task.theta = theta_;
    task.scatter = out.room_for_scatter;
    task.step = out.room_for_step;
    throw_if(maps_of_group(g, impedance, task));
    out.shared = task.shared;
    const auto count = [&](int size) { return at(task.shared ? size : size * width_); };
    out.scatter = {out.room_for_scatter, count(scatter_size(springs_, masses_))};
    out.step = {out.room_for_step, count(duffing::step_size(springs_, masses_))};
  }

  /// Lane group by lane group, as MapTask reads them; padding repeats the last part.
  static AlignedVector parameters_of(std::span<const DuffingOscillatorParameters> parts,
                                     int width) {
    const auto groups =
        (parts.size() + static_cast<std::size_t>(width) - 1) / static_cast<std::size_t>(width);
    AlignedVector out(groups * static_cast<std::size_t>(kParameterCount * width));
    double* to = out.data();
    for (std::size_t g = 0; g < groups; ++g, to += kParameterCount * width) {
      for (int l = 0; l < width; ++l) {
        const std::size_t lane = g * static_cast<std::size_t>(width) + static_cast<std::size_t>(l);
        const DuffingOscillatorParameters& p = parts[std::min(lane, parts.size() - 1)];
        to[kPartMass * width + l] = p.mass_kg;
        to[kPartStiffness * width + l] = p.stiffness_N_per_m;
        to[kPartDamping * width + l] = p.damping_Ns_per_m;
        to[kPartCubicStiffness * width + l] = p.cubic_stiffness_N_per_m3;
        to[kPartCouplingStiffness * width + l] = p.coupling_stiffness_N_per_m;
        to[kPartCouplingDamping * width + l] = p.coupling_damping_Ns_per_m;
      }
    }
    return out;
  }
  MapDefect maps_of_group(int g, const double* impedance, MapTask& task) const {
    const int first = g * width_, left = std::min(width_, lanes() - first);
    task.parameters = parameters_.data() + first * kParameterCount;
    task.impedance = impedance + first;
    task.stride = stride();
    if (left == width_) return kernels_.maps(task);
    double padded[kMostPorts * kLaneGroup];
    for (int j = 0; j < wave_size(); ++j) {
      for (int l = 0; l < width_; ++l) {
        padded[j * width_ + l] = task.impedance[j * stride() + std::min(l, left - 1)];
      }
    }
    task.impedance = padded;
    task.stride = width_;
    return kernels_.maps(task);
  }
  static void throw_if(MapDefect defect) {
    if (defect == MapDefect::singular) {  // only negative dampers can do that
      throw ConfigError("", "the implicit step is singular at this step size");
    }
    if (defect == MapDefect::overflow) {
      throw ConfigError("", "the coefficients of the implicit step overflow at this step size");
    }
  }

  int (*scatter_kernel() const)(const void*) {
    return width_ == 1 ? kernels_.scatter_alone : kernels_.scatter;
  }
  int group_count() const { return (lanes() + width_ - 1) / width_; }
  std::size_t group_size() const {
    return static_cast<std::size_t>(duffing::record_size(springs_, masses_) * width_);
  }
  std::size_t offset(int lane, int quantity) const {
    return static_cast<std::size_t>(lane / width_) * group_size() +
           static_cast<std::size_t>(quantity * width_ + lane % width_);
  }
  Task task_for(LaneRange range, double* record) const {
    Task task;
    task.groups = groups_.data();
    task.first = range.first / width_;
    task.last = (range.last + width_ - 1) / width_;
    task.width = width_;
    task.stride = stride();
    task.record = record;
    task.theta = theta_;
    return task;
  }
  Task advance_task(LaneRange range, double* record, const double* a, double* next, double* b,
                    const EnergyColumns& energy) const {
    Task task = task_for(range, record);
    task.a = a;
    task.b = b;
    task.next = next;
    task.energy = energy;
    return task;
  }
  LaneStatus outcome(int bad, LaneRange range, const double* a) const {
    if (bad < 0 || bad >= range.last) return {};
    bool finite = true;
    for (int j = 0; j < wave_size(); ++j) finite = finite && std::isfinite(a[j * stride() + bad]);
    return {bad, finite ? StepFault::not_converged : StepFault::not_finite};
  }

  const Kernels& kernels_;
  int springs_;
  int masses_;
  int width_;
  double theta_;
  double step_s_ = 0.0;
  AlignedVector parameters_;
  LaneCoefficients scatter_, step_;
  std::vector<Group> groups_;
};

}  // namespace

namespace duffing {

const Kernels& oscillator_kernels() { return PORTWAVE_KERNELS(kDuffingOscillator); }

const Kernels& node_kernels() { return PORTWAVE_KERNELS(kDuffingNode); }

}  // namespace duffing

std::unique_ptr<StepBatch> make_duffing_batch(DuffingPorts ports,
                                              std::vector<DuffingOscillatorParameters> parts,
                                              double theta) {
  if (ports == DuffingPorts::one_spring) {
    return std::make_unique<DuffingBatch>(1, 0, duffing::oscillator_kernels(), parts, theta);
  }
  return std::make_unique<DuffingBatch>(2, 2, duffing::node_kernels(), parts, theta);
}

}  // namespace portwave
