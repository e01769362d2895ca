#include "portwave/subsystems/core/signal.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <type_traits>

#include <fmt/format.h>

#include "portwave/subsystems/base/error.hpp"

namespace portwave {
namespace {

void require_finite(Issues& issues, std::string where, double value) {
  if (!std::isfinite(value)) {
    issues.push_back({std::move(where), fmt::format("must be finite, got {}", value)});
  }
}

double interpolate(const std::vector<Signal::Knot>& knots, double time_s) {
  const auto after = std::upper_bound(knots.begin(), knots.end(), time_s,
                                      [](double t, const Signal::Knot& k) { return t < k.time_s; });
  if (after == knots.begin()) return knots.front().value;
  if (after == knots.end()) return knots.back().value;
  const Signal::Knot& left = *(after - 1);
  const Signal::Knot& right = *after;
  return std::lerp(left.value, right.value, (time_s - left.time_s) / (right.time_s - left.time_s));
}

}  // namespace

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
    if (i > 0 && knots[i].time_s <= knots[i - 1].time_s) {
      issues.push_back({fmt::format("/knots/{}/time_s", i),
                        fmt::format("times must increase strictly: {} follows {}", knots[i].time_s,
                                    knots[i - 1].time_s)});
    }
  }
  throw_if_any(std::move(issues));
  return Signal(Kind(Table{std::move(knots)}));
}

Signal Signal::callback(std::function<double(double)> function) {
  if (!function) throw ConfigError("/callback", "must hold a function");
  return Signal(Kind(std::move(function)));
}

double Signal::next_kink(double after_s) const {
  const Table* const table = kind_ == nullptr ? nullptr : std::get_if<Table>(kind_.get());
  if (table == nullptr) return std::numeric_limits<double>::infinity();
  const auto next = std::ranges::upper_bound(table->knots, after_s, {}, &Knot::time_s);
  if (next == table->knots.end()) return std::numeric_limits<double>::infinity();
  return next->time_s;
}

double Signal::highest_frequency_Hz() const {
  const SineProduct* const own = kind_ == nullptr ? nullptr : std::get_if<SineProduct>(kind_.get());
  if (own == nullptr || own->amplitude == 0.0) return 0.0;
  double sum = 0.0;
  for (const Sine& sine : own->sines) sum += std::abs(sine.frequency_Hz);
  return sum;
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
        } else {
          return kind(time_s);
        }
      },
      *kind_);
}

}  // namespace portwave
