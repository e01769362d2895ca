#include "step/sizes/resolution_watch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/state_archive.hpp"
#include "step/sizes/own_states.hpp"

namespace portwave {
namespace {

/// Amplitude of the energy of an error of one step, and of an alternation, relative to the largest energy of
/// motion, above which motion is not resolved. One step of the midpoint rule in an oscillation has the first
/// at hω = 0.8.
constexpr double kJump = 0.04, kAlternation = 0.015;
/// Likewise for an effort or flow relative to its largest one.
constexpr double kPortAlternation = 0.05;
/// Likewise an error and an alternation of one state, relative to its own largest value (OwnStates).
constexpr double kOwnJump = OwnStates::kJump, kOwnAlternation = 0.05, kLeastOwn = OwnStates::kLeast;
/// What damped steps may take of all energy that was stored or moved; and what they may take beside what
/// resistances take, if it is more than little of that energy: oscillations die too soon by as much.
constexpr double kDamped = 0.05, kDampedBeside = 0.1, kDampedLittle = 0.02;
/// Share of the stored energy below which motion is what rounding makes of rest.
constexpr double kRest = 1e-22;
/// Share of the energy of the largest waves below which a port is not examined.
constexpr double kLeastAtPort = 1e-12;
/// How fast consecutive alternations may fade or grow.
constexpr double kFades = 0.55, kGrows = 1.1;
constexpr int kMostCounted = 100;
/// Amplitude of an alternation, of the change of its rate, for 1 to 3 stages: a stiff decay has stages at
/// rest, and the polynomial through its ends and these has such slopes there.
constexpr double kOfChange[] = {0.25, 0.144, 0.083};

}  // namespace

std::string_view to_string(Resolution::Kind kind) {
  switch (kind) {
    case Resolution::Kind::resolved:
      return "resolved";
    case Resolution::Kind::jumps:
      return "jumps";
    case Resolution::Kind::alternates:
      return "alternates";
    case Resolution::Kind::effort_alternates:
      return "effort_alternates";
    case Resolution::Kind::flow_alternates:
      return "flow_alternates";
    case Resolution::Kind::damped_away:
      return "damped_away";
    case Resolution::Kind::pulses:
      return "pulses";
    case Resolution::Kind::undersampled:
      return "undersampled";
  }
  return "?";
}

bool ResolutionWatch::Sequence::take(double value) {
  const double step = value - last;
  last = value;
  if (known < 2) {
    if (known == 1) change = step;
    ++known;
    return false;
  }
  const double size = std::abs(step), before = std::abs(change);
  const bool turns = (step < 0.0) != (change < 0.0) && size >= kFades * before &&
                     size <= kGrows * before && size > 0.0;
  change = step;
  alternations = turns ? std::min(alternations + 1, kMostCounted) : 0;
  return alternations >= kAlternations;
}

ResolutionWatch::ResolutionWatch(const WaveDiscretisation& waves, const StageRule& rule,
                                 const double* record, int ports)
    : waves_(waves),
      stages_(rule),
      estimate_(waves, rule, record, StepErrorEstimate::OtherParts::left_out),
      ports_(at(ports)),
      jumps_(estimate_.kinds()),
      alternates_(estimate_.kinds()),
      patience_(kSource) {
  std::size_t states = 0, largest = 0;
  for (int i = 0; i < static_cast<int>(waves.slots().size()); ++i) {
    first_state_.push_back(states);
    const auto n = at(waves.batch(waves.slot(i).batch).batch->state_size());
    if (estimate_.is_judged(i) && n > 0) {
      const auto [offset, stride] = estimate_.place_of(i, rule.count - 1);
      rates_.push_back({offset, states, stride, static_cast<int>(n), i});
    }
    states += n;
    largest = std::max(largest, n);
  }
  states_.resize(states);
  own_.resize(states);
  for (std::vector<double>* scratch : {&scratch_, &sums_, &differences_}) scratch->resize(largest);
  note_largest(record);
}

void ResolutionWatch::note_largest(const double* record) {
  for (const Rates& part : rates_) {
    waves_.get_state(part.part, record, scratch_.data());
    for (int i = 0; i < part.states; ++i) {
      double& largest = own_[part.first_state + at(i)].largest;
      largest = std::max(largest, std::abs(scratch_[at(i)]));
    }
  }
}

void ResolutionWatch::expect(std::size_t inputs, int damped_part) {
  patience_.resize(kSource + inputs);
  damped_part_ = damped_part;
}

void ResolutionWatch::look_closely(std::int64_t step, int cause) {
  Patience& own = patience_[at(cause)];
  if (step < own.from) return;
  closely_from_ = step;
  closely_until_ = step + kBurst;
  own.from = step + own.steps;
  own.steps = std::min(2 * own.steps, kEvery);
}

bool ResolutionWatch::Usual::is_sudden(double now) {
  constexpr double kSudden = 8.0, kOfLargest = 1e-6, kMemory = 0.1;
  largest = std::max(largest, now);
  const bool out = now > kSudden * value && now > kOfLargest * largest;
  value += kMemory * (now - value);
  return out;
}

void ResolutionWatch::note_energy(std::int64_t step, const StepLedger& energy,
                                  const WaveSums::Sums& waves) {
  largest_J_ = std::max(largest_J_, std::abs(energy.stored_J));
  turned_over_.largest = std::max(turned_over_.largest, largest_J_);
  waves_J_ = std::max(waves_J_, 0.25 * (waves.efforts + waves.flows));
  const bool sudden[] = {
      turned_over_.is_sudden(std::abs(energy.changed_J) + std::abs(energy.supplied_J)),
      efforts_.is_sudden(waves.efforts), flows_.is_sudden(waves.flows)};
  for (int k = 0; k < 3 && step > 0; ++k) {
    if (sudden[k]) look_closely(step, kEnergy + k);
  }
  if (follows_ && step > last_seen_ + 1) {
    follows_ = false;
    mark_ = 0;
  }
  if (damped_part_ < 0) return;
  moved_J_ += std::abs(energy.supplied_J);
  dissipated_J_ += energy.dissipated_J;
  // What is stiff gives in one step what it gives; oscillations give some of it in each.
  constexpr double kAlike = 2.0;
  const double damped_J = energy.numerical_dissipation_J;
  if (damped_J <= kAlike * last_damped_J_ && last_damped_J_ <= kAlike * damped_J) {
    damped_J_ += damped_J;
    if (damped_at_ < 0 && is_damped_away()) damped_at_ = step;
  }
  last_damped_J_ = damped_J;
}

bool ResolutionWatch::is_damped_away() const {
  if (damped_part_ < 0) return false;
  const double all_J = largest_J_ + moved_J_;
  if (!(all_J > kRest * waves_J_)) return false;  // such as of a diode that blocks all the time
  if (damped_J_ > kDamped * all_J) return true;
  return damped_J_ > kDampedLittle * all_J && damped_J_ > kDampedBeside * dissipated_J_;
}

void ResolutionWatch::forget() {
  mark_ = 0;
  forget_motion();
}

void ResolutionWatch::forget_motion() {
  estimate_.forget();
  for (Sequence& state : states_) state.known = state.alternations = 0;
  for (Port& port : ports_) {
    port.effort.known = port.effort.alternations = 0;
    port.flow.known = port.flow.alternations = 0;
  }
}

bool ResolutionWatch::is_estimated(std::int64_t step) const {
  const std::int64_t seen = step - begun_;
  // An estimate needs three steps.
  if (step == closely_from_ + 2 && seen >= 2) return true;
  return seen >= 2 && seen % 3 == 2;
}

void ResolutionWatch::look(std::int64_t step, const double* record, const double* a,
                           const double* next) {
  if (last_seen_ + 1 != step || step_s_ != waves_.step_s()) {
    forget();
    begun_ = step;
  }
  last_seen_ = step;
  mark_ = 0;
  follows_ = true;
  step_s_ = waves_.step_s();
  ++looks_;
  try {
    follow(step, record, a, next);
  } catch (const std::exception&) {  // of a callback, outside its domain
    forget();
    begun_ = step + 1;
  }
}

void ResolutionWatch::pass_over(std::int64_t step) {
  forget();
  begun_ = step + 1;
  last_seen_ = step;
  step_s_ = waves_.step_s();
}

void ResolutionWatch::follow(std::int64_t step, const double* record, const double* a,
                             const double* next) {
  estimate_.take(record, a, next);
  if (is_estimated(step)) {
    const auto note = [&](int part, int kind, double energy_J) {
      Finding& worst = jumps_[at(kind)];
      if (!(energy_J > worst.energy_J)) return;
      worst = {energy_J, h_lambda(part, next), step, part};
    };
    using Window = StepErrorEstimate::Window;
    estimate_.for_each_error(next, a, Window::latest, note);
    const bool is_first = step - begun_ == 2 && stages_.count > 1;
    if (is_first) estimate_.for_each_error(next, a, Window::earliest, note);
    if (is_first) note_bounces(next);
  }
  follow_states(step, next);
  note_states(step, next, is_estimated(step));
  is_estimated(step) ? estimate_.accept(next) : estimate_.go_on();
}

bool ResolutionWatch::dies(int part, int state) const { return estimate_.dying(part)[state] != 0; }

/// The first of three steps has most of all motion in it, and the others have almost no such rates: its
/// motion ended within it. With several stages its parts may cancel in an estimate.
void ResolutionWatch::note_bounces(const double* next) {
  constexpr double kMost = 0.5, kOver = 0.0025;
  for (const Rates& own : rates_) {
    double rates_J[3] = {};  // latest first
    for (int back = 0; back < 3; ++back) {
      for (int stage = 0; stage < stages_.count; ++stage) {
        for (int i = 0; i < own.states; ++i) {
          scratch_[at(i)] = dies(own.part, i) ? 0.0 : estimate_.rate(back, own.part, stage, i);
        }
        rates_J[back] =
            std::max(rates_J[back], estimate_.energy_of(own.part, next, scratch_.data()));
      }
    }
    const int kind = estimate_.kind_of(own.part);
    if (!(rates_J[2] > kMost * estimate_.scale_J(kind))) continue;
    if (!(std::max(rates_J[0], rates_J[1]) < kOver * rates_J[2])) continue;
    const double energy_J = 0.25 * rates_J[2];
    Finding& worst = jumps_[at(kind)];
    if (energy_J > worst.energy_J) worst = {energy_J, 0.0, begun_, own.part};
  }
}

/// Each state beside itself.
void ResolutionWatch::note_states(std::int64_t step, const double* next, bool is_estimated) {
  const bool has_estimate = is_estimated && estimate_.has_estimate();
  note_largest(next);
  for (const Rates& part : rates_) {
    // Where a part changes over, its storages are damped in single steps.
    if (!estimate_.is_judged(part.part)) continue;
    const char* const dies = estimate_.dying(part.part);
    for (int i = 0; i < part.states; ++i) {
      OwnMotion& own = own_[part.first_state + at(i)];
      if (dies[i] != 0) continue;
      const double error = has_estimate ? std::abs(estimate_.estimate_of(part.part, i)) : 0.0;
      if (error > kOwnJump * own.largest && error > own.error) {
        own.error = error;
        if (!(own.alternation > 0.0)) own.step = step;
      }
      const Sequence& state = states_[part.first_state + at(i)];
      if (state.alternations < kAlternations) continue;
      const double size = kOfChange[stages_.count - 1] * std::abs(state.change);
      if (size > kOwnAlternation * own.largest && size > own.alternation) {
        own.alternation = size;
        own.step = step;
      }
    }
  }
}

/// The worst state that has a share of energy worth mentioning.
void ResolutionWatch::consider_states(Resolution& out) const {
  for (const Rates& part : rates_) {
    for (int i = 0; i < part.states; ++i) {
      const OwnMotion& own = own_[part.first_state + at(i)];
      const double jump = own.error / own.largest, turn = own.alternation / own.largest;
      const bool jumps = jump > kOwnJump, alternates = turn > kOwnAlternation;
      if (!jumps && !alternates) continue;
      const double share = alternates ? turn : jump;
      if (out.kind != Resolution::Kind::resolved && !(share > out.share)) continue;
      const double energy_J = estimate_.energy_of_motion(part.part, i, own.largest);
      if (!(energy_J > kLeastOwn * estimate_.island_J(part.part))) continue;
      if (!(energy_J > kRest * largest_J_)) continue;
      out = {};
      out.kind = alternates ? Resolution::Kind::alternates : Resolution::Kind::jumps;
      out.share = share;
      out.step = own.step;
      out.part = part.part;
      out.state = i;
      out.looks = looks_;
    }
  }
}

void ResolutionWatch::follow_states(std::int64_t step, const double* next) {
  // Decays that are thrown across alternate with the steps, but with two stages within them.
  const std::span<const double> increments = estimate_.taken();
  const int count = stages_.count;
  const double scale = 1.0 / std::sqrt(stages_.b[at(count - 1)]);
  for (const Rates& own : rates_) {
    bool alternates = false;
    const char* const dies = estimate_.dying(own.part);
    const double* rate = increments.data() + own.offset;
    const std::size_t before = at(own.states * own.stride);  // of the stage before
    Sequence* state = states_.data() + own.first_state;
    for (int i = 0; i < own.states; ++i, ++state, rate += own.stride) {
      if (dies[i] != 0) continue;
      if (count == 2 && state->take(scale * *(rate - before))) alternates = true;
      if (state->take(scale * *rate)) alternates = true;
    }
    if (alternates) note_alternation(step, own.part, next);
  }
}

void ResolutionWatch::note_alternation(std::int64_t step, int part, const double* next) {
  const int n = waves_.batch(waves_.slot(part).batch).batch->state_size();
  for (int i = 0; i < n; ++i) {
    const Sequence& own = states_[first_state_[at(part)] + at(i)];
    const bool alternates = own.alternations >= kAlternations && !dies(part, i);
    scratch_[at(i)] = alternates ? kOfChange[stages_.count - 1] * own.change : 0.0;
  }
  const double energy_J = estimate_.energy_of_error(part, next, scratch_.data());
  Finding& worst = alternates_[at(estimate_.kind_of(part))];
  if (!(energy_J > worst.energy_J) || !std::isfinite(energy_J)) return;
  worst = {energy_J, h_lambda(part, next), step, part};
}

/// |h Δẋ| / |Δx| between two stages, as amplitudes of energy: of one stage between two steps.
double ResolutionWatch::h_lambda(int part, const double* next) {
  const int n = waves_.batch(waves_.slot(part).batch).batch->state_size();
  const int last = stages_.count - 1;
  for (int i = 0; i < n; ++i) {
    differences_[at(i)] = sums_[at(i)] = 0.0;
    if (dies(part, i)) continue;
    const double now = estimate_.taken_rate(part, last, i);
    if (last == 0) {
      const double before = estimate_.last_rate(part, 0, i);
      differences_[at(i)] = now - before;
      sums_[at(i)] = 0.5 * (now + before);
      continue;
    }
    differences_[at(i)] = now - estimate_.taken_rate(part, 0, i);
    for (int j = 0; j < stages_.count; ++j) {
      const double weight =
          stages_.integral(j, stages_.c[at(last)]) - stages_.integral(j, stages_.c[0]);
      sums_[at(i)] += weight * estimate_.taken_rate(part, j, i);
    }
  }
  const double rates_J = estimate_.energy_of(part, next, differences_.data());
  const double states_J = estimate_.energy_of(part, next, sums_.data());
  return std::sqrt(rates_J / states_J);
}

void ResolutionWatch::look_at_ports(const double* a, const double* b, std::span<const int> wave,
                                    std::span<const double> weight) {
  mark_ = 0;
  const std::size_t count = at(stages_.count);
  double of_all = 0.0;  // the largest effort or flow of all ports so far
  for (const Port& port : ports_) {
    of_all = std::max({of_all, port.largest_effort, port.largest_flow});
  }
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    if (wave[i * count] < 0) continue;
    // Effort and flow, means over the step, as √J: times √(h/γ) and √(hγ), but for a factor.
    double effort = 0.0, flow = 0.0;
    if (count == 1) {
      const std::size_t w = at(wave[i]);
      effort = a[w] + b[w];
      flow = a[w] - b[w];
    } else {
      const double usual = std::sqrt(waves_.impedance()[at(wave[i * count])]);
      for (std::size_t j = 0; j < count; ++j) {
        const std::size_t w = at(wave[i * count + j]);
        const double root = std::sqrt(waves_.impedance()[w]);
        effort += weight[j] * (root / usual) * (a[w] + b[w]);
        flow += weight[j] * (usual / root) * (a[w] - b[w]);
      }
    }
    Port& port = ports_[i];
    port.largest_effort = std::max(port.largest_effort, std::abs(effort));
    port.largest_flow = std::max(port.largest_flow, std::abs(flow));
    of_all = std::max({of_all, port.largest_effort, port.largest_flow});
    const int number = static_cast<int>(i);
    if (port.effort.take(effort)) {
      note_port(port.effort, port.largest_effort, of_all, number, false);
    }
    if (port.flow.take(flow)) note_port(port.flow, port.largest_flow, of_all, number, true);
  }
}

void ResolutionWatch::note_port(const Sequence& own, double largest, double of_all, int port,
                                bool of_flow) {
  if (!(largest * largest > kLeastAtPort * of_all * of_all)) return;
  if (!(largest * largest > kRest * largest_J_)) return;
  const double share = 0.25 * std::abs(own.change) / largest;
  if (share > port_.share) port_ = {share, last_seen_, port, of_flow};
}

Resolution ResolutionWatch::value() const {
  Resolution out;
  out.looks = looks_;
  const auto consider = [&](Resolution::Kind kind, double limit, std::span<const Finding> all) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double scale_J = estimate_.scale_J(static_cast<int>(i));
      const Finding& own = all[i];
      if (own.part < 0 || !(own.energy_J > limit * limit * scale_J)) continue;
      if (!(own.energy_J > kRest * largest_J_)) continue;
      const double share = std::sqrt(own.energy_J / scale_J);
      if (out.kind != Resolution::Kind::resolved && !(share > out.share)) continue;
      out = {};
      out.kind = kind;
      out.share = share;
      out.h_lambda = own.h_lambda;
      out.step = own.step;
      out.part = own.part;
      out.looks = looks_;
    }
  };
  consider(Resolution::Kind::alternates, kAlternation, alternates_);
  consider(Resolution::Kind::jumps, kJump, jumps_);
  if (out.kind == Resolution::Kind::resolved) consider_states(out);
  if (out.kind == Resolution::Kind::resolved && is_damped_away()) {
    const double damped = damped_J_ / (largest_J_ + moved_J_);
    out.kind = Resolution::Kind::damped_away;
    out.share = damped;
    out.step = damped_at_;
    out.part = damped_part_;
    return out;
  }
  if (out.kind == Resolution::Kind::resolved && port_.share > kPortAlternation) {
    out.kind =
        port_.of_flow ? Resolution::Kind::flow_alternates : Resolution::Kind::effort_alternates;
    out.share = port_.share;
    out.step = port_.step;
    out.port = port_.port;
  }
  return out;
}

std::size_t ResolutionWatch::bytes() const {
  return estimate_.bytes() + sizeof(Sequence) * states_.capacity() +
         sizeof(OwnMotion) * own_.capacity() + sizeof(Port) * ports_.capacity() +
         sizeof(Finding) * 2 * jumps_.capacity();
}

/// What changes in the steps that are examined alone.
void ResolutionWatch::archive_motion(StateArchive& archive) {
  archive.value(follows_);
  if (follows_) {
    estimate_.archive(archive);
    archive.array(std::span(states_));
  } else {
    forget_motion();
    estimate_.archive_scales(archive);
  }
  archive.array(std::span(own_));
  archive.array(std::span(ports_));
  for (std::vector<Finding>* all : {&jumps_, &alternates_}) {
    for (Finding& own : *all) {
      archive.values(own.energy_J, own.h_lambda, own.step, own.part);
      archive.expect(own.energy_J >= 0.0 && own.part >= -1 &&
                         own.part < static_cast<int>(waves_.slots().size()),
                     "motion that is not resolved");
    }
  }
}

void ResolutionWatch::archive(StateArchive& archive) {
  archive.section(mark_, [&] { archive_motion(archive); });
  archive.array(std::span(patience_));
  archive.values(port_.share, port_.step, port_.port, port_.of_flow, closely_until_, closely_from_,
                 last_seen_, begun_, looks_, step_s_, turned_over_, efforts_, flows_, largest_J_,
                 damped_J_, last_damped_J_, moved_J_, dissipated_J_, damped_at_, waves_J_);
  for (const Patience& own : patience_) {
    archive.expect_counts({own.from, own.steps}, "when the watch looks closely again");
  }
  archive.expect(port_.port >= -1 && port_.port < static_cast<int>(ports_.size()),
                 "a port that alternates");
  archive.expect_counts(
      {closely_until_, closely_from_, last_seen_ + 1, begun_, looks_, damped_at_ + 1},
      "the number of steps looked at");
}

}  // namespace portwave
