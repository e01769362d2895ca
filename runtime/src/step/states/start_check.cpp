#include "step/states/start_check.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "portwave/runtime/step/wave_view.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/base/state_archive.hpp"
#include "portwave/subsystems/nonlinear/switch_steps.hpp"
#include "step/step_engine.hpp"

namespace portwave {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();
/// Violations by this share of all energy there are rounding noise of the given states.
constexpr double kNoise = 1e-18;
/// States that are given are at odds from an energy on that is this share of what the joint binds.
constexpr double kOddsAtStart = 1e-14;
/// Violation of a constraint that steps leave, as a share of energy: if every iteration has converged, and
/// if convergence was not checked.
constexpr double kLeftByConverged = 1e-6, kLeftByOthers = 1e-2;

constexpr const char* kRemedies =
    "Give consistent states; or put a small compliance or resistance between the parts; or "
    "\"start\": \"as_given\" in \"time\" steps them as they are, and they oscillate about the "
    "result of an impulse";
constexpr const char* kRemediesOfRefuse =
    "Give consistent states; or \"start\": \"consistent\" in \"time\" lets the impulse act; or put "
    "a small compliance or resistance between the parts; or \"start\": \"as_given\" steps them as "
    "they are, and they oscillate about the result of an impulse";

void archive_text(StateArchive& archive, std::string& text) {
  std::vector<char> own(text.begin(), text.end());
  archive.vector(own);
  text.assign(own.begin(), own.end());
}

void archive_impulses(StateArchive& archive, Impulses& impulses) {
  std::uint64_t known = impulses.first.size();
  archive.values(impulses.count, impulses.in_all, impulses.at_start);
  archive.count(known, 1);
  archive.expect_counts({impulses.count}, "the number of impulses");
  archive.expect(known <= Impulses::kKept && known <= static_cast<std::uint64_t>(impulses.count),
                 "the impulses");
  impulses.first.resize(static_cast<std::size_t>(known));
  for (Impulse& own : impulses.first) {
    archive.values(own.time_s, own.energies);
    archive_text(archive, own.cause);
    archive_text(archive, own.joint);
    archive_text(archive, own.jumps);
  }
}

}  // namespace

namespace {

/// An input that opens or closes an ideal switch, as the step from now on sees it: as a whole, or, where steps
/// end at jumps, just after its beginning. NaN, which opens it, if a callback fails: the step reports
/// that.
double input_of_step(StepEngine& engine, const StepperOptions& options, double step_s, int part,
                     int input) {
  const Signal& signal = engine.system().parts()[at(part)].inputs[at(input)];
  const double time_s = engine.clock().time_s();
  try {
    if (options.sizes) {
      return signal.at(time_s + StartCheck::kSameInstant * step_s, engine.settings());
    }
    const WaveView* const waves = engine.waves();
    const double lag_s = waves != nullptr ? waves->switch_times(part).lag_s : 0.0;
    const double share = closed_share(signal, time_s, step_s, engine.settings());
    return closes_in_step(share, lag_s / step_s) ? 1.0 : 0.0;
  } catch (const std::exception&) {
    return std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace

std::unique_ptr<StartCheck> StartCheck::made(StepEngine& engine, const StepperOptions& options) {
  const auto state = [&engine](int part) -> std::span<const double> {
    if (engine.clock().steps() > 0) return engine.state(part);
    return engine.system().parts()[at(part)].initial_state;
  };
  const auto input = [&](int part, int number) {
    return input_of_step(engine, options, options.step_s, part, number);
  };
  StateConstraints constraints(engine.system(), state, input);
  if (constraints.empty() && !constraints.may_change() && !has_jumping_rate(engine.system())) {
    return nullptr;
  }
  return std::make_unique<StartCheck>(engine, options, std::move(constraints));
}

StartCheck::StartCheck(StepEngine& engine, const StepperOptions& options,
                       StateConstraints constraints)
    : engine_(engine),
      options_(options),
      constraints_(std::move(constraints)),
      coming_s_(options.step_s) {
  begin_sources();
}

void StartCheck::begin_sources() {
  sources_.clear();
  has_settable_ = has_jumping_ = false;
  for (const StateConstraints::Source& own : constraints_.sources()) {
    const Signal& signal = engine_.system().parts()[at(own.part)].inputs[at(own.input)];
    Source source;
    source.part = own.part;
    source.input = own.input;
    source.is_settable = signal.is_settable();
    const double time_s = engine_.clock().time_s();
    source.held = value(source, time_s);
    source.amplitude = std::isfinite(source.held) ? std::abs(source.held) : 0.0;
    if (!source.is_settable) {
      const bool is_constant =
          std::isfinite(source.held) && signal.digest() == Signal::constant(source.held).digest();
      source.may_jump = !is_constant && signal.highest_frequency_Hz() == 0.0;
      // The largest value for some time: a sine begins at rounding as well as at 0.
      for (int k = -2; k < 12 && !is_constant && !signal.is_callback(); ++k) {
        const double own_s = std::ldexp(options_.step_s, k) * 1.1;
        const double there = std::abs(value(source, time_s + own_s));
        if (std::isfinite(there)) source.amplitude = std::max(source.amplitude, there);
      }
    }
    has_settable_ = has_settable_ || source.is_settable;
    has_jumping_ = has_jumping_ || source.may_jump;
    sources_.push_back(source);
  }
  displacements_ = displacements_of(engine_.system());
}

/// NaN if a callback fails, which the step that samples it reports: no comparison holds with that.
double StartCheck::value(int part, int input, double time_s) const {
  try {
    return engine_.system().parts()[at(part)].inputs[at(input)].at(time_s, engine_.settings());
  } catch (const std::exception&) {
    return std::numeric_limits<double>::quiet_NaN();
  }
}

StateInstant StartCheck::now(double time_s) const {
  return {.state = [this](int part) -> std::span<const double> {
            if (are_set_ || engine_.clock().steps() > 0) return engine_.state(part);
            return engine_.system().parts()[at(part)].initial_state;
          },
          .input = [this, time_s](int part, int input) { return value(part, input, time_s); }};
}

double StartCheck::largest_energy_J(int island) const {
  double sum = 0.0;
  const System& system = engine_.system();
  const StateInstant here = now(engine_.clock().time_s());
  std::vector<double> z;
  for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
    const Subsystem* const physics = system.parts()[at(i)].port_hamiltonian();
    if (physics == nullptr || (island >= 0 && system.island_of_part(i) != island)) continue;
    const std::span<const double> x = here.state(i);
    z.assign(x.size(), 0.0);
    physics->gradient(x.data(), z.data());
    for (std::size_t k = 0; k < x.size(); ++k) sum += 0.5 * std::abs(z[k] * x[k]);
  }
  const bool is_all = island < 0 || system.island_count() == 1;
  return is_all && engine_.keeps_ledger() ? std::max(sum, engine_.energy().max_J) : sum;
}

/// Whether it is more than noise.
bool StartCheck::counts(const StateConstraints::Odds& odds) const {
  if (!odds.is_consistent) return true;
  const int island = engine_.system().island_of_part(constraints_.part(odds.violated.front()));
  return std::abs(odds.impulse_J) > kNoise * largest_energy_J(island);
}

std::string StartCheck::text(const StateConstraints::Odds& odds, const StateInstant& at_it) const {
  const int worst = odds.violated.front();
  std::string out =
      fmt::format("{}: {}", constraints_.joints(worst), constraints_.values(worst, at_it));
  if (const std::size_t more = odds.violated.size() - 1; more > 0) {
    out += fmt::format(" (and {} more joint{} that hang{} together with it)", more,
                       more == 1 ? "" : "s", more == 1 ? "s" : "");
  }
  return out;
}

void StartCheck::treat(const StateConstraints::Odds& odds, const StateInstant& at_it,
                       const Occasion& occasion) {
  if (options_.start == Start::as_given || constraints_.is_without_domain(odds)) {
    note(odds, at_it);
  } else if (options_.start == Start::consistent && odds.is_consistent && odds.is_passive &&
             engine_.can_jump()) {
    let_jump(odds, occasion);
  } else {
    refuse(odds, at_it, occasion.before);
  }
}

void StartCheck::note(const StateConstraints::Odds& odds, const StateInstant& at_it) {
  const std::int64_t step = engine_.clock().steps();
  if (noted_in_ == step) return;
  noted_in_ = step;
  if (notes_.count++ == 0) {
    notes_.first_s = engine_.clock().time_s();
    notes_.first = text(odds, at_it);
  }
}

void StartCheck::let_jump(const StateConstraints::Odds& odds, const Occasion& occasion) {
  Impulse own{.time_s = occasion.time_s,
              .cause = occasion.cause,
              .joint = constraints_.joints(odds.violated.front()),
              .jumps = constraints_.jumps(odds),
              .energies = {}};
  for (const StateConstraints::PartImpulse& part : odds.parts) {
    own.energies.add({part.change_J, part.supplied_J, part.impact_J});
  }
  engine_.jump(odds.parts, is_beginning_);
  are_set_ = true;
  impulses_.in_all.add(own.energies);
  if (is_beginning_) impulses_.at_start.add(own.energies);
  if (++impulses_.count <= static_cast<std::int64_t>(Impulses::kKept)) {
    impulses_.first.push_back(std::move(own));
  }
}

void StartCheck::refuse(const StateConstraints::Odds& odds, const StateInstant& at_it,
                        const std::string& before) const {
  std::string what = fmt::format("{}states are at odds at {}.\n", before, text(odds, at_it));
  if (odds.is_consistent) {
    what += fmt::format("In physics an impulse would act: {}", constraints_.jumps(odds));
    what += fmt::format("; it would take {:.4g} J", odds.impulse_J);
    if (const double supplied_J = odds.change_J + odds.impulse_J;
        supplied_J > 1e-9 * odds.energy_J) {
      what += fmt::format(", and sources would supply {:.4g} J", supplied_J);
    }
    what += ".\n";
    if (!odds.is_passive) what += "It would create energy: what is stored there is not convex.\n";
    if (!engine_.can_jump()) what += "In slices, and without waves, no impulse acts.\n";
  } else {
    what += "No states are consistent: the prescribed values contradict one another.\n";
  }
  what += options_.start == Start::refuse ? kRemediesOfRefuse : kRemedies;
  const int part = constraints_.part(odds.violated.front());
  if (engine_.clock().steps() == 0 && before.empty()) {
    throw ConfigError(fmt::format("/subsystems/{}/initial_state", part), std::move(what));
  }
  throw StepError::of_odds(engine_.system().parts()[at(part)].name, engine_.clock().steps(), what);
}

void StartCheck::begin() {
  const StateInstant start = now(engine_.clock().time_s());
  std::vector<double> amplitude;
  for (const Source& source : sources_) amplitude.push_back(source.amplitude);
  Issues issues;
  is_beginning_ = true;
  for (const StateConstraints::Odds& odds : constraints_.odds(start, kOddsAtStart, amplitude)) {
    if (!counts(odds)) continue;
    try {
      treat(odds, start, {"the start", "", engine_.clock().time_s()});
    } catch (const ConfigError& error) {
      append(issues, "", error.issues());
    }
  }
  is_beginning_ = false;
  throw_if_any(std::move(issues));
}

double StartCheck::tolerated_share() const {
  const bool converges =
      has_tolerance(engine_.method().method) && engine_.iterations().not_converged == 0;
  return converges ? kLeftByConverged : kLeftByOthers;
}

void StartCheck::part_changes(int part) {
  left_.assign(at(constraints_.size()), 0.0);
  const StateInstant here = now(engine_.clock().time_s());
  for (int i = 0; constraints_.ties(part) && i < constraints_.size(); ++i) {
    left_[at(i)] = std::abs(constraints_.residual(i, here).value);
  }
}

double StartCheck::before_step(double step_s) {
  forget_jumps_within();
  coming_s_ = step_s;
  double end_s = displacements_.empty() ? kNoLimit : look_at_displacements(step_s);
  refresh();
  if (constraints_.may_change()) refuse_contradictions(step_s);
  if (are_joints_new_ || has_changed_) {
    // The remainder of a resolved decay is no impulse.
    look_at_change(are_joints_new_ ? 0.0 : kOddsShare * largest_energy_J());
  }
  are_joints_new_ = has_changed_ = false;
  if (is_due_) look(tolerated_share());
  is_due_ = false;
  if (has_settable_) look_at_held();
  if (!has_jumping_) return end_s;
  const double time_s = engine_.clock().time_s();
  const bool is_start = engine_.clock().steps() == 0;
  const double from_s = is_start ? time_s : time_s - kSameInstant * step_s;
  const double to_s = time_s + (1.0 - kSameInstant) * step_s;
  for (const Source& source : sources_) {
    refuse_displacement_jump(source, time_s - kSameInstant * step_s, to_s);
  }
  std::vector<SourceJump> within;
  std::int64_t at_once = 0;
  for (int i = 0; i < static_cast<int>(sources_.size()); ++i) {
    if (!sources_[at(i)].may_jump) continue;
    for (const SourceJump& jump : jumps_in(i, from_s, to_s)) {
      const double same = options_.sizes ? kSameInstant : kSameInstantOfJump;
      const bool is_later = jump.time_s > time_s + same * step_s;
      if (is_later && options_.sizes) {
        end_s = std::min(end_s, jump.time_s);
      } else if (is_later && options_.start == Start::consistent && engine_.can_jump() &&
                 !is_without_domain(jump)) {
        within.push_back(jump);
      } else {
        tell_jump(jump, jump.after);
        ++at_once;
      }
    }
  }
  if (!options_.sizes) note_squares(step_s, within, at_once);
  if (!within.empty()) jump_within(std::move(within), step_s);
  return end_s;
}

bool StartCheck::is_without_domain(const SourceJump& jump) const {
  const int violated[] = {constraints_.sources()[at(jump.source)].constraint};
  return constraints_.is_without_domain(constraints_.odds_of(violated, now(jump.time_s)));
}

/// Finds the constraints again if feedthrough depends on states, as after a switch has opened.
void StartCheck::refresh() {
  if (!constraints_.may_change()) return;
  const StateInstant here = now(engine_.clock().time_s());
  const auto input = [this](int part, int number) {
    return input_of_step(engine_, options_, coming_s_, part, number);
  };
  std::string switched = constraints_.switched(input);
  if (switched.empty() && !constraints_.has_changed(here.state)) return;
  changed_ = switched.empty() ? "a part has changed" : std::move(switched);
  constraints_ = StateConstraints(engine_.system(), here.state, input);
  const std::vector<Source> before = std::exchange(sources_, {});
  begin_sources();
  for (Source& own : sources_) {
    const auto same = std::ranges::find_if(before, [&own](const Source& other) {
      return other.part == own.part && other.input == own.input;
    });
    if (same == before.end()) continue;
    // An input that was set in the same instant has jumped all the same.
    if (own.is_settable) own.held = same->held;
    own.seen = same->seen;
  }
  has_changed_ = true;
}

void StartCheck::look_at_change(double least_J) {
  const StateInstant here = now(engine_.clock().time_s());
  // Chosen steps do not end where a joint is off by more than rounding: its rates alternate, however short they are.
  // And steps of one size carry what is left on.
  constexpr double kLeftByJoints = 1e-14;
  const double tolerated = tolerated_share();
  const double share = least_J == 0.0 && tolerated <= kLeftByConverged ? kLeftByJoints : tolerated;
  for (const StateConstraints::Odds& odds : constraints_.odds(here, share)) {
    if (odds.is_consistent && least_J > 0.0 && std::abs(odds.impulse_J) <= least_J) continue;
    treat(odds, here, {changed_, changed_ + ", and ", engine_.clock().time_s()});
  }
}

/// Checks a state that came from outside: it has the error of its steps.
void StartCheck::look(double share) {
  const double time_s = engine_.clock().time_s();
  const double last_s = time_s - engine_.clock().last_step_s();
  const StateInstant here = now(time_s);
  std::vector<double> amplitude, moved(at(constraints_.size()), 0.0);
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const StateConstraints::Source& own = constraints_.sources()[i];
    amplitude.push_back(sources_[i].amplitude);
    if (sources_[i].is_settable) continue;
    moved[at(own.constraint)] +=
        std::abs(own.weight * (value(sources_[i], time_s) - value(sources_[i], last_s)));
  }
  for (StateConstraints::Odds& odds : constraints_.odds(here, share, amplitude)) {
    std::erase_if(odds.violated, [&](int constraint) {
      const double left = at(constraint) < left_.size() ? left_[at(constraint)] : 0.0;
      return std::abs(constraints_.residual(constraint, here).value) <=
             2.0 * (moved[at(constraint)] + left);
    });
    if (odds.violated.empty() || !counts(odds)) continue;
    treat(odds, here, {"states or a part were changed", "its ", time_s});
  }
}

/// Settable inputs are held over a step: every change of one is a jump. That of a signal that is sampled is one
/// at every sample, because what it drives is a staircase.
void StartCheck::look_at_held() {
  const double time_s = engine_.clock().time_s();
  for (int i = 0; i < static_cast<int>(sources_.size()); ++i) {
    Source& source = sources_[at(i)];
    if (!source.is_settable) continue;
    const SourceJump jump{i, time_s, source.held, value(source, time_s)};
    if (jump.after == jump.before) continue;
    source.held = jump.after;
    source.amplitude = std::max(source.amplitude, std::abs(jump.after));
    try {
      tell_jump(jump, jump.after);
    } catch (...) {
      source.held = jump.before;  // until it is taken back
      throw;
    }
  }
}

std::string StartCheck::jump_text(const SourceJump& jump) const {
  const Source& source = sources_[at(jump.source)];
  const Part& part = engine_.system().parts()[at(source.part)];
  const ExternalInput& input = part.component->signature().inputs[at(source.input)];
  const std::string unit = input.unit.empty() ? "" : " " + printable(input.unit);
  return fmt::format("{}.{} jumps from {:.6g} to {:.6g}{}", printable(part.name),
                     printable(input.name), jump.before, jump.after, unit);
}

void StartCheck::archive(StateArchive& archive) {
  refresh();
  archive.values(notes_.count, notes_.first_s, noted_in_, has_changed_, are_joints_new_, is_due_,
                 are_set_);
  archive_text(archive, notes_.first);
  archive_impulses(archive, impulses_);
  archive.values(told_in_, carried_after_);
  for (Source& source : sources_) {
    archive.values(source.held, source.amplitude, source.seen);
  }
  if (!archive.reads()) return;
  archive.expect_counts({notes_.count}, "the number of starts at odds");
  archive.expect(std::isfinite(notes_.first_s) && noted_in_ >= -1, "a start at odds");
  left_.clear();
  // A state reached by a checked run is sound, except for inputs set since.
  is_due_ = is_due_ || (notes_.count > 0 && options_.start != Start::as_given);
}

}  // namespace portwave
