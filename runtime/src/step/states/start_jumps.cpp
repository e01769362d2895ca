// Sources of rigid joints that jump: where they do, and what steps make of it.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "portwave/subsystems/base/index.hpp"
#include "step/states/start_check.hpp"
#include "step/step_engine.hpp"

namespace portwave {
namespace {

/// Jumps of one input within a step that are told apart.
constexpr std::size_t kMostJumps = 64;
/// Of a steep piece between two knots, in steps.
constexpr double kSteepWidth = 1.0 / 64.0;

}  // namespace

// Where they jump.

bool StartCheck::is_felt(int number, double by) const {
  const StateConstraints::Source& own = constraints_.sources()[at(number)];
  const StateConstraints::Residual there =
      constraints_.residual(own.constraint, now(engine_.clock().time_s()));
  const double size = std::max(there.size, std::abs(own.weight) * sources_[at(number)].amplitude);
  return own.weight * by * own.weight * by > kOddsShare * size * size;
}

/// The largest jump that samples show. For inputs of which nothing is known.
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
    if (level == kSteep) steep = SourceJump{number, high_s, low, high, low_s, true};
  }
  // A jump keeps its size at any resolution, and so does a change as steep as one.
  const double span_s = to_s - from_s;
  double around = variation + std::abs(at_time(to_s + span_s) - s[kParts]);
  if (engine_.clock().steps() > 0) around += std::abs(s[0] - at_time(from_s - span_s));
  const bool is_steep =
      !options_.sizes && steep && std::abs(steep->after - steep->before) > 0.5 * around;
  if (!is_steep && !(std::abs(high - low) > 1e-7 * source.amplitude)) return std::nullopt;
  if (!is_felt(number, is_steep ? steep->after - steep->before : high - low)) return std::nullopt;
  // Of a true jump the values beside it; of a steep change those around it.
  const bool is_sharp =
      !is_steep || std::abs(high - low) > 0.5 * std::abs(steep->after - steep->before);
  if (is_sharp) return SourceJump{number, high_s, low, high, low_s};
  return SourceJump{number, high_s, steep->before, steep->after, low_s, true};
}

/// The knots of a table, and where an expression changes over, in (from_s, to_s].
std::vector<double> StartCheck::known_changes(int number, double from_s, double to_s) const {
  const Source& source = sources_[at(number)];
  const Signal& signal = engine_.system().parts()[at(source.part)].inputs[at(source.input)];
  // Steps that choose their size end at the first one that is felt, which may be now.
  const std::size_t most = options_.sizes ? 2 : kMostJumps;
  std::vector<double> out;
  for (double time_s = from_s; out.size() < most;) {
    time_s = std::min(signal.next_kink(time_s), signal.next_change(time_s, to_s));
    if (!(time_s <= to_s)) break;
    out.push_back(time_s);
  }
  return out;
}

std::optional<StartCheck::SourceJump> StartCheck::known_jump(int number, double time_s,
                                                             double step_s) const {
  const Source& source = sources_[at(number)];
  const double beside_s =
      16.0 * std::numeric_limits<double>::epsilon() * std::max(std::abs(time_s), step_s);
  const SourceJump jump{number, time_s, value(source, time_s - beside_s),
                        value(source, time_s + beside_s), time_s - beside_s};
  const double by = jump.after - jump.before;
  if (!std::isfinite(by) || !(std::abs(by) > 1e-7 * source.amplitude) || !is_felt(number, by)) {
    return std::nullopt;
  }
  return jump;
}

void StartCheck::find_jumps(int number, double from_s, double to_s,
                            std::vector<SourceJump>& out) const {
  if (out.size() >= kMostJumps || !(from_s < to_s)) return;
  const std::optional<SourceJump> jump = jump_in(number, from_s, to_s);
  if (!jump) return;
  out.push_back(*jump);
  if (jump->is_steep) return;  // what is left of it is no other one
  find_jumps(number, from_s, jump->low_s, out);
  find_jumps(number, jump->time_s, to_s, out);
}

/// All of them in (from_s, to_s], in order; if steps choose their size at least the first one after now.
std::vector<StartCheck::SourceJump> StartCheck::jumps_in(int number, double from_s,
                                                         double to_s) const {
  const Source& source = sources_[at(number)];
  const Signal& signal = engine_.system().parts()[at(source.part)].inputs[at(source.input)];
  std::vector<SourceJump> out;
  const double span_s = to_s - from_s;
  const std::vector<double> changes = known_changes(number, from_s, to_s);
  for (const double time_s : changes) {
    if (const auto jump = known_jump(number, time_s, span_s)) out.push_back(*jump);
  }
  if (options_.sizes) {  // which follow every input without a jump
    if (signal.is_callback()) find_jumps(number, from_s, to_s, out);
  } else if (!changes.empty()) {
    add_steep_pieces(number, from_s, to_s, changes, out);
  }
  if (!options_.sizes && out.empty()) find_jumps(number, from_s, to_s, out);
  std::ranges::sort(out, {}, &SourceJump::time_s);
  return out;
}

/// Pieces between two knots that are as steep as jumps.
void StartCheck::add_steep_pieces(int number, double from_s, double to_s,
                                  std::span<const double> changes,
                                  std::vector<SourceJump>& out) const {
  const Source& source = sources_[at(number)];
  const double span_s = to_s - from_s;
  double around = std::abs(value(source, to_s + span_s) - value(source, to_s));
  if (engine_.clock().steps() > 0) {
    around += std::abs(value(source, from_s) - value(source, from_s - span_s));
  }
  for (const SourceJump& jump : out) around += std::abs(jump.after - jump.before);
  std::vector<SourceJump> steep;
  double left_s = from_s;
  for (std::size_t i = 0; i <= changes.size(); ++i) {
    const double right_s = i == changes.size() ? to_s : changes[i];
    const double beside_s = 1e-3 * (right_s - left_s);
    const double left = value(source, left_s + beside_s), right = value(source, right_s - beside_s);
    around += std::abs(right - left);
    const bool is_narrow = i > 0 && i < changes.size() && right_s - left_s <= kSteepWidth * span_s;
    if (is_narrow) steep.push_back({number, right_s, left, right, left_s, true});
    left_s = right_s;
  }
  for (const SourceJump& piece : steep) {
    const double by = piece.after - piece.before;
    if (std::abs(by) > 0.2 * around && is_felt(number, by)) out.push_back(piece);
  }
}

// What steps make of it.

/// Of an input, without what jumps at that time.
double StartCheck::just_before(int part, int input, double time_s, double step_s) const {
  const Signal& signal = engine_.system().parts()[at(part)].inputs[at(input)];
  const double there = value(part, input, time_s);
  if (signal.is_settable()) return there;
  const double before = value(part, input, time_s - kSameInstant * step_s);
  const double size = std::max(std::abs(there), std::abs(before));
  return std::abs(there - before) > std::sqrt(kOddsShare) * size ? before : there;
}

/// The states go to where joints hold, as sources lead them there in a time without length, but for no jump:
/// nothing is lost, and what they store more is supplied.
void StartCheck::carry(const StateInstant& to) {
  std::vector<int> done;
  for (const SourceJump& jump : within_) {
    const StateConstraints::Source& source = constraints_.sources()[at(jump.source)];
    if (std::ranges::find(done, source.constraint) != done.end()) continue;
    done.push_back(source.constraint);
    const int violated[] = {source.constraint};
    StateConstraints::Odds odds = constraints_.odds_of(violated, to);
    if (!odds.is_consistent || !counts(odds)) continue;
    ImpulseEnergies energies;
    for (StateConstraints::PartImpulse& part : odds.parts) {
      energies.supplied_J += part.supplied_J - std::exchange(part.impact_J, 0.0);
      energies.changed_J += part.change_J;
      part.supplied_J = 0.0;
    }
    // By the source: parts receive what they store more through their ports.
    auto supplier =
        std::ranges::find(odds.parts, source.part, &StateConstraints::PartImpulse::part);
    if (supplier == odds.parts.end()) {
      supplier = odds.parts.insert(odds.parts.end(), {.part = source.part, .state = {}});
    }
    supplier->supplied_J = energies.supplied_J;
    engine_.jump(odds.parts, /*is_start=*/false);
    are_set_ = true;
    carried_.add(energies);
  }
}

/// A step that failed has left the states at its mean.
void StartCheck::forget_jumps_within() {
  if (!moved_.empty()) {
    moved_.clear();
    engine_.move_jumps(moved_);
  }
  if (within_.empty()) return;
  const double time_s = engine_.clock().time_s();
  if (told_in_ == engine_.clock().steps()) carry(now(time_s));
  within_.clear();
}

void StartCheck::jump_within(std::vector<SourceJump> jumps, double step_s) {
  const double begin_s = engine_.clock().time_s();
  std::ranges::stable_sort(jumps, {}, &SourceJump::time_s);
  within_ = std::move(jumps);
  const bool is_told = told_in_ == engine_.clock().steps();  // the step failed, and is tried again
  told_in_ = engine_.clock().steps();
  for (std::size_t first = 0, last = 0; first < within_.size() && !is_told; first = last) {
    const double time_s = within_[first].time_s;
    while (last < within_.size() && within_[last].time_s - time_s <= kSameInstantOfJump * step_s) {
      ++last;
    }
    const auto same = std::span(within_).subspan(first, last - first);
    const auto beside = [&](bool is_after) {
      StateInstant out = now(time_s);
      out.input = [this, time_s, same, is_after](int part, int input) {
        for (const SourceJump& own : same) {
          const Source& source = sources_[at(own.source)];
          if (source.part != part || source.input != input) continue;
          return is_after ? own.after : own.before;
        }
        return value(part, input, time_s);
      };
      return out;
    };
    carry(beside(false));
    for (const SourceJump& own : same) tell_jump(own, beside(true));
  }
  for (const SourceJump& own : within_) {
    const Source& source = sources_[at(own.source)];
    const bool is_known = std::ranges::any_of(moved_, [&](const MovedInputJump& other) {
      return other.part == source.part && other.input == source.input &&
             std::abs(other.jump.time_s - own.time_s) <= kSameInstantOfJump * step_s;
    });
    if (is_known) continue;  // as a source of another constraint
    const double by = own.after - own.before;
    const double mean = by * (begin_s + step_s - own.time_s) / step_s;
    moved_.push_back({source.part, source.input, {own.time_s, mean, mean - by}});
  }
  StateInstant mean = now(begin_s);
  // After what jumps at the beginning, but for the rounding of times.
  mean.input = [this, begin_s, step_s](int part, int input) {
    double add = 0.0;
    bool has_jumps = false;
    for (const MovedInputJump& own : moved_) {
      if (own.part != part || own.input != input) continue;
      add += own.jump.before;
      has_jumps = true;
    }
    return add + value(part, input, has_jumps ? begin_s + kSameInstantOfJump * step_s : begin_s);
  };
  carry(mean);
  engine_.move_jumps(moved_);
}

void StartCheck::after_step(StepReport& report) {
  const bool has_account = engine_.keeps_ledger();
  // The ledger of this step has what was carried after the one before, which had it, too.
  const ImpulseEnergies before = std::exchange(carried_after_, {});
  if (has_account) {
    report.energy.changed_J -= before.changed_J;
    report.energy.supplied_J -= before.supplied_J;
  }
  if (within_.empty()) return;
  const double end_s = engine_.clock().time_s(), step_s = engine_.clock().last_step_s();
  StateInstant end = now(end_s);
  end.input = [this, end_s, step_s](int part, int input) {
    return just_before(part, input, end_s, step_s);
  };
  carried_ = {};
  carry(end);
  within_.clear();
  carried_after_ = carried_;
  if (!has_account) return;
  report.energy.changed_J += carried_.changed_J;
  report.energy.stored_J += carried_.changed_J;
  report.energy.supplied_J += carried_.supplied_J;
}

/// ∫u² over the steps so far, and the share of it that steps with jumps do not see.
/// `at_once`: jumps with which the step begins.
void StartCheck::note_squares(double step_s, std::span<const SourceJump> within,
                              std::int64_t at_once) {
  const double begin_s = engine_.clock().time_s();
  for (int i = 0; i < static_cast<int>(sources_.size()); ++i) {
    Source& source = sources_[at(i)];
    if (!source.may_jump) continue;
    double from_s = begin_s, left = value(source, begin_s), mean = 0.0, square = 0.0;
    std::int64_t jumps = 0;
    const auto add = [&](double to_s, double right) {
      const double u = 0.5 * (left + right), share = (to_s - from_s) / step_s;
      mean += share * u;
      square += share * u * u;
      from_s = to_s;
    };
    for (const SourceJump& jump : within) {
      if (jump.source != i) continue;
      add(jump.time_s, jump.before);
      left = jump.after;
      ++jumps;
    }
    if (jumps == 0) left = value(source, begin_s + 0.5 * step_s);
    add(begin_s + step_s, left);
    if (!std::isfinite(square)) continue;
    source.seen.square += step_s * square;
    if (jumps == 0) continue;
    source.seen.hidden += step_s * std::max(square - mean * mean, 0.0);
    if (source.seen.jumps == 0) source.seen.step = engine_.clock().steps();
    source.seen.jumps += jumps + at_once;
  }
}

Resolution StartCheck::pulses() const {
  constexpr double kShown = 0.1;
  Resolution out;
  for (const Source& source : sources_) {
    const double share = source.seen.hidden / source.seen.square;
    if (source.seen.jumps < 2 || !(share > std::max(kShown, out.share))) continue;
    out.kind = Resolution::Kind::pulses;
    out.share = share;
    out.step = source.seen.step;
    out.part = source.part;
  }
  return out;
}

/// `value_after`: that of the source which the impulse brings about.
void StartCheck::tell_jump(const SourceJump& jump, double value_after) {
  const Source& source = sources_[at(jump.source)];
  StateInstant there = now(jump.time_s);
  // A held input has its value of now, whenever it jumped.
  if (!source.is_settable || options_.start != Start::consistent) {
    there.input = [this, &source, &jump, value_after](int part, int input) {
      if (part == source.part && input == source.input) return value_after;
      return value(part, input, jump.time_s);
    };
  }
  tell_jump(jump, there);
}

void StartCheck::tell_jump(const SourceJump& jump, const StateInstant& there) {
  const StateConstraints::Source& own = constraints_.sources()[at(jump.source)];
  const Source& source = sources_[at(jump.source)];
  const StateConstraints::Residual residual = constraints_.residual(own.constraint, there);
  const double by = own.weight * (jump.after - jump.before);
  const double size = std::max(
      residual.size, std::abs(own.weight) * std::max(source.amplitude, std::abs(jump.before)));
  // Steps keep what they are left of small changes, too, and those of a staircase add up.
  const bool is_held = source.is_settable && options_.start == Start::consistent;
  if (!is_held && !(by * by > kOddsShare * size * size)) return;
  const int violated[] = {own.constraint};
  const StateConstraints::Odds odds = constraints_.odds_of(violated, there);
  if (!counts(odds)) return;
  const std::string text = jump_text(jump);
  treat(odds, there, {text, fmt::format("{} at {:.9g} s, and ", text, jump.time_s), jump.time_s});
}

}  // namespace portwave
