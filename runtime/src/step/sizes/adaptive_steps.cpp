#include "step/sizes/adaptive_steps.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/base/state_archive.hpp"

namespace portwave {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
/// A residual that is near enough to round-off, if the last digits are out of reach.
constexpr double kResidualEnough = 1e-11;
/// The difference of two attempts gives the error of the better one by the order for short
/// steps: no error is taken for less than this times the square of the difference.
constexpr double kTrusted = 5.0;
/// Largest error of one step, as a share of the tolerance, for one, two and three stages: so that at
/// the end of runs the errors add up to no more than some tolerances.
constexpr double kShareOfStep[] = {0.25, 0.25, 0.4};
/// An error for which steps are made shorter by one rung.
constexpr double kByOneRung = 1.01;
/// An error that is a sudden one.
constexpr double kSudden = 8.0;
/// Steps shorter than this share of the largest one may resolve less than their estimate sees: the rounding of waves,
/// or what the inner iteration leaves, in rates that h divides. No error is larger there than all motion.
constexpr double kTiny = 1e-6, kOfTiny = 0.01;
/// Limit of the size of later trial steps, relative to the first one.
constexpr double kOfFirst = 1.5;
/// Steps that a comparison with halves speaks for.
constexpr int kCompared = 2;
/// The step that takes the jump of a displacement, relative to the one in use: the next one, of that size, must not see
/// the jump again, which an input does up to 1e-9 of a step before it. And beside the rounding of the time.
constexpr double kOfJump = 0x1p-28, kOfTime = 0x1p14 * std::numeric_limits<double>::epsilon();

/// A displacement that jumps in (after_s, until_s].
struct Displacement {
  const Part* part = nullptr;  // null: none does
  std::size_t input = 0;
  Signal::Jump jump = {};
};

Displacement jumping_displacement(const System& system, double after_s, double until_s) {
  for (const Part& part : system.parts()) {
    for (std::size_t i = 0; i < part.inputs.size(); ++i) {
      if (const auto jump = part.inputs[i].displacement_jump(after_s, until_s)) {
        return {&part, i, *jump};
      }
    }
  }
  return {};
}

/// A clause on a step that is too short to have step maps.
std::string without_steps(const ConfigError& error) {
  const std::string why = error.issues().empty() ? error.what() : error.issues().front().what;
  return fmt::format("no step that can be computed is short enough ({})", why);
}

/// "the displacement of road.flow jumps …": of one that jumps about there, which no shorter step does better; empty:
/// none does.
std::string displacement_about(const System& system, double time_s) {
  const double beside_s = 1e-9 * std::max(1e-3, std::abs(time_s));
  const Displacement own = jumping_displacement(system, time_s - beside_s, time_s + beside_s);
  if (own.part == nullptr) return {};
  const std::string& input = own.part->component->signature().inputs[own.input].name;
  return fmt::format(
      "the displacement of {}.{} jumps from {:.6g} to {:.6g} at {:.9g} s, at a rate without a "
      "bound: let it rise within a time, or take steps of one size (/time/step_s), one of "
      "which makes up for it.\n",
      printable(own.part->name),
      printable(input.substr(0, input.find('@'))),  // "flow@1" of a stage
      own.jump.before, own.jump.after, own.jump.time_s);
}

}  // namespace

AdaptiveSteps::AdaptiveSteps(StepTrials& trials, const WaveDiscretisation& waves,
                             const System& given, const StageRule& rule, const StepSizes& sizes,
                             double largest_s, const double* record, std::span<const Watch> watches,
                             Of of)
    : of_(of),
      trials_(trials),
      names_of_(waves.system()),
      largest_s_(largest_s),
      smallest_s_(sizes.smallest_s),
      share_(kShareOfStep[std::min(rule.count, 3) - 1]),
      tolerance_(share_ * sizes.tolerance),
      smooth_(sizes.tolerance),
      order_(2 * rule.count - (rule.is_damped() ? 1 : 0)),
      control_(of == Of::run ? longest_for_periods(given, sizes, largest_s) : largest_s,
               sizes.smallest_s, StepErrorEstimate::power(rule)),
      estimate_(waves, rule, record,
                of == Of::run ? StepErrorEstimate::OtherParts::none
                              : StepErrorEstimate::OtherParts::left_out,
                of == Of::run ? StepErrorEstimate::IdealParts::without_errors
                              : StepErrorEstimate::IdealParts::judged),
      states_(waves, estimate_),
      crossings_(states_, watches,
                 sizes.event_tolerance_s > 0.0 ? sizes.event_tolerance_s
                                               : StepSizes::kEventShare * largest_s,
                 record),
      event_s_(-kInfinite),
      record_size_(waves.record_size()) {
  if (of == Of::step) {
    if (rule.is_damped()) return;
    own_.emplace(waves, estimate_, record);
    jumps_.emplace(given);
    estimate_.start_beside_stored(record);
    return;
  }
  changes_.emplace(given);
  pulses_.emplace(given, rule);
}

StepReport AdaptiveSteps::step(double limit_s) {
  if (auto report = take_jump()) return *report;
  const double start_s = trials_.time_s();
  const double kink_s =
      changes_ ? changes_->next(start_s, 2.0 * control_.ladder_step_s()) : kInfinite;
  double end_s = std::min(limit_s, kink_s);
  if (event_s_ > start_s) end_s = std::min(end_s, event_s_);
  StepReport report;
  for (int rejected = 0;; ++rejected) {
    if (!has_first_step_) find_first_step(end_s);
    const StepControl::Next next = control_.next(start_s, end_s);
    report.rejected_steps = rejected;
    if (hides_pulse(next.step_s)) {
      reject(next, kByOneRung);
      continue;
    }
    if (try_step(next, end_s, report)) {
      if (next.reaches_limit && (end_s == kink_s || (end_s == event_s_ && event_changes_))) {
        restart();
      }
      return report;
    }
    if (event_s_ > start_s) end_s = std::min(end_s, event_s_);
  }
}

void AdaptiveSteps::begin_step(double step_s) {
  // Of what an input that jumps throws, with hλ ≫ 1 twice its jump, the rates of the steps before show a twelfth: such a
  // step is compared with two halves, as a first one.
  if (jumps_ && jumps_->jumps(trials_.time_s(), step_s)) restart();
  tolerance_ = rough();
  left_error_ = 0.0;
  control_.resume(step_s);
}

/// A step over a displacement that jumps where it begins: so short that nothing else moves. Any step follows the
/// displacement exactly, and no estimate knows its rate, which has no bound. Empty where none jumps.
std::optional<StepReport> AdaptiveSteps::take_jump() {
  if (of_ == Of::step || has_first_step_) return {};
  const double start_s = trials_.time_s();
  const double step_s = std::max(kOfJump * control_.ladder_step_s(), kOfTime * std::abs(start_s));
  const double about_s = 0x1p-8 * step_s;
  if (jumping_displacement(names_of_, start_s - about_s, start_s + about_s).part == nullptr)
    return {};
  if (resumed_s_ == 0.0) resumed_s_ = control_.ladder_step_s();
  try {
    trials_.use(step_s);
  } catch (const ConfigError&) {  // no step maps of this size
    return {};
  }
  StepReport report = trials_.attempt_to_commit(start_s);
  report.step_s = step_s;
  trials_.commit(report, start_s + step_s);
  crossings_.accept(start_s + step_s, trials_.record());
  count(report);
  restart();
  return report;
}

void AdaptiveSteps::restart() {
  estimate_.forget();
  control_.forget();
  has_first_step_ = false;
  resume();
}

void AdaptiveSteps::archive(StateArchive& archive) {
  estimate_.archive(archive);
  crossings_.archive(archive);
  control_.archive(archive);
  archive.values(event_s_, event_changes_, has_first_step_, first_error_, compared_, resumed_s_,
                 for_coupling_, least_for_coupling_s_, left_error_, rounded_, statistics_);
  if (changes_) changes_->archive(archive);
  if (pulses_) pulses_->archive(archive);
  if (own_) own_->archive(archive);
  archive.expect(!std::isnan(event_s_), "the time that a step ends at");
  archive.expect(first_error_ >= 0.0, "the error of a first step");
  for (const double size_s : {resumed_s_, least_for_coupling_s_}) {
    archive.expect(size_s == 0.0 || control_.can_have(size_s), "the size of an earlier step");
  }
  constexpr int kMost = 1 << 30;
  archive.expect(for_coupling_ >= 0 && for_coupling_ <= kMost, "the number of steps made shorter");
  archive.expect(rounded_ >= 0 && rounded_ <= kMost, "the number of steps that resolve rounding");
  const StepSizeStatistics& s = statistics_;
  archive.expect_counts(
      {compared_, s.rejected, s.rejected_for_coupling, s.comparisons, s.shortened, s.changes},
      "the number of steps so far");
}

/// Whether a step from here would miss what an input does within it.
bool AdaptiveSteps::hides_pulse(double step_s) {
  return pulses_ && control_.can_shrink() && pulses_->within(trials_.time_s(), step_s);
}

/// False if an event lies before the end of an attempted step, which must then end there.
bool AdaptiveSteps::ends_at_event(double start_s, double step_s, double end_s) {
  if (crossings_.empty()) return true;
  const CrossingSearch::End event =
      crossings_.end_for(start_s, step_s, control_.ladder_step_s(), trials_.next());
  if (!(event.time_s < end_s)) return true;
  event_s_ = event.time_s;
  event_changes_ = event.changes_equations;
  return false;
}

/// Whether the step was good enough and is committed.
bool AdaptiveSteps::try_step(const StepControl::Next& next, double end_s, StepReport& report) {
  const int rejected = report.rejected_steps;
  const double start_s = trials_.time_s();
  double error = kInfinite;
  bool is_rounding = false;
  try {
    trials_.use(next.step_s);
    report = trials_.attempt_to_commit(start_s);
    estimate_.take(trials_.record(), trials_.incident(), trials_.next());
    const auto own = estimate_.error_of_laws(trials_.next(), trials_.incident());
    error = own ? *own / tolerance_ : 0.0;
    if (own) error = std::max(error, error_of_own(OwnStates::Beside::all));
    if (!own || compared_ > 0) error = std::max(error, first_error_);
    if (const LawEnds::Error behind = trials_.error_behind_stages(); behind.part >= 0) {
      const double scale_J = estimate_.scale_J(estimate_.kind_of(behind.part));
      const double late = std::sqrt(behind.energy_J / scale_J) / tolerance_;
      if (std::isfinite(late)) error = std::max(error, late);
    }
    if (next.step_s < kTiny * largest_s_ && error > kOfTiny) {
      const double moved = estimate_.motion(trials_.record(), trials_.next()) / tolerance_;
      is_rounding = moved < error;
      error = std::min(error, std::max(kOfTiny, moved));
    }
  } catch (const StepError& failure) {
    if (failure.fault() == StepFault::threw || !control_.can_shrink()) throw;
    reject(next, kInfinite);
    return false;
  } catch (const ConfigError& problem) {  // no step maps of this size
    if (!control_.can_shrink()) fail(without_steps(problem));
    reject(next, kInfinite);
    return false;
  }
  if (has_to_shrink(report, next.step_s, error)) {
    if (!is_coupled(report)) ++statistics_.rejected_for_coupling;
    reject(next, error);
    return false;
  }
  const double reached_s = next.reaches_limit ? end_s : start_s + next.step_s;
  if (!ends_at_event(start_s, next.step_s, reached_s)) {
    ++statistics_.shortened;
    return false;
  }
  report.step_s = next.step_s;
  report.rejected_steps = rejected;
  report.error = error * share_;
  expect_progress(start_s, reached_s);
  expect_more_than_rounding(next.step_s, is_rounding);
  trials_.commit(report, reached_s);
  estimate_.accept(trials_.record());
  if (own_) own_->note(trials_.record());
  crossings_.accept(reached_s, trials_.record());
  control_.accept(next, error);
  compared_ = std::max(compared_ - 1, 0);
  count(report);
  return true;
}

/// Whether its inner iteration has converged. Unknown if nothing was evaluated.
bool AdaptiveSteps::is_coupled(const StepReport& report) const {
  if (of_ == Of::step) return report.converged;  // the guard may have held back a step that is not
  return report.converged || (report.iterations > 0 && report.residual <= kResidualEnough);
}

/// Whether an attempt must be taken back. If its coupling has not converged its error says little; once
/// shorter steps have not helped, it is accepted.
bool AdaptiveSteps::has_to_shrink(const StepReport& report, double step_s, double& error) {
  // With few iterations to spend no step is coupled, and pieces would not be either.
  constexpr int kMany = 100;
  if (of_ == Of::step && !is_coupled(report) && report.iterations < kMany) return false;
  if (is_coupled(report)) {
    for_coupling_ = 0;
    if (error <= 1.0) return false;
    if (control_.can_shrink()) return true;
    if (of_ == Of::run) give_up(step_s, error);
    left_error_ = std::max(left_error_, error);
    error = 1.0;
    return false;
  }
  // Below the abandoned size, a short way between two knots must not keep steps short.
  error = step_s < least_for_coupling_s_ ? 0.0 : std::min(error, 1.0);
  if (step_s <= least_for_coupling_s_ || !control_.can_shrink()) return false;
  if (++for_coupling_ >= kMostForCoupling) least_for_coupling_s_ = step_s;
  return true;
}

void AdaptiveSteps::reject(const StepControl::Next& next, double error) {
  ++statistics_.rejected;
  const bool is_first = of_ == Of::step && !is_in_pieces();
  reject_size(next, error);
  // What is thrown in a short step after long ones hardly shows in rates of all of them: it is compared with halves.
  // These do not know what ended just before them, as a diode does that blocks before the first stage: earlier steps
  // count, too.
  const bool is_sudden = !(error <= kSudden);
  if (of_ == Of::step && (is_first || is_sudden)) return restart();
  if (!is_sudden) return;
  control_.forget();
  has_first_step_ = false;
}

/// A step that is not taken as a whole is taken in pieces.
void AdaptiveSteps::reject_size(const StepControl::Next& next, double error) {
  control_.reject(next, error);
  if (of_ == Of::step) tolerance_ = smooth_;
}

void AdaptiveSteps::count(const StepReport& report) {
  if (report.step_s != statistics_.last_s) ++statistics_.changes;
  statistics_.last_s = report.step_s;
  statistics_.smallest_s = std::min(statistics_.smallest_s, report.step_s);
  statistics_.largest_s = std::max(statistics_.largest_s, report.step_s);
}

/// A short way between two events says nothing about later steps.
void AdaptiveSteps::resume() {
  if (resumed_s_ == 0.0) return;
  control_.resume(resumed_s_);
  resumed_s_ = 0.0;
  for_coupling_ = 0;
  least_for_coupling_s_ = 0.0;
}

void AdaptiveSteps::find_first_step(double limit_s) {
  const double start_s = trials_.time_s();
  if (of_ == Of::run && limit_s - start_s < control_.ladder_step_s()) {
    resumed_s_ = control_.ladder_step_s();
  }
  trials_.save();
  estimate_.set_aside();
  for (;;) {
    // A step that is to be taken as a whole is compared as one: halves are taken for their comparison only.
    const bool is_whole = of_ == Of::step && !is_in_pieces();
    const double whole_s = is_whole
                               ? control_.ladder_step_s()
                               : std::min(control_.ladder_step_s(), (limit_s - start_s) / kOfFirst);
    if (hides_pulse(kOfFirst * whole_s)) {
      reject_size({whole_s, whole_s == control_.ladder_step_s(), false}, kByOneRung);
      continue;
    }
    double error = kInfinite;
    bool has_to_shrink = true;
    try {
      const StepReport report = attempt_halves(whole_s, error);
      if (is_whole) error *= std::exp2(StepErrorEstimate::power(estimate_.rule()));
      has_to_shrink = this->has_to_shrink(report, 0.5 * whole_s, error);
    } catch (const StepError& failure) {
      trials_.restore();
      if (failure.fault() == StepFault::threw || !control_.can_shrink()) throw;
    } catch (const ConfigError& problem) {
      trials_.restore();
      if (!control_.can_shrink()) fail(without_steps(problem));
    }
    trials_.restore();
    estimate_.take_back();
    ++statistics_.comparisons;
    if (!has_to_shrink) {
      first_error_ = error;
      compared_ = kCompared;
      has_first_step_ = true;
      control_.begin_with(is_whole ? whole_s : 0.5 * whole_s);
      return;
    }
    reject_size({whole_s, whole_s == control_.ladder_step_s(), false}, error);
  }
}

/// Three steps of half the size. `error`: of one of them, relative to the tolerance, estimated from the
/// difference between the first two and one whole step, and also as for later steps. The first estimate alone
/// would miss values that bounce alike in long and in short steps, as a voltage on a diode. Returns a report
/// of the coupling of all four.
StepReport AdaptiveSteps::attempt_halves(double whole_s, double& error) {
  const double start_s = trials_.time_s();
  const auto go_on = [this] {
    estimate_.take(trials_.record(), trials_.incident(), trials_.next());
    estimate_.go_on();
    trials_.go_on();
  };
  estimate_.forget();
  trials_.use(whole_s);
  StepReport report = trials_.attempt(start_s);
  const auto add = [&report](const StepReport& own) {
    report.converged = report.converged && own.converged;
    report.residual = std::max(report.residual, own.residual);
  };
  coarse_.assign(trials_.next(), trials_.next() + record_size_);
  trials_.restore();
  trials_.use(0.5 * whole_s);
  add(trials_.attempt(start_s));
  go_on();
  add(trials_.attempt(start_s + 0.5 * whole_s));
  const double difference = estimate_.distance(coarse_.data(), trials_.next(), trials_.incident());
  // Half of Richardson's extrapolation, if the two are close enough for it.
  const double share = std::max(0.5 / (std::exp2(order_) - 1.0), kTrusted * difference);
  error = std::isfinite(difference) ? std::min(share, 1.0) * difference / tolerance_ : kInfinite;
  error = std::max(error, error_of_own(OwnStates::Beside::earlier));
  if (!(error <= 1.0)) return report;
  estimate_.take(trials_.record(), trials_.incident(), trials_.next());
  error = std::max(error, estimate_.error_between(trials_.next(), trials_.incident()) / tolerance_);
  if (!(error <= 1.0)) return report;
  go_on();
  add(trials_.attempt(start_s + whole_s));
  estimate_.take(trials_.record(), trials_.incident(), trials_.next());
  for (const auto window :
       {StepErrorEstimate::Window::earliest, StepErrorEstimate::Window::latest}) {
    const auto own = estimate_.error(trials_.next(), trials_.incident(), window);
    error = std::max(error, *own / tolerance_);
  }
  return report;
}

/// `why`: a clause on the last step.
void AdaptiveSteps::fail(const std::string& why) const {
  const int part = estimate_.worst_part();
  throw StepError(
      part < 0 ? std::string() : names_of_.parts()[static_cast<std::size_t>(part)].name,
      trials_.step_index(), 0, StepError::kNoIterations, StepFault::too_inaccurate,
      fmt::format(
          "{}.\n{}Something there changes faster than any such step: it starts or jumps at odds "
          "with a rigid joint (a capacitor on a source, shafts joined rigidly), a constraint is "
          "violated, or a one-sided part (a diode, contact, switch or dry friction) switches back "
          "and forth.\nRemedies: a larger /time/step/tolerance, a start that the joints allow, a "
          "small resistance or compliance in the joint, or steps of one size "
          "(/time/step_s)",
          why, displacement_about(names_of_, trials_.time_s())));
}

void AdaptiveSteps::give_up(double step_s, double error) const {
  const bool is_limited = smallest_s_ > 0.0;
  fail(fmt::format(
      "a step of {:.3g} s is off by {:.3g} times the tolerance, and shorter ones are not {}",
      step_s, error,
      is_limited ? fmt::format("allowed (/time/step/smallest_s is {:g})", smallest_s_)
                 : std::string("possible")));
}

/// Steps that are too short to change the time at all may be needed for a while, after a jump, but not
/// forever.
void AdaptiveSteps::expect_progress(double start_s, double end_s) {
  constexpr std::int64_t kMostAtOnce = 20'000;
  standing_ = end_s > start_s ? 0 : standing_ + 1;
  if (standing_ <= kMostAtOnce) return;
  constexpr double kLate_s = 1e6;  // such as seconds since 1970
  const double spacing_s =
      std::nextafter(std::abs(end_s), std::numeric_limits<double>::infinity()) - std::abs(end_s);
  const std::string late =
      std::abs(end_s) < kLate_s
          ? ""
          : fmt::format(
                ". Numbers as large as these times are {:.2g} s apart: let the run start at "
                "0 (/time/start_s), and add the rest to what it writes",
                spacing_s);
  fail(fmt::format("{} steps of {:.3g} s and the like did not get beyond {:.17g} s{}", standing_,
                   statistics_.last_s, end_s, late));
}

/// Steps that are so short that their errors are rounding may be needed where a part changes over, but not forever.
void AdaptiveSteps::expect_more_than_rounding(double step_s, bool is_rounding) {
  constexpr int kMostOfThem = 5000;
  if (!(step_s < kTiny * largest_s_)) rounded_ = 0;
  if (!is_rounding || ++rounded_ <= kMostOfThem) return;
  fail(
      fmt::format("in {} steps of {:.3g} s and the like the error is rounding: they resolve no "
                  "tolerance of {:g}",
                  rounded_, step_s, smooth_));
}

}  // namespace portwave
