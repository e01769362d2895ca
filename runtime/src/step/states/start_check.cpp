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
/// Violation of a constraint that steps leave, as a share of energy: if every iteration has converged, and
/// if convergence was not checked.
constexpr double kLeftByConverged = 1e-6, kLeftByOthers = 1e-2;
/// The last digits of a step's ends, in steps: a jump there belongs to the step that begins.
constexpr double kSameInstant = 1e-9;
/// The same for the time of a jump in a step of fixed size, which is known to this share of it.
constexpr double kSameInstantOfJump = 1e-7;

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
    if (options.sizes) return signal.at(time_s + kSameInstant * step_s, engine.settings());
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
  if (constraints.empty() && !constraints.may_change()) return nullptr;
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
    if (source.is_settable) {
      source.is_controlled =
          options_.signals != nullptr &&
          std::ranges::any_of(options_.signals->actuators(),
                              [&](const auto& actuator) { return actuator.slot == signal.slot(); });
    } else {
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

double StartCheck::largest_energy_J() const {
  double sum = 0.0;
  const System& system = engine_.system();
  const StateInstant here = now(engine_.clock().time_s());
  std::vector<double> z;
  for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
    const Subsystem* const physics = system.parts()[at(i)].port_hamiltonian();
    if (physics == nullptr) continue;
    const std::span<const double> x = here.state(i);
    z.assign(x.size(), 0.0);
    physics->gradient(x.data(), z.data());
    for (std::size_t k = 0; k < x.size(); ++k) sum += 0.5 * std::abs(z[k] * x[k]);
  }
  return engine_.keeps_ledger() ? std::max(sum, engine_.energy().max_J) : sum;
}

/// Whether it is more than noise.
bool StartCheck::counts(const StateConstraints::Odds& odds) const {
  return !odds.is_consistent || std::abs(odds.impulse_J) > kNoise * largest_energy_J();
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
  if (occasion.goes_on) {
    if (impulses_.count == std::ssize(impulses_.first)) {
      impulses_.first.back().energies.add(own.energies);
    }
    return;
  }
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
  for (const StateConstraints::Odds& odds : constraints_.odds(start, kOddsShare, amplitude)) {
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
  if (!moved_.empty()) {
    moved_.clear();
    engine_.move_jumps(moved_);
  }
  coming_s_ = step_s;
  refresh();
  if (constraints_.may_change()) refuse_contradictions(step_s);
  if (has_changed_) look_at_change();
  has_changed_ = false;
  if (is_due_) look(tolerated_share());
  is_due_ = false;
  if (!in_step_.empty()) look_after_step();
  if (has_settable_) look_at_held();
  if (!has_jumping_) return kNoLimit;
  const double time_s = engine_.clock().time_s();
  const bool is_start = engine_.clock().steps() == 0;
  const double from_s = is_start ? time_s : time_s - kSameInstant * step_s;
  const double to_s = time_s + (1.0 - kSameInstant) * step_s;
  double end_s = kNoLimit;
  for (const Source& source : sources_) {
    refuse_displacement_jump(source, time_s - kSameInstant * step_s, to_s);
  }
  for (int i = 0; i < static_cast<int>(sources_.size()); ++i) {
    if (!sources_[at(i)].may_jump) continue;
    const std::optional<SourceJump> jump = jump_in(i, from_s, to_s);
    if (!jump) continue;
    const double same = options_.sizes ? kSameInstant : kSameInstantOfJump;
    const bool is_later = jump->time_s > time_s + same * step_s;
    if (is_later && options_.sizes) {
      end_s = std::min(end_s, jump->time_s);
    } else if (is_later && options_.start == Start::consistent) {
      jump_in_step(*jump, step_s);
    } else {
      tell_jump(*jump, jump->after);
    }
  }
  if (!moved_.empty()) engine_.move_jumps(moved_);
  return end_s;
}

/// A jump in the first half of a step comes at its beginning, one in the second half at its end. That of a rate
/// stays where it is, because the step must follow the displacement: what it leaves is an impulse after it.
void StartCheck::jump_in_step(const SourceJump& jump, double step_s) {
  const Source& source = sources_[at(jump.source)];
  const double time_s = engine_.clock().time_s(), by = jump.after - jump.before;
  const bool is_rate = engine_.system().parts()[at(source.part)].inputs[at(source.input)].is_rate();
  const bool is_first = !is_rate && jump.time_s <= time_s + 0.5 * step_s;
  const std::int64_t told = impulses_.count;
  if (is_first) tell_jump(jump, value(source, time_s) + by);
  if (!is_rate && engine_.can_jump() && !is_without_domain(jump)) {
    moved_.push_back(
        {source.part, source.input, {jump.time_s, is_first ? by : 0.0, is_first ? 0.0 : -by}});
  }
  in_step_.push_back({engine_.clock().steps(), jump.source, impulses_.count - told, jump.time_s,
                      jump.before, jump.after});
}

bool StartCheck::is_without_domain(const SourceJump& jump) const {
  const int violated[] = {constraints_.sources()[at(jump.source)].constraint};
  return constraints_.is_without_domain(constraints_.odds_of(violated, now(jump.time_s)));
}

void StartCheck::look_after_step() {
  const std::int64_t step = engine_.clock().steps();
  const std::vector<InStep> all = std::exchange(in_step_, {});
  for (const InStep& own : all) {
    // A step that failed is tried again, and its jumps are found again.
    if (own.step >= step || own.source >= std::ssize(sources_)) continue;
    const SourceJump jump{static_cast<int>(own.source), own.time_s, own.before, own.after};
    const StateInstant here = now(engine_.clock().time_s());
    const int violated[] = {constraints_.sources()[at(jump.source)].constraint};
    const StateConstraints::Odds odds = constraints_.odds_of(violated, here);
    if (odds.is_consistent && !counts(odds)) continue;
    treat(odds, here,
          {jump_text(jump), jump_text(jump) + fmt::format(" at {:.9g} s, and ", jump.time_s),
           jump.time_s, own.told > 0});
  }
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
  begin_sources();
  in_step_.clear();  // of other sources
  has_changed_ = true;
}

void StartCheck::look_at_change() {
  const StateInstant here = now(engine_.clock().time_s());
  const double most_J = largest_energy_J();
  for (const StateConstraints::Odds& odds : constraints_.odds(here, tolerated_share())) {
    // The remainder of a resolved decay is no impulse.
    if (odds.is_consistent && std::abs(odds.impulse_J) <= kOddsShare * most_J) continue;
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

/// Settable inputs are held over a step: every change of one is a jump. If signals drive them, at
/// every sample, a change that its neighbours explain is none.
void StartCheck::look_at_held() {
  constexpr double kAlike = 4.0;
  constexpr std::int64_t kPatience = 10;
  const double time_s = engine_.clock().time_s();
  const std::int64_t step = options_.sizes && options_.signals_every_s > 0.0
                                ? std::llround(time_s / options_.signals_every_s)
                                : engine_.clock().steps();
  for (int i = 0; i < static_cast<int>(sources_.size()); ++i) {
    Source& source = sources_[at(i)];
    if (!source.is_settable) continue;
    const double now_it_is = value(source, time_s);
    const double change = now_it_is - source.held;
    SourceJump jump{i, time_s, source.held, now_it_is};
    bool is_jump = change != 0.0;
    if (source.is_controlled) {
      const double last = std::abs(source.change);
      const bool is_over = change == 0.0 && last > 0.0 &&
                           step - source.changed_in > std::max(kPatience, 2 * source.interval);
      is_jump = (change != 0.0 || is_over) && last > 0.0 &&
                last > kAlike * std::max(std::abs(source.change_before), std::abs(change));
      jump.before = source.held - source.change;
      jump.after = source.held;
      if (change != 0.0 || is_over) {
        const std::int64_t gap = step - source.changed_in;
        if (last > 0.0 && change != 0.0) {  // the shortest is that of its samples
          source.interval = source.interval == 0 ? gap : std::min(source.interval, gap);
        }
        source.changed_in = step;
        source.change_before = source.change;
        source.change = change;
      }
    }
    source.held = now_it_is;
    source.amplitude = std::max(source.amplitude, std::abs(now_it_is));
    if (!is_jump) continue;
    try {
      tell_jump(jump, jump.after);
    } catch (...) {
      if (!source.is_controlled) source.held = jump.before;  // until it is taken back
      throw;
    }
  }
}

std::optional<StartCheck::SourceJump> StartCheck::jump_in(int number, double from_s,
                                                          double to_s) const {
  constexpr int kParts = 8, kSteep = 3;
  // Steps that choose their size follow every input without a jump, and end at jumps.
  const int deepest = options_.sizes ? 64 : 24;
  const Source& source = sources_[at(number)];
  const auto at_time = [&](double time_s) { return value(source, time_s); };
  std::array<double, kParts + 1> s{};
  const double width = (to_s - from_s) / kParts;
  for (int i = 0; i <= kParts; ++i) s[at(i)] = at_time(i == kParts ? to_s : from_s + i * width);
  if (std::ranges::all_of(s, [&](double own) { return own == s[0]; })) return std::nullopt;
  if (!std::ranges::all_of(s, [](double own) { return std::isfinite(own); })) return std::nullopt;
  std::array<double, kParts> change{};
  double variation = 0.0;
  for (int i = 0; i < kParts; ++i) {
    change[at(i)] = s[at(i + 1)] - s[at(i)];
    variation += std::abs(change[at(i)]);
  }
  std::array<double, kParts> sorted = change;
  std::ranges::nth_element(sorted, sorted.begin() + kParts / 2);
  double typical = sorted[kParts / 2];
  int place = 0;
  for (int i = 1; i < kParts; ++i) {
    if (std::abs(change[at(i)] - typical) > std::abs(change[at(place)] - typical)) place = i;
  }
  double low_s = from_s + place * width, high_s = place + 1 == kParts ? to_s : low_s + width;
  double low = s[at(place)], high = s[at(place + 1)];
  std::optional<SourceJump> steep;
  for (int level = 1; level <= deepest; ++level) {
    const double mid_s = low_s + 0.5 * (high_s - low_s);
    if (!(mid_s > low_s && mid_s < high_s)) break;
    const double mid = at_time(mid_s);
    typical *= 0.5;
    if (std::abs(mid - low - typical) >= std::abs(high - mid - typical)) {
      high_s = mid_s;
      high = mid;
    } else {
      low_s = mid_s;
      low = mid;
    }
    if (level == kSteep) steep = SourceJump{number, high_s, low, high};
  }
  const auto is_felt = [&](double jump) {
    const StateConstraints::Source& own = constraints_.sources()[at(number)];
    const StateConstraints::Residual there =
        constraints_.residual(own.constraint, now(engine_.clock().time_s()));
    const double size = std::max(there.size, std::abs(own.weight) * source.amplitude);
    const double by = own.weight * jump;
    return by * by > kOddsShare * size * size;
  };
  // A jump keeps its size at any resolution, and so does a change as steep as one.
  const double span_s = to_s - from_s;
  double around = variation + std::abs(at_time(to_s + span_s) - s[kParts]);
  if (engine_.clock().steps() > 0) around += std::abs(s[0] - at_time(from_s - span_s));
  const bool is_steep =
      !options_.sizes && steep && std::abs(steep->after - steep->before) > 0.5 * around;
  if (!is_steep && !(std::abs(high - low) > 1e-7 * source.amplitude)) return std::nullopt;
  if (!is_felt(is_steep ? steep->after - steep->before : high - low)) return std::nullopt;
  // Of a true jump the values beside it; of a steep change those around it.
  const bool is_sharp =
      !is_steep || std::abs(high - low) > 0.5 * std::abs(steep->after - steep->before);
  if (is_sharp) return SourceJump{number, high_s, low, high};
  return SourceJump{number, high_s, steep->before, steep->after};
}

/// `value_after`: that of the source which the impulse brings about.
void StartCheck::tell_jump(const SourceJump& jump, double value_after) {
  const StateConstraints::Source& own = constraints_.sources()[at(jump.source)];
  const Source& source = sources_[at(jump.source)];
  // A held input has its value of now, whenever it jumped.
  const bool is_held = source.is_settable && options_.start == Start::consistent;
  StateInstant there = now(jump.time_s);
  if (!is_held)
    there.input = [this, &source, &jump, value_after](int part, int input) {
      if (part == source.part && input == source.input) return value_after;
      return value(part, input, jump.time_s);
    };
  const StateConstraints::Residual residual = constraints_.residual(own.constraint, there);
  const double by = own.weight * (jump.after - jump.before);
  const double size = std::max(
      residual.size, std::abs(own.weight) * std::max(source.amplitude, std::abs(jump.before)));
  if (!(by * by > kOddsShare * size * size)) return;
  const int violated[] = {own.constraint};
  const StateConstraints::Odds odds = constraints_.odds_of(violated, there);
  if (!counts(odds)) return;
  const std::string text = jump_text(jump);
  treat(odds, there, {text, fmt::format("{} at {:.9g} s, and ", text, jump.time_s), jump.time_s});
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
  archive.values(notes_.count, notes_.first_s, noted_in_, has_changed_, is_due_, are_set_);
  archive_text(archive, notes_.first);
  archive_impulses(archive, impulses_);
  archive.vector(in_step_);
  for (Source& source : sources_) {
    archive.values(source.held, source.amplitude, source.change, source.change_before,
                   source.changed_in, source.interval);
  }
  if (!archive.reads()) return;
  archive.expect_counts({notes_.count}, "the number of starts at odds");
  archive.expect(std::isfinite(notes_.first_s) && noted_in_ >= -1, "a start at odds");
  left_.clear();
  // A state reached by a checked run is sound, except for inputs set since.
  is_due_ = is_due_ || (notes_.count > 0 && options_.start != Start::as_given);
}

}  // namespace portwave
