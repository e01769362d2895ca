#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include <Eigen/Core>

#include "catalogue/duffing_batch.hpp"
#include "core/lane_coefficients.hpp"
#include "kernels/staged_duffing_kernels.hpp"
#include "linear/plain_lu.hpp"
#include "matrices/quadruple.hpp"
#include "nonlinear/discrete_gradients.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"

namespace portwave {
namespace {

using Square = Eigen::Matrix<Quadruple, Eigen::Dynamic, Eigen::Dynamic>;

const staged_duffing::Kernels& staged_duffing_kernels(DuffingPorts ports, int stages) {
  const int kind = (ports == DuffingPorts::one_spring ? 0 : 2) + (stages - 2);
  return PORTWAVE_KERNELS(kStagedDuffing)[kind];
}

Square inverse_of(const Square& matrix) {
  PlainLu<Quadruple> lu(matrix.rows());
  lu.compute(matrix);
  return lu.inverse();
}

Square butcher_matrix(const StageRule& stages) {
  Square A(stages.count, stages.count);
  for (int i = 0; i < stages.count; ++i) {
    for (int j = 0; j < stages.count; ++j) {
      A(i, j) = stages.A[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
    }
  }
  return A;
}

staged_duffing::Rule make_rule(const StageRule& stages) {
  staged_duffing::Rule rule = {};
  const int s = stages.count;
  const Square inverse = inverse_of(butcher_matrix(stages));
  for (int i = 0; i < s; ++i) {
    rule.c[i] = stages.c[static_cast<std::size_t>(i)];
    rule.b[i] = stages.b[static_cast<std::size_t>(i)];
    rule.root_b[i] = std::sqrt(rule.b[i]);
    Quadruple sum = 0, rate = 0;
    for (int j = 0; j < s; ++j) {
      sum += inverse(i, j);
      rate += stages.b[static_cast<std::size_t>(j)] * inverse(j, i);
    }
    for (int j = 0; j < s; ++j) rule.inverse[i][j] = static_cast<double>(inverse(i, j));
    rule.inverse_sum[i] = static_cast<double>(sum);
    rule.final_rate[i] = static_cast<double>(rate);
  }
  rule.final_rate_sum = s % 2 == 0 ? 0.0 : 2.0;
  const detail::QuadratureRule& points = detail::gauss_legendre(2 * s);
  for (int k = 0; k < 2 * s; ++k) {
    const double tau = points.nodes[static_cast<std::size_t>(k)];
    rule.node[k] = tau;
    for (int i = 0; i < s; ++i) {
      rule.reach[k][i] = stages.integral(i, tau);
      rule.weight[i][k] =
          points.weights[static_cast<std::size_t>(k)] * stages.lagrange(i, tau) / rule.b[i];
    }
  }
  for (int i = 0; i < s; ++i) {
    for (int j = 0; j < s; ++j) {
      for (int k = 0; k < 2 * s; ++k) {
        rule.slope[i][j][k] = 3.0 * rule.weight[i][k] * rule.reach[k][j];
      }
    }
  }
  return rule;
}

const staged_duffing::Rule& staged_duffing_rule(int stages) {
  static const staged_duffing::Rule two = make_rule(gauss_stages(2));
  static const staged_duffing::Rule three = make_rule(gauss_stages(3));
  return stages == 2 ? two : three;
}

/// The coefficients of one part, in the order of the kernels. With W = diag(γᵢ) and s_i =
/// √(2γᵢ/h) at the stages of a spring port, K = k₁₂hA + c₁₂ and M = W + K,
///   u = M⁻¹(s a/√b − k₁₂δ + Kw),  b = a − (2γ/s)√b u;   on the mass  b = a + (2γ/s)√b w;
///   L = (m/h²)A⁻¹ + k₁A + [c₁ + Σ_masses W + Σ WM⁻¹K]/h.
class StagedDuffingMaps {
 public:
  StagedDuffingMaps(const DuffingOscillatorParameters& part, double step_s, const Square& butcher,
                    const staged_duffing::Rule& rule, int springs, const std::vector<double>& gamma)
      : part_(part), h_(step_s), A_(butcher), rule_(rule), s_(static_cast<int>(A_.rows())) {
    const int ports = static_cast<int>(gamma.size()) / s_;
    Square drag = Square::Zero(s_, s_);
    for (int i = 0; i < s_; ++i) drag(i, i) = Quadruple(part.damping_Ns_per_m);
    std::vector<double> of_springs, of_masses;
    for (int j = 0; j < ports; ++j) {
      Square own = Square::Zero(s_, s_);
      for (int i = 0; i < s_; ++i) own(i, i) = gamma[static_cast<std::size_t>(i * ports + j)];
      if (j < springs) {
        add_spring(own, drag, of_springs);
      } else {
        add_mass(own, drag, of_masses);
      }
    }
    finish(drag, of_springs, of_masses);
  }

  std::vector<double> scatter, step;

 private:
  static double rounded(Quadruple value) { return static_cast<double>(value); }
  /// √(2γ/h) of stage i.
  double wave_scale(const Square& gamma, int i) const {
    return std::sqrt(2.0 * rounded(gamma(i, i)) / h_);
  }
  /// (2γ/s)√b
  Quadruple wave_per_flow(const Square& gamma, int i) const {
    return Quadruple(2) * gamma(i, i) / Quadruple(wave_scale(gamma, i)) * rule_.root_b[i];
  }
  /// s/√b
  Quadruple force_per_wave(const Square& gamma, int i) const {
    return Quadruple(wave_scale(gamma, i)) / rule_.root_b[i];
  }

  void add_spring(const Square& gamma, Square& drag, std::vector<double>& rows) {
    const Quadruple h = h_, k12 = part_.coupling_stiffness_N_per_m;
    Square K = A_;
    for (int i = 0; i < s_; ++i) {
      for (int j = 0; j < s_; ++j) K(i, j) *= k12 * h;
      K(i, i) += Quadruple(part_.coupling_damping_Ns_per_m);
    }
    const Square inverse = inverse_of(gamma + K);
    const Square of_flow = inverse * K, of_force = K * inverse, held = gamma * of_flow;
    drag += held;
    const auto put = [&](const auto& entry) {
      for (int i = 0; i < s_; ++i) {
        for (int j = 0; j < s_; ++j) springs_.push_back(rounded(entry(i, j)));
      }
    };
    put([&](int i, int j) { return of_force(i, j) * force_per_wave(gamma, j); });
    put([&](int i, int j) {
      return wave_per_flow(gamma, i) * inverse(i, j) * force_per_wave(gamma, j);
    });
    put([&](int i, int j) { return wave_per_flow(gamma, i) * of_flow(i, j) / h; });

    rows.push_back(part_.coupling_stiffness_N_per_m);
    rows.push_back(part_.coupling_damping_Ns_per_m);
    const auto put_sums = [&](const auto& entry) {
      for (int i = 0; i < s_; ++i) {
        Quadruple sum = 0;
        for (int j = 0; j < s_; ++j) sum += entry(i, j);
        rows.push_back(rounded(sum));
      }
    };
    put_sums([&](int i, int j) { return gamma(i, i) * inverse(i, j) * k12; });
    put_sums([&](int i, int j) { return wave_per_flow(gamma, i) * inverse(i, j) * k12; });
    put_sums([&](int i, int j) { return wave_per_flow(gamma, i) * of_flow(i, j); });
    put_sums([&](int i, int j) { return inverse(i, j) * k12; });
    put_sums([&](int i, int j) { return inverse(i, j) * gamma(j, j); });
    const auto put_map = [&](const auto& entry) {
      for (int i = 0; i < s_; ++i) {
        for (int j = 0; j < s_; ++j) rows.push_back(rounded(entry(i, j)));
      }
    };
    put_map([&](int i, int j) { return inverse(i, j) * force_per_wave(gamma, j); });
    put_map([&](int i, int j) { return inverse(i, j) * gamma(j, j) / h; });
  }

  void add_mass(const Square& gamma, Square& drag, std::vector<double>& rows) {
    drag += gamma;
    for (int i = 0; i < s_; ++i) masses_.push_back(rounded(-force_per_wave(gamma, i)));
    for (int i = 0; i < s_; ++i) {
      masses_.push_back(rounded(-wave_per_flow(gamma, i) / Quadruple(h_)));
    }
    for (int i = 0; i < s_; ++i) rows.push_back(rounded(wave_per_flow(gamma, i)));
  }

  void finish(const Square& drag, const std::vector<double>& of_springs,
              const std::vector<double>& of_masses) {
    const Quadruple h = h_, m = part_.mass_kg, k1 = part_.stiffness_N_per_m;
    const Square inverse = inverse_of(A_);
    scatter = {part_.cubic_stiffness_N_per_m3};
    for (int i = 0; i < s_; ++i) {
      for (int j = 0; j < s_; ++j) {
        scatter.push_back(rounded(m / (h * h) * inverse(i, j) + k1 * A_(i, j) + drag(i, j) / h));
      }
    }
    scatter.insert(scatter.end(), springs_.begin(), springs_.end());
    scatter.insert(scatter.end(), masses_.begin(), masses_.end());

    std::vector<double> drags;
    double largest = 0.0;
    for (int i = 0; i < s_; ++i) {
      Quadruple sum = 0;
      for (int j = 0; j < s_; ++j) sum += drag(i, j);
      drags.push_back(rounded(sum));
      largest = std::max(largest, std::abs(drags.back()));
    }
    step = {h_,
            1.0 / h_,
            2.0 * part_.mass_kg / h_,
            0.5 * h_ * part_.stiffness_N_per_m + largest,
            part_.stiffness_N_per_m,
            part_.cubic_stiffness_N_per_m3,
            part_.mass_kg,
            part_.damping_Ns_per_m};
    step.insert(step.end(), drags.begin(), drags.end());
    step.insert(step.end(), of_springs.begin(), of_springs.end());
    step.insert(step.end(), of_masses.begin(), of_masses.end());
    require_sound();
  }

  /// As h → 0 the determinant of L is positive: where it is not, it has vanished on the way.
  void require_sound() const {
    const double* const L = scatter.data() + 1;
    const double det = s_ == 2 ? L[0] * L[3] - L[1] * L[2]
                               : L[0] * (L[4] * L[8] - L[5] * L[7]) -
                                     L[1] * (L[3] * L[8] - L[5] * L[6]) +
                                     L[2] * (L[3] * L[7] - L[4] * L[6]);
    const auto is_finite = [](double value) { return std::isfinite(value); };
    if (!std::isfinite(det) || !std::ranges::all_of(scatter, is_finite) ||
        !std::ranges::all_of(step, is_finite)) {
      throw ConfigError("", "the coefficients of the implicit step overflow at this step size");
    }
    if (!(det > 0.0)) {  // only negative dampers can do that
      throw ConfigError("", "the implicit step is singular at this step size");
    }
  }

  const DuffingOscillatorParameters& part_;
  double h_;
  const Square& A_;
  const staged_duffing::Rule& rule_;
  int s_;
  std::vector<double> springs_, masses_;  // of the scatter block
};

class StagedDuffingBatch final : public StepBatch,
                                 public StepRoundings,
                                 public StageMotion,
                                 public BoundCalls {
 public:
  StagedDuffingBatch(const staged_duffing::Kernels& kernels,
                     std::vector<DuffingOscillatorParameters> parts)
      : StepBatch(static_cast<int>(parts.size()), 2 + kernels.springs,
                  kernels.stages * (kernels.springs + kernels.masses), kernels.stages),
        kernels_(kernels),
        rule_(staged_duffing_rule(kernels.stages)),
        butcher_(butcher_matrix(gauss_stages(kernels.stages))),
        width_(lanes() == 1 ? 1 : kLaneGroup),
        parts_(std::move(parts)) {}

  double scatter_cost_ns() const override {
    const double s = kernels_.stages;
    return (lanes() == 1 ? 8.0 : 2.5) * s * s;
  }
  double advance_cost_ns() const override {
    const double s = kernels_.stages;
    return (lanes() == 1 ? 25.0 : 8.0) * s * s;
  }

  const StepRoundings* roundings() const override { return this; }
  const StageMotion* stage_motion() const override { return this; }
  const BoundCalls* bound_calls() const override { return this; }

  void prepare(double step_s, const double* impedance) override {
    step_s_ = step_s;
    std::vector<std::vector<double>> scatter, step;
    std::vector<int> of_lane;
    std::map<std::vector<double>, int> known;
    for (int l = 0; l < lanes(); ++l) {
      const DuffingOscillatorParameters& p = parts_[static_cast<std::size_t>(l)];
      std::vector<double> gamma;
      gamma.reserve(static_cast<std::size_t>(wave_size()));
      for (int j = 0; j < wave_size(); ++j) gamma.push_back(impedance[j * stride() + l]);
      std::vector<double> key = gamma;
      key.insert(key.end(),
                 {p.mass_kg, p.stiffness_N_per_m, p.cubic_stiffness_N_per_m3, p.damping_Ns_per_m,
                  p.coupling_stiffness_N_per_m, p.coupling_damping_Ns_per_m});
      const auto [it, is_new] = known.try_emplace(std::move(key), static_cast<int>(known.size()));
      if (is_new) {
        StagedDuffingMaps maps(p, step_s, butcher_, rule_, kernels_.springs, gamma);
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
    double* const own = record + offset(lane, kernels_.state_slot);
    for (int i = 0; i < state_size(); ++i) own[i * width_] = x[i];
  }
  void get_state(int lane, const double* record, double* x) const override {
    const double* const own = record + offset(lane, kernels_.state_slot);
    for (int i = 0; i < state_size(); ++i) x[i] = own[i * width_];
  }

  void freeze(LaneRange range, double* record, const double* input) const override {
    for (int l = range.first; l < range.last; ++l) {
      double* const own = record + offset(l, kernels_.force_slot);
      for (int i = 0; i < input_size(); ++i) {
        own[i * width_] = input == nullptr ? 0.0 : input[l * input_size() + i];
      }
    }
    (void)kernels_.freeze(task_for(range, record));
  }

  LaneStatus scatter(LaneRange range, double* record, const double* a, double* b) const override {
    const staged_duffing::Task task = scatter_task(range, record, a, b);
    return outcome(scatter_kernel()(&task), range, a);
  }
  BoundCall bind_scatter(LaneRange range, double* record, const double* a,
                         double* b) const override {
    return BoundCall::of(scatter_kernel(), scatter_task(range, record, a, b));
  }

  LaneStatus advance(LaneRange range, double* record, const double* a, double* next, double* b,
                     const EnergyColumns& energy) const override {
    const staged_duffing::Task task = advance_task(range, record, a, next, b, energy);
    return outcome(kernels_.advance(&task), range, a);
  }
  BoundCall bind_advance(LaneRange range, double* record, const double* a, double* next, double* b,
                         const EnergyColumns& energy) const override {
    return BoundCall::of(kernels_.advance, advance_task(range, record, a, next, b, energy));
  }

  int stages() const override { return kernels_.stages; }
  void stage_increments(LaneRange range, const double* record, const double* a,
                        const double* /*next*/, double* out) const override {
    // The kernel writes nothing to the record.
    staged_duffing::Task task =
        task_for(range, const_cast<double*>(record));  // NOLINT(*-const-cast)
    task.a = a;
    kernels_.increments(task, out);
  }

  /// Each state and each force is known to ε of its terms, which the other of the two multiplies.
  std::optional<double> step_rounding(int lane, const double* record, const double* a,
                                      const double* next) const override {
    constexpr double kPerTerm = 8.0 * std::numeric_limits<double>::epsilon();
    constexpr int kMostStates = 4;
    const DuffingOscillatorParameters& p = parts_[static_cast<std::size_t>(lane)];
    double x[kMostStates] = {}, y[kMostStates] = {};
    get_state(lane, record, x);
    get_state(lane, next, y);
    const auto reach = [&](int i) { return std::abs(x[i]) + std::abs(y[i]); };
    const double travelled = reach(0) + step_s_ * reach(1);
    double terms = travelled * reach(0) *
                       (p.stiffness_N_per_m + p.cubic_stiffness_N_per_m3 * reach(0) * reach(0)) +
                   p.mass_kg * reach(1) * reach(1);
    for (int i = 2; i < state_size(); ++i) {
      terms += p.coupling_stiffness_N_per_m * reach(i) * reach(i);
    }
    for (int i = 0; i < input_size(); ++i) {
      const double force = record[offset(lane, kernels_.force_slot + i)];
      terms += std::abs(force) * step_s_ * reach(1);
    }
    // Outgoing waves carry at most what was stored and what came in.
    for (int j = 0; j < wave_size(); ++j)
      terms += 2.0 * a[j * stride() + lane] * a[j * stride() + lane];
    return kPerTerm * terms;
  }

 private:
  int (*scatter_kernel() const)(const void*) {
    return width_ == 1 ? kernels_.scatter_alone : kernels_.scatter;
  }
  int group_count() const { return (lanes() + width_ - 1) / width_; }
  std::size_t group_size() const { return static_cast<std::size_t>(kernels_.record_size * width_); }
  std::size_t offset(int lane, int quantity) const {
    return static_cast<std::size_t>(lane / width_) * group_size() +
           static_cast<std::size_t>(quantity * width_ + lane % width_);
  }
  staged_duffing::Task task_for(LaneRange range, double* record) const {
    staged_duffing::Task task;
    task.rule = &rule_;
    task.groups = groups_.data();
    task.first = range.first / width_;
    task.last = (range.last + width_ - 1) / width_;
    task.width = width_;
    task.stride = stride();
    task.record = record;
    return task;
  }
  staged_duffing::Task scatter_task(LaneRange range, double* record, const double* a,
                                    double* b) const {
    staged_duffing::Task task = task_for(range, record);
    task.a = a;
    task.b = b;
    return task;
  }
  staged_duffing::Task advance_task(LaneRange range, double* record, const double* a, double* next,
                                    double* b, const EnergyColumns& energy) const {
    staged_duffing::Task task = scatter_task(range, record, a, b);
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

  const staged_duffing::Kernels& kernels_;
  const staged_duffing::Rule& rule_;
  Square butcher_;
  int width_;
  double step_s_ = 0.0;
  std::vector<DuffingOscillatorParameters> parts_;
  LaneCoefficients scatter_, step_;
  std::vector<staged_duffing::Group> groups_;
};

}  // namespace

std::unique_ptr<StepBatch> make_staged_duffing_batch(
    DuffingPorts ports, int stages, std::vector<DuffingOscillatorParameters> parts) {
  return std::make_unique<StagedDuffingBatch>(staged_duffing_kernels(ports, stages),
                                              std::move(parts));
}

}  // namespace portwave
