#include "step/change_over.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "portwave/coupling/impedance/integrator_choice.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/base/state_archive.hpp"

namespace portwave {
namespace {

/// Changes of two steps, or their differences, that differ by less than this share of the larger one belong to one
/// smooth motion: where the one turns, the other is large.
constexpr double kAlike = 0.25;
/// Changes by less than this share of the largest output are no motion.
constexpr double kStill = 1e-6;
/// A decay that storages share, of which less than this is left beside their motion, is over.
constexpr double kOver = 2e-4;
/// Shares of less than kThrownShare: what waves leave open is below the first; a swing of hω ≤ ½ that a stiff
/// resistance follows moves it by less than the second over hλ.
constexpr double kSeenShare = 1e-5, kSwing = 0.5;
/// The mean of what changes its sign and keeps its size, beside half its change: hλ > 8 leaves less.
constexpr double kAcross = 0.25;

}  // namespace

ChangeOver::Looked::Looked(OneSidedDecays own) : decays(std::move(own)) {
  direct.resize(decays.resistances().size());
  h_lambda.resize(decays.storages().size());
}

ChangeOver::ChangeOver(const StagedRun& run, double step_s)
    : looked_(run.one_sided_decays(step_s)),
      shared_(run.shared_decays(step_s)),
      substeps_(run.decays_of_substeps(step_s)) {
  shared_change_.resize(shared_.storages().size());
  shared_before_.resize(shared_.storages().size());
  shared_largest_.resize(shared_.storages().size());
  substeps_seen_.resize(substeps_.decays.storages().size());
  const auto takes_substeps = [&](int part) { return run.given().parts()[at(part)].substeps > 1; };
  for (const OneSidedDecays::Storage& own : substeps_.decays.storages()) {
    const std::vector<int>& set = substeps_.decays.sets()[at(own.set)];
    has_substeps_.push_back(std::ranges::any_of(set, takes_substeps) ? 1 : 0);
  }
  const std::size_t storages = looked_.decays.storages().size();
  seen_.resize(storages);
  change_.resize(storages);
  const std::span<const Part> parts = run.stepped().parts();
  states_.resize(parts.size(), kNever);
  needs_.resize(parts.size());
  std::size_t states = 0;
  for (const Part& part : parts) {
    states = std::max(states, part.component->signature().states.size());
  }
  x_.resize(states);
  for (const auto sets : {looked_.decays.sets(), shared_.sets()}) {
    for (const std::vector<int>& set : sets) parts_.insert(parts_.end(), set.begin(), set.end());
  }
  std::ranges::sort(parts_);
  const auto repeated = std::ranges::unique(parts_);
  parts_.erase(repeated.begin(), repeated.end());
  found_.reserve(parts_.size());
}

double ChangeOver::output(const WaveDiscretisation& waves, OneSidedDecays& decays,
                          std::size_t storage, const double* record) {
  waves.get_state(decays.storages()[storage].part, record, x_.data());
  return decays.output(storage, x_.data());
}

void ChangeOver::find(const Attempt& step, Looked& own_decays) {
  const WaveDiscretisation& waves = step.waves;
  OneSidedDecays& decays = own_decays.decays;
  decays.set_step(waves.step_s());
  const std::span<const OneSidedDecays::Resistance> resistances = decays.resistances();
  for (std::size_t i = 0; i < resistances.size(); ++i) {
    const OneSidedDecays::Resistance& own = resistances[i];
    if (own.with == OneSidedDecays::Change::state) {
      waves.get_state(own.part, step.next, x_.data());
      own_decays.direct[i] = decays.direct(i, 0.0, x_.data());
      continue;
    }
    const std::size_t wave = at(waves.wave_of_port(own.port));
    const EffortFlow values = WaveTransform(waves.impedance()[wave], waves.step_s())
                                  .to_effort_flow({step.a[wave], step.b[wave]});
    const double input = own.causality == Causality::effort_in ? values.effort : values.flow;
    own_decays.direct[i] = decays.direct(i, input, nullptr);
  }
  decays.find(own_decays.direct, own_decays.h_lambda, [&](int part) {
    waves.get_state(part, step.next, x_.data());
    return x_.data();
  });
}

void ChangeOver::look(const Attempt& step) {
  if (seen_.empty()) return;
  find(step, looked_);
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    if (!(looked_.h_lambda[i] > resolved_decay(1))) continue;
    const double before = output(step.waves, looked_.decays, i, step.record);
    const double after = output(step.waves, looked_.decays, i, step.next);
    change_[i] = after - before;
    seen_[i].largest = std::max({seen_[i].largest, std::abs(before), std::abs(after)});
  }
}

void ChangeOver::look_at_shared(const Attempt& step) {
  shared_step_s_ = step.waves.step_s();
  for (std::size_t i = 0; i < shared_change_.size(); ++i) {
    const int part = shared_.storages()[i].part;
    step.waves.get_state(part, step.record, x_.data());
    const double before = shared_.output(i, x_.data());
    step.waves.get_state(part, step.next, x_.data());
    const double after = shared_.output(i, x_.data());
    shared_change_[i] = 0.5 * (after - before);
    shared_before_[i] = before;
    shared_largest_[i] = std::max({shared_largest_[i], std::abs(before), std::abs(after)});
  }
}

/// By which share of its motion what a loss takes from was thrown across its rest; 0: the step resolves that decay, or
/// what moved so is the motion of something else.
double ChangeOver::shared_share(std::size_t loss) const {
  const double h_lambda = shared_step_s_ * shared_.losses()[loss].rate;
  if (!(h_lambda > shared_decay(1))) return 0.0;
  const double share = shared_.share(loss, shared_change_, shared_largest_);
  if (share > kThrownShare) return share;
  return share > std::max(kSeenShare, kSwing / h_lambda) && is_thrown_across(loss) ? share : 0.0;
}

/// Little beside a fast common motion, as the speed of two wagons of a train against one another: whether a difference
/// changed its sign and kept its size, and bringing it to rest takes less of what the storages do in common than of it.
bool ChangeOver::is_thrown_across(std::size_t loss) const {
  const SharedDecays::Loss& own = shared_.losses()[loss];
  // Of one direction, ddᵀ.
  Eigen::Index most = 0;
  const double largest = own.losses.diagonal().maxCoeff(&most);
  const double root = std::sqrt(largest);
  if (!(root > 0.0)) return false;
  const auto d = [&](Eigen::Index k) { return own.losses(k, most) / root; };
  double trace = 0.0;
  for (Eigen::Index k = 0; k < own.losses.rows(); ++k) trace += d(k) * d(k);
  constexpr double kOneDirection = 1e-9;
  if (own.losses.trace() > (1.0 + kOneDirection) * trace) return false;
  double before = 0.0, change = 0.0, weight = 0.0;
  const auto each = [&](const auto& take) {
    for (std::size_t k = 0; k < own.storages.size(); ++k) {
      const std::size_t i = at(own.storages[k]);
      take(i, d(static_cast<Eigen::Index>(k)), shared_.storages()[i].stiffness);
    }
  };
  each([&](std::size_t i, double c, double stiffness) {
    before += c * shared_before_[i];
    change += c * shared_change_[i];
    weight += c * c * stiffness;
  });
  if (!(weight > 0.0) || std::abs(before + change) > kAcross * std::abs(change)) return false;
  double common = 0.0;  // energies of half the changes, twice
  each([&](std::size_t i, double c, double stiffness) {
    const double rest = shared_change_[i] - stiffness * c * change / weight;
    if (stiffness > 0.0) common += rest * rest / stiffness;
  });
  return change * change / weight > 4.0 * common;
}

/// A part with substeps sees the mean of what is beside it, and swings about that. Nothing damps it, so it is told: a
/// change in a stiff step that the next one does not go on with.
void ChangeOver::look_at_substeps(const Attempt& step) {
  if (substeps_seen_.empty()) return;
  find(step, substeps_);
  for (std::size_t i = 0; i < substeps_seen_.size(); ++i) {
    if (has_substeps_[i] == 0) continue;
    const double before = output(step.waves, substeps_.decays, i, step.record);
    const double after = output(step.waves, substeps_.decays, i, step.next);
    SubstepsSeen& own = substeps_seen_[i];
    own.largest = std::max({own.largest, std::abs(before), std::abs(after)});
    const double change = after - before;
    const double apart = std::abs(change - own.change);
    if (apart > kAlike * std::max(std::abs(change), std::abs(own.change)) &&
        std::abs(own.change) > own.thrown) {
      own.thrown = std::abs(own.change);
      own.h_lambda = own.stiff;
      own.step = looked_steps_ - 1;
    }
    const double h_lambda = substeps_.h_lambda[i];
    own.stiff = h_lambda > resolved_decay(1) ? h_lambda : 0.0;
    own.change = own.stiff > 0.0 ? change : 0.0;
  }
}

Resolution ChangeOver::thrown() const {
  constexpr double kThrown = 0.08;
  Resolution out;
  for (std::size_t i = 0; i < substeps_seen_.size(); ++i) {
    const SubstepsSeen& own = substeps_seen_[i];
    const double share = own.thrown > 0.0 ? own.thrown / own.largest : 0.0;
    if (!(share > std::max(kThrown, out.share))) continue;
    out.kind = Resolution::Kind::jumps;
    out.share = share;
    out.h_lambda = own.h_lambda;
    out.step = own.step;
    out.part = substeps_.decays.storages()[i].part;
  }
  return out;
}

/// Of a storage that was stiff in the step before, too.
bool ChangeOver::is_smooth(std::size_t storage) const {
  const Seen& own = seen_[storage];
  const double change = change_[storage], bend = change - own.change;
  const auto are_alike = [](double one, double other) {
    return std::abs(one - other) <= kAlike * std::max(std::abs(one), std::abs(other));
  };
  const bool is_still = std::max(std::abs(change), std::abs(own.change)) <= kStill * own.largest;
  return is_still || are_alike(change, own.change) || are_alike(bend, own.bend);
}

std::span<const int> ChangeOver::to_damp(const Attempt& step) {
  look(step);
  look_at_shared(step);
  found_.clear();
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    if (!(looked_.h_lambda[i] > resolved_decay(1))) continue;
    const bool is_still = std::abs(change_[i]) <= kStill * seen_[i].largest;
    if (is_still || (seen_[i].was_stiff && is_smooth(i))) continue;
    for (const int part : looked_.decays.sets()[at(looked_.decays.storages()[i].set)]) {
      if (!is_damped(part)) found_.push_back(part);
    }
  }
  for (std::size_t i = 0; i < shared_.losses().size(); ++i) {
    if (shared_share(i) == 0.0) continue;
    for (const int part : shared_.sets()[at(shared_.losses()[i].set)]) {
      if (!is_damped(part)) found_.push_back(part);
    }
  }
  std::ranges::sort(found_);
  const auto repeated = std::ranges::unique(found_);
  found_.erase(repeated.begin(), repeated.end());
  return found_;
}

std::span<const int> ChangeOver::to_leave(const Attempt& step) {
  look(step);
  look_at_shared(step);
  look_at_substeps(step);
  ++looked_steps_;
  if (damped_parts_ > 0) ++steps_;
  for (const int part : parts_) needs_[at(part)] = 0;
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    const bool is_stiff = looked_.h_lambda[i] > resolved_decay(1);
    const bool is_settled = is_stiff && seen_[i].was_stiff && is_smooth(i);
    if (is_stiff && !is_settled) {
      for (const int part : looked_.decays.sets()[at(looked_.decays.storages()[i].set)])
        needs_[at(part)] = 1;
    }
    seen_[i].bend = is_stiff ? change_[i] - seen_[i].change : 0.0;
    seen_[i].change = is_stiff ? change_[i] : 0.0;
    seen_[i].was_stiff = is_stiff;
  }
  for (std::size_t i = 0; i < shared_.losses().size(); ++i) {
    const SharedDecays::Loss& loss = shared_.losses()[i];
    if (2.0 * shared_share(i) <= kOver * (1.0 + shared_step_s_ * loss.rate)) continue;
    for (const int part : shared_.sets()[at(loss.set)]) needs_[at(part)] = 1;
  }
  found_.clear();
  for (const int part : parts_) {
    if (is_damped(part) && needs_[at(part)] == 0) found_.push_back(part);
  }
  return found_;
}

bool ChangeOver::engage() {
  if (is_engaged_) return false;
  for (const int part : parts_) states_[at(part)] = kReady;
  is_engaged_ = true;
  return true;
}

void ChangeOver::note(int part, bool damped) {
  if (is_damped(part) == damped) return;
  states_[at(part)] = damped ? kDamped : kWas;
  damped_parts_ += damped ? 1 : -1;
}

void ChangeOver::forget() {
  for (Seen& own : seen_) own = {0.0, 0.0, own.largest, false};
  for (SubstepsSeen& own : substeps_seen_) own.change = own.stiff = 0.0;
}

void ChangeOver::component_changed(int part) {
  looked_.decays.component_changed(part);
  shared_.component_changed(part);
  substeps_.decays.component_changed(part);
}

std::string ChangeOver::text(const System& system, std::int64_t steps) const {
  int count = 0, first = -1;
  for (const int part : parts_) {
    if (!was_damped(part)) continue;
    if (first < 0) first = part;
    ++count;
  }
  if (first < 0) return {};
  std::string names = in_quotes(system.parts()[at(first)].name);
  if (count > 1) names += fmt::format(" and {} other{}", count - 1, count > 2 ? "s" : "");
  const bool has_parameters = std::ranges::any_of(looked_.decays.resistances(),
                                                  [](const auto& own) { return own.is_exchanged; });
  std::string why = has_parameters            ? "parameters or one-sided parts changed"
                    : !looked_.decays.empty() ? "one-sided parts changed over"
                                              : "";
  if (!shared_.empty()) {
    why += why.empty() ? "" : ", or ";
    why += "stiff resistances brought parts together";
  }
  return fmt::format("{} damped in {} of {} steps, in which {}", names, std::min(steps_, steps),
                     steps, why);
}

ChangeOver::Kept ChangeOver::kept() const {
  Kept out;
  for (const int part : parts_) out.states.push_back(state(part));
  for (const Seen& own : seen_) {
    out.changes.push_back(own.change);
    out.bends.push_back(own.bend);
    out.largest.push_back(own.largest);
    out.was_stiff.push_back(own.was_stiff ? 1 : 0);
  }
  for (const double largest : shared_largest_) {
    out.changes.push_back(0.0);
    out.bends.push_back(0.0);
    out.largest.push_back(largest);
    out.was_stiff.push_back(0);
  }
  out.steps = steps_;
  out.looked_steps = looked_steps_;
  out.substeps = substeps_seen_;
  return out;
}

bool ChangeOver::fits(const Kept& other) const {
  return other.states.size() == parts_.size() &&
         other.changes.size() == seen_.size() + shared_largest_.size() &&
         other.substeps.size() == substeps_seen_.size();
}

void ChangeOver::take(const Kept& other) {
  damped_parts_ = 0;
  is_engaged_ = std::ranges::any_of(other.states, [](char own) { return own != kNever; });
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    states_[at(parts_[i])] = static_cast<State>(other.states[i]);
    if (other.states[i] == kDamped) ++damped_parts_;
  }
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    seen_[i] = {other.changes[i], other.bends[i], other.largest[i], other.was_stiff[i] != 0};
  }
  std::copy(other.largest.begin() + std::ssize(seen_), other.largest.end(),
            shared_largest_.begin());
  steps_ = other.steps;
  looked_steps_ = other.looked_steps;
  substeps_seen_ = other.substeps;
}

void ChangeOver::Kept::archive(StateArchive& archive) {
  archive.vector(states);
  archive.vector(changes);
  archive.vector(bends);
  archive.vector(largest);
  archive.vector(was_stiff);
  archive.values(steps, looked_steps);
  archive.vector(substeps);
  const auto is_state = [](char own) { return own >= kNever && own <= kDamped; };
  archive.expect(std::ranges::all_of(states, is_state) && largest.size() == changes.size() &&
                     bends.size() == changes.size() && was_stiff.size() == changes.size(),
                 "the parts that are damped in single steps");
  archive.expect_finite(changes, "a change of an output");
  archive.expect_finite(bends, "a change of a change of an output");
  archive.expect_finite(largest, "a largest output");
  for (const SubstepsSeen& own : substeps) {
    const double numbers[] = {own.largest, own.change, own.stiff, own.thrown, own.h_lambda};
    archive.expect_finite(numbers, "what is known of substeps");
    archive.expect_counts({own.step + 1}, "a step that was thrown across");
  }
  archive.expect_counts({steps, looked_steps}, "the number of damped steps");
}

}  // namespace portwave
