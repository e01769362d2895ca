#include "portwave/subsystems/core/signal.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <type_traits>

#include <fmt/format.h>

#include "core/signal_values.hpp"
#include "portwave/subsystems/base/digest.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/printable.hpp"

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

Signal Signal::rate_of(const Signal& displacement) {
  if (displacement.is_settable()) {
    throw ConfigError("/rate_of",
                      "a settable input is held over each step and has no rate: give a table or an "
                      "expression, or set the flow itself");
  }
  if (displacement.is_rate()) {
    throw ConfigError("/rate_of", "a rate has no rate of its own: give the displacement");
  }
  if (displacement.kind_ == nullptr) return {};
  return Signal(Kind(Rate{std::make_shared<const Signal>(displacement)}));
}

bool Signal::is_rate() const { return kind_ != nullptr && std::holds_alternative<Rate>(*kind_); }

bool Signal::is_settable() const {
  return kind_ != nullptr && std::holds_alternative<Settable>(*kind_);
}

bool Signal::is_callback() const {
  if (is_rate()) return std::get<Rate>(*kind_).of->is_callback();
  return kind_ != nullptr && std::holds_alternative<Callback>(*kind_);
}

double Signal::next_kink(double after_s) const {
  if (is_rate()) return std::get<Rate>(*kind_).of->next_kink(after_s);
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
  if (is_rate()) return std::get<Rate>(*kind_).of->next_change(after_s, until_s);
  const auto* const own = kind_ == nullptr ? nullptr : std::get_if<Expression>(kind_.get());
  return own == nullptr ? std::numeric_limits<double>::infinity()
                        : own->first_change(after_s, until_s);
}

const Expression* Signal::expression() const {
  return kind_ == nullptr ? nullptr : std::get_if<Expression>(kind_.get());
}

bool Signal::can_change_over() const {
  if (is_rate()) return std::get<Rate>(*kind_).of->can_change_over();
  const auto* const own = kind_ == nullptr ? nullptr : std::get_if<Expression>(kind_.get());
  return own != nullptr && own->can_change_over();
}

double Signal::at_sample(double time_s, double period_s) const {
  const Table* const table = kind_ == nullptr ? nullptr : std::get_if<Table>(kind_.get());
  if (table == nullptr) return (*this)(time_s);
  const double rounding_s = signal_values::rounding_of(time_s, time_s, period_s);
  const auto next = std::ranges::upper_bound(table->knots, time_s, {}, &Knot::time_s);
  const bool is_at_knot = next != table->knots.end() && next->time_s <= time_s + rounding_s;
  return signal_values::interpolate(table->knots, is_at_knot ? next->time_s : time_s);
}

std::optional<Signal::Span> Signal::table_span() const {
  if (is_rate()) return std::get<Rate>(*kind_).of->table_span();
  const Table* const table = kind_ == nullptr ? nullptr : std::get_if<Table>(kind_.get());
  if (table == nullptr || table->knots.size() < 2) return std::nullopt;
  return Span{table->knots.front().time_s, table->knots.back().time_s};
}

double Signal::highest_frequency_Hz() const {
  if (is_rate()) return std::get<Rate>(*kind_).of->highest_frequency_Hz();
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
        } else if constexpr (std::is_same_v<T, Rate>) {
          add(kind.of->digest());
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
          return signal_values::interpolate(kind.knots, time_s);
        } else if constexpr (std::is_same_v<T, Chirp>) {
          return signal_values::chirp_at(kind, time_s);
        } else if constexpr (std::is_same_v<T, Noise>) {
          return signal_values::noise_at(kind, time_s);
        } else if constexpr (std::is_same_v<T, Settable>) {
          return kind.initial;
        } else if constexpr (std::is_same_v<T, Expression>) {
          return kind({&time_s, 1});
        } else if constexpr (std::is_same_v<T, Rate>) {
          return kind.of->slope(time_s);
        } else {
          return kind(time_s);
        }
      },
      *kind_);
}

}  // namespace portwave
