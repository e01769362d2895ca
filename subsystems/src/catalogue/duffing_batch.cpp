#include "catalogue/duffing_batch.hpp"

#include <cmath>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>

#include "batches/lane_coefficients.hpp"
#include "kernels/duffing_kernels.hpp"
#include "portwave/subsystems/base/error.hpp"

namespace portwave {
namespace {

using namespace duffing;  // NOLINT(google-build-using-namespace): of the header of this file

/// With κ = k₁₂h/2 + c₁₂ and ρ = κ/(κ + γ) at a spring's end, of impedance γ,
///   u = (s a − k₁₂δ + κw)/(κ + γ),  b = a − (2γ/s)u;   on the mass  b = a + (2γ/s)w;
///   2m(w − v)/h + ¼k₃h³ w³ + k₃qh² w² + (c_w + ³⁄₂k₃q²h) w + A₀ = Σ ρ s a − Σ_masses s a,
///   c_w = k₁h/2 + c₁ + Σ γρ + Σ_masses γ,  A₀ = k₁q + k₃q³ − Σ γk₁₂δ/(κ + γ) − F,
/// increasing in w since 6q² + 8qd + 3d² has no real root (d = hw).
struct Maps {
  std::vector<double> scatter, step;
};

Maps make_maps(const DuffingOscillatorParameters& p, double h, const std::vector<double>& gamma,
               int springs) {
  const auto ports = gamma.size();
  const double k12 = p.coupling_stiffness_N_per_m, c12 = p.coupling_damping_Ns_per_m;
  const double kappa = 0.5 * h * k12 + c12;
  Maps maps;
  double linear = 0.5 * h * p.stiffness_N_per_m + p.damping_Ns_per_m;
  const double inertia = 2.0 * p.mass_kg / h;
  bool sound = true;
  std::vector<double> of_springs, of_masses, of_ports;
  for (std::size_t j = 0; j < ports; ++j) {
    const double s = std::sqrt(2.0 * gamma[j] / h);
    if (static_cast<int>(j) < springs) {
      const double share = 1.0 / (kappa + gamma[j]);
      sound = sound && kappa + gamma[j] > 0.0;
      linear += gamma[j] * kappa * share;
      const double wave_per_force = 2.0 * gamma[j] / s * share;
      of_springs.insert(of_springs.end(),
                        {k12, c12, kappa, share, s, gamma[j] * k12 * share, wave_per_force});
      of_ports.insert(of_ports.end(),
                      {kappa * share * s, 2.0 * gamma[j] * share, wave_per_force * kappa});
    } else {
      linear += gamma[j];
      of_masses.push_back(2.0 * gamma[j] / s);
      of_ports.insert(of_ports.end(), {-s, 0.0, -2.0 * gamma[j] / s});
    }
  }
  if (!sound || !(inertia + linear > 0.0)) {  // only negative dampers can do that
    throw ConfigError("", "the implicit step is singular at this step size");
  }
  if (!std::isfinite(inertia) || !std::isfinite(linear)) {
    throw ConfigError("", "the coefficients of the implicit step overflow at this step size");
  }
  maps.scatter = {0.25 * p.cubic_stiffness_N_per_m3 * h * h * h};
  maps.scatter.insert(maps.scatter.end(), of_ports.begin(), of_ports.end());
  maps.step = {
      h,         inertia,           linear, p.stiffness_N_per_m, p.cubic_stiffness_N_per_m3,
      p.mass_kg, p.damping_Ns_per_m};
  maps.step.insert(maps.step.end(), of_springs.begin(), of_springs.end());
  maps.step.insert(maps.step.end(), of_masses.begin(), of_masses.end());
  return maps;
}

class DuffingBatch final : public StepBatch {
 public:
  DuffingBatch(int springs, int masses, const Kernels& kernels,
               std::vector<DuffingOscillatorParameters> parts)
      : StepBatch(static_cast<int>(parts.size()), 2 + springs, springs + masses, 1),
        kernels_(kernels),
        springs_(springs),
        masses_(masses),
        width_(lanes() == 1 ? 1 : kLaneGroup),
        parts_(std::move(parts)) {}

  double scatter_cost_ns() const override { return lanes() == 1 ? 8.0 : 2.5; }
  double advance_cost_ns() const override { return lanes() == 1 ? 25.0 : 8.0; }

  void prepare(double step_s, const double* impedance) override {
    std::vector<std::vector<double>> scatter, step;
    std::vector<int> of_lane;
    std::map<std::vector<double>, int> known;
    for (int l = 0; l < lanes(); ++l) {
      const DuffingOscillatorParameters& p = parts_[static_cast<std::size_t>(l)];
      std::vector<double> gamma;
      gamma.reserve(static_cast<std::size_t>(wave_size()));
      for (int j = 0; j < wave_size(); ++j) gamma.push_back(impedance[j * stride() + l]);
      Maps maps = make_maps(p, step_s, gamma, springs_);
      std::vector<double> key = maps.scatter;
      key.insert(key.end(), maps.step.begin(), maps.step.end());
      const auto [it, is_new] = known.try_emplace(std::move(key), static_cast<int>(known.size()));
      if (is_new) {
        scatter.push_back(std::move(maps.scatter));
        step.push_back(std::move(maps.step));
      }
      of_lane.push_back(it->second);
    }
    scatter_.build(scatter, of_lane, width_);
    step_.build(step, of_lane, width_);
    groups_.clear();
    for (int g = 0; g < group_count(); ++g) {
      groups_.push_back({scatter_.group(g), step_.group(g), scatter_.shared(g)});
    }
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

 private:
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
  std::vector<DuffingOscillatorParameters> parts_;
  LaneCoefficients scatter_, step_;
  std::vector<Group> groups_;
};

}  // namespace

namespace duffing {

const Kernels& oscillator_kernels() { return PORTWAVE_KERNELS(kDuffingOscillator); }

const Kernels& node_kernels() { return PORTWAVE_KERNELS(kDuffingNode); }

}  // namespace duffing

std::unique_ptr<StepBatch> make_duffing_batch(DuffingPorts ports,
                                              std::vector<DuffingOscillatorParameters> parts) {
  if (ports == DuffingPorts::one_spring) {
    return std::make_unique<DuffingBatch>(1, 0, duffing::oscillator_kernels(), std::move(parts));
  }
  return std::make_unique<DuffingBatch>(2, 2, duffing::node_kernels(), std::move(parts));
}

}  // namespace portwave
