#include "portwave/subsystems/core/signal.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <type_traits>

#include <fmt/format.h>

#include "portwave/subsystems/base/digest.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"

namespace portwave {
namespace {

void require_finite(Issues& issues, std::string where, double value) {
  if (!std::isfinite(value)) {
    issues.push_back(
        {std::move(where), fmt::format("must be finite, got {}", shown_number(value))});
  }
}

void require_positive(Issues& issues, std::string where, double value) {
  if (value > 0.0 && std::isfinite(value)) return;
  issues.push_back(
      {std::move(where), fmt::format("must be finite and > 0, got {}", shown_number(value))});
}

/// The value of a table. At an instant that two knots share it is that of the second one.
double interpolate(const std::vector<Signal::Knot>& knots, double time_s) {
  const auto after = std::upper_bound(knots.begin(), knots.end(), time_s,
                                      [](double t, const Signal::Knot& k) { return t < k.time_s; });
  if (after == knots.begin()) return knots.front().value;
  if (after == knots.end()) return knots.back().value;
  const Signal::Knot& left = *(after - 1);
  const Signal::Knot& right = *after;
  return std::lerp(left.value, right.value, (time_s - left.time_s) / (right.time_s - left.time_s));
}

/// What rounding does to times that are counted in steps of `length_s`.
double rounding_of(double begin_s, double end_s, double length_s) {
  constexpr double kSame = 1e-9;
  return std::max(kSame * length_s, 4.0 * std::numeric_limits<double>::epsilon() *
                                        std::max(std::abs(begin_s), std::abs(end_s)));
}

/// The knots within a step, but for those that rounding alone puts there.
std::span<const Signal::Knot> knots_within(const std::vector<Signal::Knot>& knots, double begin_s,
                                           double end_s) {
  const double margin_s = rounding_of(begin_s, end_s, end_s - begin_s);
  const auto first = std::ranges::upper_bound(knots, begin_s + margin_s, {}, &Signal::Knot::time_s);
  const auto last = std::ranges::lower_bound(knots, end_s - margin_s, {}, &Signal::Knot::time_s);
  if (!(first < last)) return {};
  return {first, last};
}

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

/// Knots or change-overs within a step that are taken one by one. Where there are more an input is sampled.
constexpr std::size_t kMostCuts = 64;

/// What remains of x beyond whole turns, so that large phases keep their accuracy as far as x has it.
double in_turns(double turns) { return 2.0 * std::numbers::pi * (turns - std::floor(turns)); }

double chirp_at(const Signal::Chirp& c, double time_s) {
  const double rising_s = std::clamp(time_s, 0.0, c.duration_s);
  const double slope = (c.to_Hz - c.from_Hz) / c.duration_s;
  double turns = (c.from_Hz + 0.5 * slope * rising_s) * rising_s;
  if (time_s < 0.0) turns = c.from_Hz * time_s;
  if (time_s > c.duration_s) turns += c.to_Hz * (time_s - c.duration_s);
  return c.offset + c.amplitude * std::sin(in_turns(turns) + c.phase_rad);
}

/// A mixing function of 64 bits with full avalanche (the finaliser of SplitMix64; Steele, Lea &
/// Flood, OOPSLA 2014).
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

/// In (0, 1).
double uniform(std::uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53; }

/// The value of a seed at a point of its grid: a normal deviate of Box and Muller.
double normal_at(std::uint64_t seed, double index) {
  const auto key = static_cast<std::uint64_t>(static_cast<std::int64_t>(index));
  const std::uint64_t first = mixed(mixed(seed) ^ key);
  const double radius = std::sqrt(-2.0 * std::log(uniform(first)));
  return radius * std::cos(2.0 * std::numbers::pi * uniform(mixed(first)));
}

double noise_at(const Signal::Noise& n, double time_s) {
  constexpr double kMostPoints = 9e15;
  const double place = std::clamp(time_s / n.interval_s, -kMostPoints, kMostPoints);
  const double before = std::floor(place);
  const double value =
      std::lerp(normal_at(n.seed, before), normal_at(n.seed, before + 1.0), place - before);
  return n.mean + n.standard_deviation * value;
}

}  // namespace

std::string knot_defect(std::span<const Signal::Knot> before, double time_s) {
  if (before.empty()) return {};
  const double last_s = before.back().time_s;
  if (time_s < last_s) {
    return fmt::format("times must not decrease: {} follows {}. Two knots of equal time are a jump",
                       time_s, last_s);
  }
  if (time_s == last_s && before.size() > 1 && before[before.size() - 2].time_s == time_s) {
    return fmt::format(
        "more than two knots at {} s: a jump has two, the value before it and the one after",
        time_s);
  }
  return {};
}

Signal Signal::constant(double value) {
  Issues issues;
  require_finite(issues, "/value", value);
  throw_if_any(std::move(issues));
  return Signal(Kind(Constant{value}));
}

Signal Signal::sine_product(double amplitude, std::vector<Sine> sines, double offset) {
  Issues issues;
  require_finite(issues, "/amplitude", amplitude);
  require_finite(issues, "/offset", offset);
  if (sines.empty()) issues.push_back({"/sines", "needs at least one sine"});
  for (std::size_t i = 0; i < sines.size(); ++i) {
    require_finite(issues, fmt::format("/sines/{}/frequency_Hz", i), sines[i].frequency_Hz);
    require_finite(issues, fmt::format("/sines/{}/phase_rad", i), sines[i].phase_rad);
  }
  throw_if_any(std::move(issues));
  return Signal(Kind(SineProduct{amplitude, offset, std::move(sines)}));
}

Signal Signal::piecewise_linear(std::vector<Knot> knots) {
  Issues issues;
  if (knots.empty()) issues.push_back({"/knots", "needs at least one knot"});
  for (std::size_t i = 0; i < knots.size(); ++i) {
    require_finite(issues, fmt::format("/knots/{}/time_s", i), knots[i].time_s);
    require_finite(issues, fmt::format("/knots/{}/value", i), knots[i].value);
    if (std::string defect = knot_defect({knots.data(), i}, knots[i].time_s); !defect.empty()) {
      issues.push_back({fmt::format("/knots/{}/time_s", i), std::move(defect)});
    }
  }
  throw_if_any(std::move(issues));
  return Signal(Kind(Table{std::move(knots)}));
}

Signal Signal::callback(std::function<double(double)> function) {
  if (!function) throw ConfigError("/callback", "must hold a function");
  return Signal(Kind(std::move(function)));
}

Signal Signal::expression(std::string_view text) {
  static const std::vector<std::string> variables = {"t"};
  try {
    return Signal(Kind(Expression::parse(text, variables)));
  } catch (const ConfigError& error) {
    Issues issues;
    append(issues, "/expression", error.issues());
    throw ConfigError(std::move(issues));
  }
}

Signal Signal::chirp(const Chirp& chirp) {
  Issues issues;
  require_finite(issues, "/amplitude", chirp.amplitude);
  require_finite(issues, "/from_Hz", chirp.from_Hz);
  require_finite(issues, "/to_Hz", chirp.to_Hz);
  require_finite(issues, "/phase_rad", chirp.phase_rad);
  require_finite(issues, "/offset", chirp.offset);
  require_positive(issues, "/duration_s", chirp.duration_s);
  throw_if_any(std::move(issues));
  return Signal(Kind(chirp));
}

Signal Signal::noise(const Noise& noise) {
  Issues issues;
  require_finite(issues, "/mean", noise.mean);
  require_positive(issues, "/interval_s", noise.interval_s);
  if (!(noise.standard_deviation >= 0.0 && std::isfinite(noise.standard_deviation))) {
    issues.push_back({"/standard_deviation", fmt::format("must be finite and >= 0, got {}",
                                                         shown_number(noise.standard_deviation))});
  }
  throw_if_any(std::move(issues));
  return Signal(Kind(noise));
}

Signal Signal::settable(double initial) {
  Issues issues;
  require_finite(issues, "/initial", initial);
  throw_if_any(std::move(issues));
  return Signal(Kind(Settable{initial}));
}

bool Signal::is_settable() const {
  return kind_ != nullptr && std::holds_alternative<Settable>(*kind_);
}

bool Signal::is_callback() const {
  return kind_ != nullptr && std::holds_alternative<Callback>(*kind_);
}

double Signal::next_kink(double after_s) const {
  if (const Chirp* const chirp = kind_ == nullptr ? nullptr : std::get_if<Chirp>(kind_.get())) {
    for (const double kink : {0.0, chirp->duration_s}) {
      if (kink > after_s) return kink;
    }
  }
  if (const Noise* const noise = kind_ == nullptr ? nullptr : std::get_if<Noise>(kind_.get())) {
    const double next = noise->interval_s * (std::floor(after_s / noise->interval_s) + 1.0);
    return next > after_s ? next : next + noise->interval_s;
  }
  const Table* const table = kind_ == nullptr ? nullptr : std::get_if<Table>(kind_.get());
  if (table == nullptr) return std::numeric_limits<double>::infinity();
  const auto next = std::ranges::upper_bound(table->knots, after_s, {}, &Knot::time_s);
  if (next == table->knots.end()) return std::numeric_limits<double>::infinity();
  return next->time_s;
}

double Signal::next_change(double after_s, double until_s) const {
  const auto* const own = kind_ == nullptr ? nullptr : std::get_if<Expression>(kind_.get());
  return own == nullptr ? std::numeric_limits<double>::infinity()
                        : own->first_change(after_s, until_s);
}

bool Signal::can_change_over() const {
  const auto* const own = kind_ == nullptr ? nullptr : std::get_if<Expression>(kind_.get());
  return own != nullptr && own->can_change_over();
}

double Signal::in_step(const StepPlace& place, std::span<const double> set_values,
                       const MovedJump* moved) const {
  if (kind_ == nullptr) return 0.0;
  const auto sum = [moved](double value, double time_s) {
    return moved == nullptr ? value : value + moved->at(time_s);
  };
  const auto there = [&] { return sum(at(place.time_s, set_values), place.time_s); };
  const double begin_s = place.begin_s, length_s = place.length_s, end_s = begin_s + length_s;
  std::array<double, kMostCuts> cuts;
  std::size_t count = 0;
  if (const Table* const table = std::get_if<Table>(kind_.get())) {
    const auto within = knots_within(table->knots, begin_s, end_s);
    for (const Knot& knot : within) {
      if (count < kMostCuts) cuts[count++] = (knot.time_s - begin_s) / length_s;
    }
    if (count == 0 || within.size() > kMostCuts) return there();
    const auto value = [&](double time_s) {
      return sum(interpolate(table->knots, time_s), time_s);
    };
    return projected(value, {cuts.data(), count}, begin_s, length_s, place.stages, place.tau);
  }
  const Expression* const own = std::get_if<Expression>(kind_.get());
  if (own == nullptr || !own->can_change_over() || own->over(begin_s, end_s).is_smooth) {
    return there();
  }
  const double margin_s = rounding_of(begin_s, end_s, length_s);
  for (double time_s = begin_s + margin_s;;) {
    time_s = own->first_change(time_s, end_s - margin_s);
    if (!(time_s < end_s - margin_s)) break;
    if (count == kMostCuts) return there();
    cuts[count++] = (time_s - begin_s) / length_s;
  }
  if (count == 0) return there();
  const auto value = [&](double time_s) { return sum((*own)({&time_s, 1}), time_s); };
  return projected(value, {cuts.data(), count}, begin_s, length_s, place.stages, place.tau);
}

double Signal::at_sample(double time_s, double period_s) const {
  const Table* const table = kind_ == nullptr ? nullptr : std::get_if<Table>(kind_.get());
  if (table == nullptr) return (*this)(time_s);
  const double rounding_s = rounding_of(time_s, time_s, period_s);
  const auto next = std::ranges::upper_bound(table->knots, time_s, {}, &Knot::time_s);
  const bool is_at_knot = next != table->knots.end() && next->time_s <= time_s + rounding_s;
  return interpolate(table->knots, is_at_knot ? next->time_s : time_s);
}

std::optional<Signal::Span> Signal::table_span() const {
  const Table* const table = kind_ == nullptr ? nullptr : std::get_if<Table>(kind_.get());
  if (table == nullptr || table->knots.size() < 2) return std::nullopt;
  return Span{table->knots.front().time_s, table->knots.back().time_s};
}

double Signal::highest_frequency_Hz() const {
  if (const Chirp* const chirp = kind_ == nullptr ? nullptr : std::get_if<Chirp>(kind_.get())) {
    return chirp->amplitude == 0.0 ? 0.0
                                   : std::max(std::abs(chirp->from_Hz), std::abs(chirp->to_Hz));
  }
  const SineProduct* const own = kind_ == nullptr ? nullptr : std::get_if<SineProduct>(kind_.get());
  if (own == nullptr || own->amplitude == 0.0) return 0.0;
  double sum = 0.0;
  for (const Sine& sine : own->sines) sum += std::abs(sine.frequency_Hz);
  return sum;
}

std::uint64_t Signal::digest() const {
  Digest digest;
  if (kind_ == nullptr) return digest.value();
  digest.add(static_cast<int>(kind_->index()));
  const auto add = [&digest](auto... numbers) { (digest.add(numbers), ...); };
  std::visit(
      [&](const auto& kind) {
        using T = std::decay_t<decltype(kind)>;
        if constexpr (std::is_same_v<T, Constant>) {
          add(kind.value);
        } else if constexpr (std::is_same_v<T, SineProduct>) {
          add(kind.amplitude, kind.offset);
          for (const Sine& sine : kind.sines) add(sine.frequency_Hz, sine.phase_rad);
        } else if constexpr (std::is_same_v<T, Table>) {
          for (const Knot& knot : kind.knots) add(knot.time_s, knot.value);
        } else if constexpr (std::is_same_v<T, Chirp>) {
          add(kind.amplitude, kind.from_Hz, kind.to_Hz, kind.duration_s, kind.phase_rad,
              kind.offset);
        } else if constexpr (std::is_same_v<T, Noise>) {
          add(kind.standard_deviation, kind.interval_s, kind.seed, kind.mean);
        } else if constexpr (std::is_same_v<T, Expression>) {
          add(kind.digest());
        }
      },
      *kind_);
  return digest.value();
}

double Signal::operator()(double time_s) const {
  if (kind_ == nullptr) return 0.0;
  return std::visit(
      [time_s](const auto& kind) -> double {
        using T = std::decay_t<decltype(kind)>;
        if constexpr (std::is_same_v<T, Constant>) {
          return kind.value;
        } else if constexpr (std::is_same_v<T, SineProduct>) {
          double product = kind.amplitude;
          for (const Sine& sine : kind.sines) {
            product *=
                std::sin(2.0 * std::numbers::pi * sine.frequency_Hz * time_s + sine.phase_rad);
          }
          return kind.offset + product;
        } else if constexpr (std::is_same_v<T, Table>) {
          return interpolate(kind.knots, time_s);
        } else if constexpr (std::is_same_v<T, Chirp>) {
          return chirp_at(kind, time_s);
        } else if constexpr (std::is_same_v<T, Noise>) {
          return noise_at(kind, time_s);
        } else if constexpr (std::is_same_v<T, Settable>) {
          return kind.initial;
        } else if constexpr (std::is_same_v<T, Expression>) {
          return kind({&time_s, 1});
        } else {
          return kind(time_s);
        }
      },
      *kind_);
}

}  // namespace portwave
