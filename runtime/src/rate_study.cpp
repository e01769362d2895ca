#include "portwave/runtime/rate_study.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "portwave/coupling/wave_discretisation.hpp"
#include "portwave/runtime/tune.hpp"

namespace portwave {
namespace {

constexpr double kReduction = 1e-10;
/// Of the waves: a gap this small is round-off, and has no rate.
constexpr double kRoundOff = 64.0 * std::numeric_limits<double>::epsilon();

std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// One iteration over some macro-steps.
class Observation {
 public:
  Observation(const Scenario& scenario, std::span<const double> impedance, MethodKind kind,
              double relaxation, int limit)
      : scenario_(scenario),
        waves_(scenario.system, scenario.options.step_s, impedance),
        kind_(kind),
        relaxation_(relaxation),
        limit_(limit),
        record_(waves_.initial_record()),
        next_(record_.size()),
        input_(waves_.input_size()),
        first_(at(scenario.system.island_count())),
        gaps_(first_.size()) {
    for (auto* wave : {&u_, &b_, &exchanged_}) wave->resize(at(waves_.wave_size()));
    const std::vector<double>& initial = scenario.options.method.initial_waves;
    for (int port = 0; port < static_cast<int>(initial.size()); ++port) {
      b_[at(waves_.wave_of_port(port))] = initial[at(port)];
    }
  }

  /// What is wrong, or nothing.
  std::string run(int steps, ObservedRate& observed) {
    double sum_of_logs = 0.0;
    int evaluations = 0;
    for (int n = 0; n < steps; ++n) {
      const PhaseStatus status = step(n, observed, sum_of_logs, evaluations);
      if (!status.ok()) return fmt::format("{} failed in step {}", name_of(status.part), n);
    }
    if (observed.steps > 0) {
      observed.contraction = std::exp(sum_of_logs / observed.steps);
      observed.evaluations = static_cast<double>(evaluations) / observed.steps;
    }
    return {};
  }

 private:
  PhaseStatus step(int n, ObservedRate& observed, double& sum_of_logs, int& evaluations) {
    PhaseStatus status;
    if (waves_.driven()) {
      const double time_s = n * waves_.step_s();
      if (!waves_.sample_inputs(time_s, input_.data(), status)) return status;
      status = waves_.freeze_all(record_.data(), input_.data(), /*driven_only=*/true);
      if (!status.ok()) return status;
    }
    waves_.interconnection().exchange(b_.data(), u_.data());
    status = iterate(observed, sum_of_logs, evaluations);
    if (!status.ok()) return status;
    status = waves_.advance_all(record_.data(), exchanged_.data(), next_.data(), b_.data(), {});
    std::swap(record_, next_);
    return status;
  }

  /// Leaves P b̂ of the last evaluation in exchanged_.
  PhaseStatus iterate(ObservedRate& observed, double& sum_of_logs, int& evaluations) {
    PhaseStatus status = evaluate(first_);
    if (!status.ok() || share_of(first_) == 0.0) return status;
    int k = 1;
    double share = 1.0, contraction = 1.0;
    bool met_round_off = false;
    while (k < limit_ && share > kReduction && std::isfinite(share) && !met_round_off) {
      update();
      status = evaluate(gaps_);
      if (!status.ok()) return status;
      const double before = share;
      share = share_of(gaps_);
      met_round_off = is_round_off() && share > kReduction;
      if (met_round_off && share >= before) break;  // what it came to is noise
      contraction = std::pow(share, 1.0 / k);
      ++k;
    }
    count(contraction, k, share <= kReduction || met_round_off, observed);
    sum_of_logs += std::log(std::max(contraction, std::numeric_limits<double>::epsilon()));
    evaluations += k;
    return status;
  }

  static void count(double contraction, int evaluations, bool converged, ObservedRate& observed) {
    ++observed.steps;
    observed.worst_contraction = std::max(observed.worst_contraction, contraction);
    observed.max_evaluations = std::max(observed.max_evaluations, evaluations);
    observed.not_converged += converged ? 0 : 1;
  }

  /// b = S(u) and P b; the gaps by island.
  PhaseStatus evaluate(std::vector<double>& gaps) {
    PhaseStatus status = waves_.scatter_all(record_.data(), u_.data(), b_.data());
    waves_.interconnection().exchange(b_.data(), exchanged_.data());
    std::fill(gaps.begin(), gaps.end(), 0.0);
    gap_ = size_ = 0.0;
    for (std::size_t j = 0; j < u_.size(); ++j) {
      const int part = waves_.part_of_wave(static_cast<int>(j));
      if (part < 0) continue;
      const double gap = (exchanged_[j] - u_[j]) * (exchanged_[j] - u_[j]);
      gaps[at(waves_.system().island_of_part(part))] += gap;
      gap_ += gap;
      size_ += u_[j] * u_[j];
    }
    return status;
  }

  bool is_round_off() const { return gap_ <= kRoundOff * kRoundOff * size_; }

  /// The largest share of its first gap that an island has left.
  double share_of(const std::vector<double>& gaps) const {
    double share = 0.0;
    for (std::size_t i = 0; i < gaps.size(); ++i) {
      if (!std::isfinite(gaps[i])) return std::numeric_limits<double>::infinity();
      if (first_[i] > 0.0) share = std::max(share, gaps[i] / first_[i]);
    }
    return std::sqrt(share);
  }

  void update() {
    if (kind_ == MethodKind::douglas_rachford) {
      return waves_.interconnection().douglas_rachford(relaxation_, b_.data(), u_.data());
    }
    for (std::size_t j = 0; j < u_.size(); ++j) u_[j] += relaxation_ * (exchanged_[j] - u_[j]);
    if (relaxation_ == 1.0) u_ = exchanged_;
  }

  std::string name_of(int part) const {
    return part < 0 ? std::string("it") : "\"" + scenario_.system.parts()[at(part)].name + "\"";
  }

  const Scenario& scenario_;
  WaveDiscretisation waves_;
  MethodKind kind_;
  double relaxation_;
  int limit_;
  AlignedVector record_, next_, input_;
  AlignedVector u_, b_, exchanged_;
  std::vector<double> first_, gaps_;
  double gap_ = 0.0, size_ = 0.0;
};

}  // namespace

std::vector<RateRow> study_rate(const Scenario& scenario, const RateOptions& options) {
  const PortResponses responses(scenario.system, scenario.options.step_s);
  const int steps = static_cast<int>(std::min<std::int64_t>(options.steps, scenario.steps));
  std::vector<RateRow> rows;
  for (const RuleRates& rule : rates_of_rules(scenario, responses)) {
    for (const MethodKind kind : {MethodKind::douglas_rachford, MethodKind::peaceman_rachford}) {
      const bool is_douglas = kind == MethodKind::douglas_rachford;
      RateRow row{.method = kind,
                  .relaxation = is_douglas ? rule.douglas_relaxation : rule.peaceman_relaxation,
                  .impedance = rule.rule,
                  .problem = rule.problem,
                  .predicted = is_douglas ? rule.douglas_rachford : rule.peaceman_rachford};
      if (row.problem.empty()) {
        row.problem = Observation(scenario, rule.by_port, kind, row.relaxation, options.limit)
                          .run(steps, row.observed);
      }
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace portwave
