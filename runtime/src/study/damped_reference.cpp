// Second looks, where the finer run is in doubt.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "portwave/runtime/study/step_comparison.hpp"
#include "study/finer_run.hpp"

namespace portwave {
namespace {

/// A larger error is told only after a second look.
constexpr double kDoubtful = 0.01;

}  // namespace

std::optional<StepperOptions> StepComparison::damped_options() const {
  StepperOptions options = finer_options();
  auto* const waves = options.method.as<WaveCoupling>();
  if (waves == nullptr || options.sizes) return {};
  waves->stages = kMostStages;
  waves->integrator = StageKind::damped;
  return options;
}

/// Empty where not all parts can be damped, or the run fails.
std::optional<StepAgreement> StepComparison::compare_with_damped(bool in_quarters) const {
  try {
    bool damps_less = false;
    auto options = damped_options();
    if (!options) return {};
    if (in_quarters) refine(*options);
    StepAgreement out = compare(*options, damps_less);
    if (out.failure.empty()) return out;
  } catch (const ConfigError&) {
  }
  return {};
}

/// The largest difference at any instant, and the index of its value.
std::pair<double, std::size_t> StepComparison::largest_difference(const DampedRun& other) const {
  std::pair<double, std::size_t> out = {0.0, 0};
  for (std::size_t k = 0; k < other.rows.size(); ++k) {
    const double range = other.ranges[k % states_];
    const double share = range > 0.0 ? std::abs(other.rows[k] - values_[k]) / range : 0.0;
    if (!(share <= out.first)) out = {share, k};
  }
  return out;
}

bool StepComparison::holds_with_damped_stages() const {
  constexpr double kEqual = 0.005, kEverywhere = 0.02;
  const DampedRun damped = damped_run(/*in_quarters=*/false);
  if (damped.rows.empty()) return false;
  const auto is_equal = [](const StateRecord::Difference& own) { return own.share <= kEqual; };
  const auto lasting = lasting_differences(damped.rows, values_, damped.ranges, times_, kEqual);
  const double largest = largest_difference(damped).first;
  return largest <= kEverywhere ||
         (largest <= StepAgreement::kFarInstant && std::ranges::all_of(lasting, is_equal));
}

/// At single instants the finer run may be the worse one: it conserves in steps that this run damps. Three damped
/// stages bring to rest what decays; where they are nearer to this run, they tell its error. Or all of them have the same
/// error, as behind a kink that they pass too late: it is larger where quarter steps say so, damped or not.
void StepComparison::judge_instant(StepAgreement& out) const {
  constexpr double kAlike = 1.5;
  const auto tell = [&](double share, std::size_t k) {
    std::size_t i = 0;
    for_each_state(scenario_.system, [&](int part, std::size_t state) {
      if (i++ == k % states_) out.state_of_instant = name_of_state(scenario_.system, part, state);
    });
    out.instant_s = times_[k / states_];
    out.instant_share = std::max(share / out.error_of_difference, out.share);
  };
  if (out.has_far_instant() && out.instant_error() > StepAgreement::kFarInstant) {
    const DampedRun damped = damped_run(/*in_quarters=*/false);
    if (damped.rows.empty()) return;
    const auto [share, k] = largest_difference(damped);
    const bool is_alike = share > out.instant_error() / kAlike;
    if (share < out.instant_error()) tell(share, k);
    if (!is_alike) return;
  }
  if (stages_ == kMostStages) return;  // a second run of the same kind says nothing new
  if (out.is_far() || !is_short() || !(out.instant_error() > kDoubtful)) return;
  DampedRun other = damped_run(/*in_quarters=*/true);
  if (other.rows.empty()) return;
  const auto damped = largest_difference(other);
  if (!(damped.first > out.instant_error())) return;
  StepperOptions options = finer_options();
  refine(options);
  std::vector<Motion> motion;
  other.rows = rows_of(options, motion);
  if (other.rows.size() != values_.size()) return;
  const auto [share, k] = std::min(largest_difference(other), damped);
  if (share > out.instant_error()) tell(share, k);
}

/// Of a run that is far from the finer one, which begins in small parts that may leave ringing what pieces bring to
/// rest: how far it is from the same without them, and from three damped stages in quarter steps, which begin likewise.
/// Empty where it is far from one of them, too.
std::optional<StepAgreement> StepComparison::second_opinion() const {
  StepperOptions options = finer_options();
  if (!is_short() || options.sizes || !options.halves_once_more || has_halved_) return {};
  options.halves_once_more = false;
  bool damps_less = false;
  const StepAgreement plain = compare(options, damps_less);
  if (plain.is_far()) return {};
  const auto damped = compare_with_damped(true);
  if (!damped || damped->is_far() || damped->instants != plain.instants) return {};
  return damped->error() > plain.error() ? damped : plain;
}

}  // namespace portwave
