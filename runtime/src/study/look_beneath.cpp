// Of states that a first finer run does not judge: whether runs whose parts meet the tolerance each do.

#include <algorithm>
#include <cmath>
#include <vector>

#include "portwave/runtime/study/step_comparison.hpp"
#include "study/finer_run.hpp"

namespace portwave {
namespace {

/// Steps with fewer evaluations than that often end by the first one, with the waves of the step before.
constexpr double kFewEvaluations = 1.5;

}  // namespace

StepComparison::Rows StepComparison::rows_of(const StepperOptions& options,
                                             std::vector<Motion>& motion) const {
  // Chosen steps of a run of n: 32 n of a short one, which may hardly follow the part; 3 n of one that took time.
  constexpr std::int64_t kOfShort = 32, kOfLong = 3, kShort = 20'000;
  Rows rows;
  try {
    rows.reserve(values_.size());
    FinerRun run(scenario_, options, states_);
    const std::int64_t steps = last_step_ + kLeastComparedSteps;
    run.end_after(std::min(kOfShort * steps, kShort + kOfLong * steps));
    for (const double time_s : times_) {
      if ((options.interrupted && options.interrupted()) || run.is_spent()) break;
      const std::span<const double> x =
          run.states_at(time_s, run.steps_between(stride_, options_.step_s));
      if (!run.is_spent()) rows.insert(rows.end(), x.begin(), x.end());
    }
    if (rows.size() == values_.size()) motion = motion_of(run.stepper(), rows);
  } catch (const StepError&) {
    // It says nothing then.
  } catch (const ConfigError&) {
  }
  return rows;
}

void StepComparison::look_beneath(StepAgreement& out, const StepperOptions& finer, const Rows& rows,
                                  const std::vector<Motion>& motion,
                                  std::vector<Doubt>& doubts) const {
  // Of its range: two runs that differ by more do not know how it moves.
  constexpr double kKnown = 0.3;
  constexpr int kMostBeneath = 8;  // evaluations, and four times as many as the run took
  StepperOptions options = finer;
  auto* const waves = options.method.as<WaveCoupling>();
  const bool has_tolerance = waves != nullptr && waves->tolerance > 0.0;
  if (out.is_far() || (!has_tolerance && !out.is_chosen)) return;
  // Steps that choose their size do not see in their errors either what is small.
  const bool has_doubts = std::ranges::any_of(doubts, [&](const Doubt& own) {
    return own.off > out.limit || (own.is_small && out.is_chosen);
  });
  if (!has_doubts && evaluations_ >= kFewEvaluations) return;
  const bool is_asked = has_tolerance && waves->tolerance_per_part;
  const auto ranges_of = [&](const Rows& of) {
    std::vector<StateRecord> records(states_);
    for (std::size_t k = 0; k < of.size(); ++k) records[k % states_].see(of[k]);
    return records;
  };
  const auto differences = [&](const Rows& a, const Rows& b, const std::vector<double>& scale) {
    return lasting_differences(a, b, scale, times_, out.limit);
  };
  const auto is_off = [&](const StateRecord::Difference& own) { return own.share > out.limit; };
  const std::vector<StateRecord> own = ranges_of(values_);
  // What two runs, the first with `options`, the second still finer, agree on; false where they do not come to an end.
  const auto judge = [&](const Rows& second, const std::vector<Motion>& moves) {
    const std::vector<StateRecord> other = ranges_of(second);
    std::vector<double> larger(states_), known(states_);
    std::size_t i = 0;
    for_each_state(scenario_.system, [&](int, std::size_t) {
      const bool is_rounding = moves[i] == Motion::rounding;
      known[i] = is_rounding ? 0.0 : other[i].range();
      if (doubts[i].is_small && known[i] > StepAgreement::kLeastOfKind * own[i].range())
        larger[i] = std::max(own[i].range(), known[i]);
      ++i;
    });
    const auto off = differences(values_, second, larger);
    const bool is_open = std::ranges::any_of(
        doubts, [&](const Doubt& each) { return out.is_chosen && each.off > out.limit; });
    if (std::ranges::none_of(off, is_off) && !is_open) return true;
    refine(options);
    if (options.sizes && !StepSizes::tolerances().contains(options.sizes->tolerance)) return true;
    std::vector<Motion> finest;
    const Rows third = rows_of(options, finest);
    if (third.size() != values_.size()) return false;
    const auto unknown = differences(second, third, known);
    const auto by_steps = differences(rows, second, larger);
    i = 0;
    for_each_state(scenario_.system, [&](int part, std::size_t state) {
      const std::size_t k = i++;
      doubts[k].is_known = larger[k] > 0.0 && unknown[k].share <= kKnown;
      if (!doubts[k].is_known || !is_off(off[k]) || !(off[k].share > out.share)) return;
      out.share = off[k].share;
      out.time_s = off[k].time_s;
      out.grows = false;
      out.state = name_of_state(scenario_.system, part, state);
      out.is_beneath_waves = !is_asked && is_off(by_steps[k]);
    });
    return true;
  };
  if (has_tolerance) {
    waves->tolerance_per_part = true;
    // Parts whose waves are rounding may not meet it.
    waves->iterations =
        std::min(waves->iterations, kMostBeneath + static_cast<int>(4.0 * evaluations_));
    std::vector<Motion> of_second;
    const Rows second = rows_of(options, of_second);
    if (second.size() == values_.size() && judge(second, of_second)) return;
  }
  if (!out.is_chosen || is_asked) return;
  // Parts by themselves ask for too many steps, or the method has no such tolerance: together they still may agree.
  options = finer;
  judge(rows, motion);
}

}  // namespace portwave
