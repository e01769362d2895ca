#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <span>
#include <vector>

#include "core/signal_values.hpp"
#include "portwave/subsystems/core/signal.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"

namespace portwave {
namespace {

/// p(tau) of the polynomial p of degree stages − 1 that is nearest to an input in the mean over a step.
/// At the Gauss nodes it is ∫ lᵢu/bᵢ, since these integrate products lᵢp exactly; the same nodes are laid
/// between every two of `cuts`, shares of the step, which is exact where u is linear there.
template <class Input>
double projected(const Input& input, std::span<const double> cuts, double begin_s, double length_s,
                 int stages, double tau) {
  const StageRule& gauss = gauss_stages(stages);
  std::array<double, kMostStages> moment = {};
  double from = 0.0;
  const auto add_up_to = [&](double to) {
    for (int k = 0; k < stages; ++k) {
      const double at = from + (to - from) * gauss.c[static_cast<std::size_t>(k)];
      const double weighted =
          (to - from) * gauss.b[static_cast<std::size_t>(k)] * input(begin_s + at * length_s);
      for (int i = 0; i < stages; ++i) {
        moment[static_cast<std::size_t>(i)] += weighted * gauss.lagrange(i, at);
      }
    }
    from = to;
  };
  for (const double cut : cuts) {
    if (cut > from) add_up_to(cut);
  }
  add_up_to(1.0);
  double value = 0.0;
  for (int i = 0; i < stages; ++i) {
    const auto own = static_cast<std::size_t>(i);
    value += moment[own] / gauss.b[own] * gauss.lagrange(i, tau);
  }
  return value;
}

/// Knots or change-overs within a step that are taken one by one: of pulses that are that many times as fast as steps.
/// Where there are more an input is sampled. Beyond the first number they cost an allocation.
constexpr std::size_t kUsualCuts = 64, kMostCuts = 4096;

/// lᵢ′(tau)
double lagrange_slope(const StageRule& rule, int i, double tau) {
  double sum = 0.0;
  for (int k = 0; k < rule.count; ++k) {
    if (k == i) continue;
    double product =
        1.0 / (rule.c[static_cast<std::size_t>(i)] - rule.c[static_cast<std::size_t>(k)]);
    for (int m = 0; m < rule.count; ++m) {
      if (m == i || m == k) continue;
      product *= (tau - rule.c[static_cast<std::size_t>(m)]) /
                 (rule.c[static_cast<std::size_t>(i)] - rule.c[static_cast<std::size_t>(m)]);
    }
    sum += product;
  }
  return sum;
}

}  // namespace

/// Knots and change-overs within a step, as shares of it; none where there are more than kMostCuts.
struct Signal::Cuts {
  std::array<double, kUsualCuts> usual;
  std::vector<double> all;  // where there are more
  std::size_t count = 0;

  void add(double share) {
    if (count < usual.size()) {
      usual[count++] = share;
      return;
    }
    if (all.empty()) all.assign(usual.begin(), usual.end());
    all.push_back(share);
    ++count;
  }
  std::span<const double> shares() const {
    return {count > usual.size() ? all.data() : usual.data(), count};
  }
};

Signal::Cuts Signal::cuts_within(double begin_s, double length_s) const {
  Cuts out;
  const double end_s = begin_s + length_s;
  if (const Table* const table = std::get_if<Table>(kind_.get())) {
    const auto within = signal_values::knots_within(table->knots, begin_s, end_s);
    if (within.size() > kMostCuts) return out;
    for (const Knot& knot : within) out.add((knot.time_s - begin_s) / length_s);
    return out;
  }
  const Expression* const own = std::get_if<Expression>(kind_.get());
  if (own == nullptr || !own->can_change_over() || own->over(begin_s, end_s).is_smooth) return out;
  const double margin_s = signal_values::rounding_of(begin_s, end_s, length_s);
  for (double time_s = begin_s + margin_s;;) {
    time_s = own->first_change(time_s, end_s - margin_s);
    if (!(time_s < end_s - margin_s)) return out;
    if (out.count == kMostCuts) break;
    out.add((time_s - begin_s) / length_s);
  }
  out.count = 0;
  return out;
}

namespace {

double margin_of(double time_s, double length_s) {
  return std::max(signal_values::rounding_of(time_s, time_s, length_s),
                  64.0 * std::numeric_limits<double>::epsilon() * std::abs(time_s));
}

/// The first of two knots of one time about there; null: none.
const Signal::Knot* jump_at(const std::vector<Signal::Knot>& knots, double time_s,
                            double margin_s) {
  for (auto knot = std::ranges::lower_bound(knots, time_s - margin_s, {}, &Signal::Knot::time_s);
       knot != knots.end() && knot->time_s <= time_s + margin_s; ++knot) {
    if (knot + 1 != knots.end() && (knot + 1)->time_s == knot->time_s) return &*knot;
  }
  return nullptr;
}

/// An expression at an instant; where it jumps there, as it is before (side −1) or after that (side 1). A jump is more
/// than what the slopes beside it make of so short a time.
double beside_jump(const Expression& own, double time_s, double margin_s, double side) {
  const double left_s = time_s - margin_s, right_s = time_s + margin_s;
  const double left = own({&left_s, 1}), right = own({&right_s, 1});
  const double left_slope = own.slope(left_s), right_slope = own.slope(right_s);
  const double slopes = std::abs(left_slope) + std::abs(right_slope);
  const double rounding =
      16.0 * std::numeric_limits<double>::epsilon() * (std::abs(left) + std::abs(right));
  if (!(std::abs(right - left) > 4.0 * margin_s * slopes + rounding)) return own({&time_s, 1});
  return side < 0.0 ? left + margin_s * left_slope : right - margin_s * right_slope;
}

}  // namespace

/// u at an end of a step: what jumps there, but for the rounding of times in steps of `length_s`, is not
/// seen yet. With 0 for that of the time alone, so that two steps of different lengths agree about their
/// common end.
double Signal::just_before(double time_s, double length_s) const {
  const double margin_s = margin_of(time_s, length_s);
  if (const Table* const table = std::get_if<Table>(kind_.get())) {
    if (const Knot* jump = jump_at(table->knots, time_s, margin_s)) return jump->value;
    return signal_values::interpolate(table->knots, time_s);
  }
  const Expression* const own = std::get_if<Expression>(kind_.get());
  if (own == nullptr || !own->can_change_over()) return (*this)(time_s);
  return beside_jump(*own, time_s, margin_s, -1.0);
}

double Signal::in_step(const StepPlace& place, std::span<const double> set_values,
                       const MovedJump* moved) const {
  const auto moved_at = [moved](double time_s) {
    return moved == nullptr ? 0.0 : moved->at(time_s);
  };
  if (kind_ == nullptr) return moved_at(place.time_s);
  if (is_rate()) {
    const double rate = rate_in_step(place);
    if (moved == nullptr) return rate;
    const double cut = (moved->time_s - place.begin_s) / place.length_s;
    return rate +
           projected(moved_at, {&cut, 1}, place.begin_s, place.length_s, place.stages, place.tau);
  }
  const auto sum = [moved](double value, double time_s) {
    return moved == nullptr ? value : value + moved->at(time_s);
  };
  const Cuts cuts = cuts_within(place.begin_s, place.length_s);
  if (cuts.count == 0) {
    // What jumps where a step begins is over, also if it does so just behind that instant.
    if (place.tau == 0.0) {
      const double margin_s = margin_of(place.time_s, place.length_s);
      const Expression* const own = expression();
      if (own != nullptr && own->can_change_over()) {
        return sum(beside_jump(*own, place.time_s, margin_s, 1.0), place.time_s);
      }
      const Table* const table = std::get_if<Table>(kind_.get());
      const Knot* const jump =
          table != nullptr ? jump_at(table->knots, place.time_s, margin_s) : nullptr;
      if (jump != nullptr) return sum((jump + 1)->value, place.time_s);
    }
    if (place.tau < 1.0 || is_settable()) return sum(at(place.time_s, set_values), place.time_s);
    return sum(just_before(place.time_s, place.length_s), place.time_s);
  }
  const auto value = [&](double time_s) { return sum((*this)(time_s), time_s); };
  return projected(value, cuts.shares(), place.begin_s, place.length_s, place.stages, place.tau);
}

/// p(tau) of the polynomial with ∫lᵢp = ∫lᵢṡ, divided by the length: [lᵢs] − ∫lᵢ′s, of which the integral is
/// taken between cuts. Only that depends on how smooth s is, and Σ∫lᵢ′s = 0.
double Signal::rate_in_step(const StepPlace& place) const {
  const Signal& s = *std::get<Rate>(*kind_).of;
  const StageRule& gauss = gauss_stages(place.stages);
  const StageRule& nodes = gauss_stages(kMostStages);
  const double begin_s = place.begin_s, length_s = place.length_s;
  const double first = s.just_before(begin_s, 0.0);
  const double last = s.just_before(begin_s + length_s, 0.0);
  if (place.stages == 1) return (last - first) / length_s;
  std::array<double, kMostStages> moment;
  for (int i = 0; i < place.stages; ++i) {
    moment[static_cast<std::size_t>(i)] = gauss.lagrange(i, 1.0) * (last - first) +
                                          (gauss.lagrange(i, 1.0) - gauss.lagrange(i, 0.0)) * first;
  }
  double from = 0.0;
  const auto add_up_to = [&](double to) {
    for (int k = 0; k < nodes.count; ++k) {
      const double at = from + (to - from) * nodes.c[static_cast<std::size_t>(k)];
      const double weighted =
          (to - from) * nodes.b[static_cast<std::size_t>(k)] * s(begin_s + at * length_s);
      for (int i = 0; i < place.stages; ++i) {
        moment[static_cast<std::size_t>(i)] -= weighted * lagrange_slope(gauss, i, at);
      }
    }
    from = to;
  };
  const Cuts cuts = s.kind_ == nullptr ? Cuts{} : s.cuts_within(begin_s, length_s);
  for (const double cut : cuts.shares()) {
    if (cut > from) add_up_to(cut);
  }
  add_up_to(1.0);
  double value = 0.0;
  for (int i = 0; i < place.stages; ++i) {
    const auto own = static_cast<std::size_t>(i);
    value += moment[own] / gauss.b[own] * gauss.lagrange(i, place.tau);
  }
  return value / length_s;
}

/// du/dt, at a kink that after it.
double Signal::slope(double time_s) const {
  if (const auto* const own = std::get_if<SineProduct>(kind_.get())) {
    double sum = 0.0;
    for (std::size_t i = 0; i < own->sines.size(); ++i) {
      double product = own->amplitude;
      for (std::size_t k = 0; k < own->sines.size(); ++k) {
        const double omega = 2.0 * std::numbers::pi * own->sines[k].frequency_Hz;
        const double phase = omega * time_s + own->sines[k].phase_rad;
        product *= k == i ? omega * std::cos(phase) : std::sin(phase);
      }
      sum += product;
    }
    return sum;
  }
  if (const auto* const table = std::get_if<Table>(kind_.get())) {
    const auto& knots = table->knots;
    const auto after = std::ranges::upper_bound(knots, time_s, {}, &Knot::time_s);
    if (after == knots.begin() || after == knots.end()) return 0.0;
    const Knot& left = *(after - 1);
    return (after->value - left.value) / (after->time_s - left.time_s);
  }
  if (const auto* const own = std::get_if<Expression>(kind_.get())) return own->slope(time_s);
  if (const auto* const own = std::get_if<Chirp>(kind_.get())) {
    return signal_values::chirp_slope(*own, time_s);
  }
  if (const auto* const own = std::get_if<Noise>(kind_.get())) {
    return signal_values::noise_slope(*own, time_s);
  }
  if (!std::holds_alternative<Callback>(*kind_)) return 0.0;
  // Of a function nothing is known: a difference whose width suits changes within about a second.
  const double width_s =
      std::cbrt(std::numeric_limits<double>::epsilon()) * std::max(1.0, std::abs(time_s));
  const double ahead_s = time_s + width_s, back_s = time_s - width_s;
  return ((*this)(ahead_s) - (*this)(back_s)) / (ahead_s - back_s);
}

std::optional<Signal::Jump> Signal::displacement_jump(double after_s, double until_s) const {
  if (!is_rate()) return std::nullopt;
  const Signal& s = *std::get<Rate>(*kind_).of;
  if (const auto* const table = std::get_if<Table>(s.kind_.get())) {
    const auto& knots = table->knots;
    for (auto knot = std::ranges::upper_bound(knots, after_s, {}, &Knot::time_s);
         knot != knots.end() && knot->time_s <= until_s; ++knot) {
      const auto next = knot + 1;
      if (next == knots.end() || next->time_s != knot->time_s) continue;
      if (next->value != knot->value) return Jump{knot->time_s, knot->value, next->value};
    }
    return std::nullopt;
  }
  const auto* const own = std::get_if<Expression>(s.kind_.get());
  if (own == nullptr || !own->can_change_over()) return std::nullopt;
  for (double time_s = after_s;;) {
    time_s = own->first_change(time_s, until_s);
    if (!(time_s <= until_s)) return std::nullopt;
    const double beside_s = signal_values::rounding_of(time_s, time_s, until_s - after_s);
    const double before_s = time_s - beside_s, then_s = time_s + beside_s;
    const double before = (*own)({&before_s, 1}), after = (*own)({&then_s, 1});
    // Of a kink no more than its slopes make of so short a time.
    const double slopes = std::abs(own->slope(before_s)) + std::abs(own->slope(then_s));
    const double rounding =
        16.0 * std::numeric_limits<double>::epsilon() * (std::abs(before) + std::abs(after));
    if (std::abs(after - before) > 4.0 * beside_s * slopes + rounding) {
      return Jump{time_s, before, after};
    }
  }
}

}  // namespace portwave
