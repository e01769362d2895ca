#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <numbers>
#include <numeric>
#include <optional>

#include "portwave/subsystems/base/expression.hpp"

namespace portwave {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kPi = std::numbers::pi;

using Range = Expression::Range;

bool is_point(const Range& a) { return a.low == a.high; }
bool has_inside(const Range& a, double x) { return a.low < x && x < a.high; }
Range anything(bool is_smooth) { return {-kInfinity, kInfinity, is_smooth}; }

/// The hull of values; anything where one is not a number, as ∞ − ∞.
Range hull(std::initializer_list<double> values, bool is_smooth) {
  Range out{kInfinity, -kInfinity, is_smooth};
  for (const double value : values) {
    if (std::isnan(value)) return anything(is_smooth);
    out.low = std::min(out.low, value);
    out.high = std::max(out.high, value);
  }
  return out;
}

/// 0 times whatever is not known is 0: what is switched off does not count.
double product(double a, double b) { return a == 0.0 || b == 0.0 ? 0.0 : a * b; }

Range times(const Range& a, const Range& b) {
  for (const Range* zero : {&a, &b}) {
    if (zero->low == 0.0 && zero->high == 0.0 && zero->is_smooth) return {0.0, 0.0, true};
  }
  return hull({product(a.low, b.low), product(a.low, b.high), product(a.high, b.low),
               product(a.high, b.high)},
              a.is_smooth && b.is_smooth);
}

Range over(const Range& a, const Range& b) {
  const bool smooth = a.is_smooth && b.is_smooth;
  if (has_inside(b, 0.0)) return anything(false);
  if (is_point(b) && b.low == 0.0)
    return is_point(a) ? hull({a.low / b.low}, smooth) : anything(smooth);
  // A bound of 0 stands for values next to it.
  const double low = b.low == 0.0 ? 0.0 : b.low, high = b.high == 0.0 ? -0.0 : b.high;
  return hull({a.low / low, a.low / high, a.high / low, a.high / high}, smooth);
}

Range whole_power(const Range& a, double n, bool smooth) {
  if (n == 0.0) return {1.0, 1.0, smooth};
  if (n < 0.0 && (has_inside(a, 0.0))) return anything(false);
  const bool is_even = std::fmod(n, 2.0) == 0.0;
  Range out = hull({std::pow(a.low, n), std::pow(a.high, n)}, smooth);
  if (is_even && has_inside(a, 0.0)) out.low = 0.0;
  return out;
}

Range power(const Range& a, const Range& b) {
  const bool smooth = a.is_smooth && b.is_smooth;
  if (is_point(b) && std::trunc(b.low) == b.low) return whole_power(a, b.low, smooth);
  if (a.low < 0.0) return anything(smooth && a.high <= 0.0);  // not a number
  return hull({std::pow(a.low, b.low), std::pow(a.low, b.high), std::pow(a.high, b.low),
               std::pow(a.high, b.high)},
              smooth);
}

enum class Truth : std::uint8_t { no, yes, open };

/// Whether a bound may be the value for longer than an instant: what is smooth and no constant comes to it
/// at single instants only.
bool dwells(const Range& a) { return is_point(a) || !a.is_smooth; }

/// a < b, or a ≤ b where `or_equal`.
Truth is_less(const Range& a, const Range& b, bool or_equal) {
  const bool may_be_equal = dwells(a) && dwells(b);
  if (is_point(a) && is_point(b)) {
    return (or_equal ? a.low <= b.low : a.low < b.low) ? Truth::yes : Truth::no;
  }
  if (a.high < b.low || (a.high == b.low && (or_equal || !may_be_equal))) return Truth::yes;
  if (a.low > b.high || (a.low == b.high && (!or_equal || !may_be_equal))) return Truth::no;
  return Truth::open;
}

Truth is_equal(const Range& a, const Range& b) {
  if (is_point(a) && is_point(b)) return a.low == b.low ? Truth::yes : Truth::no;
  const bool may_be_equal = dwells(a) && dwells(b);
  if (a.high < b.low || a.low > b.high) return Truth::no;
  if ((a.high == b.low || a.low == b.high) && !may_be_equal) return Truth::no;
  return Truth::open;
}

Truth no(Truth truth) {
  return truth == Truth::open ? truth : truth == Truth::yes ? Truth::no : Truth::yes;
}

Range of(Truth truth) {
  if (truth == Truth::open) return {0.0, 1.0, false};
  const double value = truth == Truth::yes ? 1.0 : 0.0;
  return {value, value, true};
}

/// min or max of two, by which of them is the one.
Range lesser(const Range& a, const Range& b, bool smallest) {
  const Truth less = is_less(a, b, true);
  if (less == Truth::yes) return smallest ? a : b;
  if (less == Truth::no) return smallest ? b : a;
  if (smallest) return {std::min(a.low, b.low), std::min(a.high, b.high), false};
  return {std::max(a.low, b.low), std::max(a.high, b.high), false};
}

/// ⌊·⌋ over values that come near their bounds only.
Range floored(const Range& a, bool smooth) {
  const double low = std::floor(a.low);
  if (is_point(a)) return {low, low, smooth};
  const double high = a.is_smooth ? std::max(low, std::ceil(a.high) - 1.0) : std::floor(a.high);
  return {low, high, smooth && low == high};
}

Range modulo(const Range& a, const Range& b) {
  const bool smooth = a.is_smooth && b.is_smooth;
  const Range turns = floored(over(a, b), smooth);
  if (turns.low != turns.high || !std::isfinite(turns.low)) {
    return {std::min(0.0, b.low), std::max(0.0, b.high), false};
  }
  const Range whole = times({turns.low, turns.low, true}, b);
  return {a.low - whole.high, a.high - whole.low, smooth && turns.is_smooth};
}

Range angle(const Range& y, const Range& x) {
  const bool smooth = y.is_smooth && x.is_smooth;
  const bool meets_cut = x.low < 0.0 && y.low <= 0.0 && y.high >= 0.0 && !is_point(y);
  if (meets_cut) {
    return y.low < 0.0 && y.high > 0.0 ? Range{-kPi, kPi, false}
                                       : hull({y.low < 0.0 ? -kPi : kPi, 0.0}, smooth);
  }
  return hull({std::atan2(y.low, x.low), std::atan2(y.low, x.high), std::atan2(y.high, x.low),
               std::atan2(y.high, x.high)},
              smooth);
}

/// sin over [low, high] shifted by `quarter` of a turn: 1 for the cosine.
Range wave(const Range& a, double quarter, double (*function)(double)) {
  Range out = hull({function(a.low), function(a.high)}, a.is_smooth);
  if (!std::isfinite(a.low) || !std::isfinite(a.high)) return {-1.0, 1.0, a.is_smooth};
  const auto has = [&](double peak) {  // a whole number of turns after `peak`, in turns
    return std::floor(a.high / (2.0 * kPi) - peak) >= std::ceil(a.low / (2.0 * kPi) - peak);
  };
  if (has(0.25 - 0.25 * quarter)) out.high = 1.0;
  if (has(0.75 - 0.25 * quarter)) out.low = -1.0;
  return out;
}

Range tangent(const Range& a) {
  const auto branch = [](double x) { return x / kPi - 0.5; };
  const double low = std::floor(branch(a.low)), high = std::ceil(branch(a.high)) - 1.0;
  if (!is_point(a) && !(high <= low)) return anything(false);
  return hull({std::tan(a.low), std::tan(a.high)}, a.is_smooth);
}

/// Of a function that does not fall, on [from, to].
Range rising(const Range& a, double (*function)(double), double from = -kInfinity,
             double to = kInfinity) {
  if (a.low < from || a.high > to) {  // some of it is not a number
    return anything(a.is_smooth && (a.high <= from || a.low >= to));
  }
  return hull({function(a.low), function(a.high)}, a.is_smooth);
}

/// Bisections end where t has no digits left, and after so many evaluations.
constexpr int kMostEvaluations = 4000;
constexpr double kResolution = 4.0 * kEpsilon;
/// As near to 0 as that: 0 itself has no roundings.
constexpr double kNearZero = 1e-300;
/// More halves than any interval of doubles has.
constexpr std::size_t kMostHalves = 2200;

/// The number in [from, to], some roundings wide, that is written shortest: change-overs are written by
/// people, and are to meet knots and samples exactly.
double simplest(double from, double to) {
  constexpr int kMost = 64;
  if (from <= 0.0 && to >= 0.0) return 0.0;
  const auto length = [](double x) {
    char text[40];
    return std::to_chars(text, text + sizeof text, x).ptr - text;
  };
  double best = to, x = from;
  for (int i = 0; i < kMost && x < to; ++i, x = std::nextafter(x, kInfinity)) {
    if (length(x) < length(best)) best = x;
  }
  return best;
}

}  // namespace

/// The operations of an expression on ranges.
class ExpressionRange {
 public:
  using Code = Expression::Code;

  static Range of_two(Code code, const Range& a, const Range& b) {
    const bool smooth = a.is_smooth && b.is_smooth;
    switch (code) {
      case Code::add:
        return hull({a.low + b.low, a.high + b.high}, smooth);
      case Code::subtract:
        return hull({a.low - b.high, a.high - b.low}, smooth);
      case Code::multiply:
        return times(a, b);
      case Code::divide:
        return over(a, b);
      case Code::power:
        return power(a, b);
      case Code::less:
        return of(is_less(a, b, false));
      case Code::at_most:
        return of(is_less(a, b, true));
      case Code::greater:
        return of(is_less(b, a, false));
      case Code::at_least:
        return of(is_less(b, a, true));
      case Code::equal:
        return of(is_equal(a, b));
      case Code::unequal:
        return of(no(is_equal(a, b)));
      case Code::arc_tangent_of_two:
        return angle(a, b);
      case Code::minimum:
        return lesser(a, b, true);
      case Code::maximum:
        return lesser(a, b, false);
      default:
        return modulo(a, b);
    }
  }

  static Range choose(const Range& condition, const Range& a, const Range& b) {
    if (is_point(condition)) {
      Range out = condition.low != 0.0 ? a : b;
      out.is_smooth = out.is_smooth && condition.is_smooth;
      return out;
    }
    // Not 0 over an open interval.
    if (condition.low >= 0.0 || condition.high <= 0.0) {
      if (condition.is_smooth) return a;
    }
    const bool same = is_point(a) && is_point(b) && a.low == b.low && a.is_smooth && b.is_smooth;
    return {std::min(a.low, b.low), std::max(a.high, b.high), same};
  }

  static Range of_one(Code code, const Range& a) {
    switch (code) {
      case Code::negate:
        return {-a.high, -a.low, a.is_smooth};
      case Code::sine:
        return wave(a, 0.0, [](double x) { return std::sin(x); });
      case Code::cosine:
        return wave(a, 1.0, [](double x) { return std::cos(x); });
      case Code::tangent:
        return tangent(a);
      case Code::arc_sine:
        return rising(
            a, [](double x) { return std::asin(x); }, -1.0, 1.0);
      case Code::arc_cosine: {
        const Range out = rising(
            a, [](double x) { return -std::acos(x); }, -1.0, 1.0);
        return {-out.high, -out.low, out.is_smooth};
      }
      case Code::arc_tangent:
        return rising(a, [](double x) { return std::atan(x); });
      case Code::hyperbolic_sine:
        return rising(a, [](double x) { return std::sinh(x); });
      case Code::hyperbolic_cosine: {
        Range out = hull({std::cosh(a.low), std::cosh(a.high)}, a.is_smooth);
        if (has_inside(a, 0.0)) out.low = 1.0;
        return out;
      }
      case Code::hyperbolic_tangent:
        return rising(a, [](double x) { return std::tanh(x); });
      case Code::exponential:
        return rising(a, [](double x) { return std::exp(x); });
      case Code::logarithm:
        return rising(
            a, [](double x) { return std::log(x); }, 0.0);
      case Code::root:
        return rising(
            a, [](double x) { return std::sqrt(x); }, 0.0);
      case Code::magnitude:
        if (a.low >= 0.0) return a;
        if (a.high <= 0.0) return {-a.high, -a.low, a.is_smooth};
        return {0.0, std::max(-a.low, a.high), false};
      case Code::sign_of:
        if (is_point(a)) {
          const double sign = a.low > 0.0 ? 1.0 : a.low < 0.0 ? -1.0 : a.low;
          return {sign, sign, a.is_smooth};
        }
        if (a.low > 0.0 || (a.low == 0.0 && a.is_smooth)) return {1.0, 1.0, true};
        if (a.high < 0.0 || (a.high == 0.0 && a.is_smooth)) return {-1.0, -1.0, true};
        return {a.low < 0.0 ? -1.0 : 0.0, a.high > 0.0 ? 1.0 : 0.0, false};
      case Code::floor_of:
        return floored(a, a.is_smooth);
      case Code::ceiling_of: {
        const Range out = floored({-a.high, -a.low, a.is_smooth}, a.is_smooth);
        return {-out.high, -out.low, out.is_smooth};
      }
      default: {  // rounded, halves away from 0
        const Range up = floored({a.low + 0.5, a.high + 0.5, a.is_smooth}, a.is_smooth);
        if (!is_point(a)) return up;
        const double value = std::round(a.low);
        return {value, value, a.is_smooth};
      }
    }
  }

  static Range evaluate(const Expression& expression, double from, double to) {
    std::array<Range, Expression::kMostDepth> stack;
    std::size_t size = 0;
    for (const Expression::Step& step : expression.steps_) {
      if (step.code == Code::number) {
        stack[size++] = {step.number, step.number, true};
      } else if (step.code == Code::variable) {
        stack[size++] = {from, to, true};
      } else if (step.code == Code::choose) {
        size -= 2;
        stack[size - 1] = choose(stack[size - 1], stack[size], stack[size + 1]);
      } else if (step.code < Code::choose) {
        --size;
        stack[size - 1] = of_two(step.code, stack[size - 1], stack[size]);
      } else {
        stack[size - 1] = of_one(step.code, stack[size - 1]);
      }
    }
    return size > 0 ? stack[0] : Range{0.0, 0.0, true};
  }
};

Expression::Range Expression::over(double from, double to) const {
  return ExpressionRange::evaluate(*this, from, to);
}

bool Expression::has_branches() const {
  return std::ranges::any_of(steps_, [](const Step& step) {
    switch (step.code) {
      case Code::less:
      case Code::at_most:
      case Code::greater:
      case Code::at_least:
      case Code::equal:
      case Code::unequal:
      case Code::choose:
      case Code::divide:
      case Code::power:
      case Code::arc_tangent_of_two:
      case Code::minimum:
      case Code::maximum:
      case Code::modulo:
      case Code::tangent:
      case Code::arc_sine:
      case Code::arc_cosine:
      case Code::logarithm:
      case Code::root:
      case Code::magnitude:
      case Code::sign_of:
      case Code::floor_of:
      case Code::ceiling_of:
      case Code::rounded:
        return true;
      default:
        return false;
    }
  });
}

/// Bisects, the earlier half first.
double Expression::first_change(double after, double until) const {
  // A change-over that `after` stands at is told apart from the next one by roundings only.
  const double begin = after + kResolution * std::abs(after);
  std::array<double, kMostHalves> ends;
  std::size_t waiting = 0;
  ends[waiting++] = until;
  double from = begin;
  for (int evaluations = 0; waiting > 0; ++evaluations) {
    const double to = ends[waiting - 1];
    if (!(from < to) || over(from, to).is_smooth) {
      // Both sides of a change-over that a bisection has hit are smooth.
      const double near = std::max(0.5 * kResolution * std::abs(to), kNearZero);
      if (from < to && to - near > begin && !over(to - near, to + near).is_smooth) {
        return simplest(to - near, to + near);
      }
      from = std::max(from, to);
      --waiting;
      continue;
    }
    const double middle = from < 0.0 && to > 0.0 ? 0.0 : std::midpoint(from, to);
    const bool is_found = !(to - from > kResolution * std::max(std::abs(from), std::abs(to))) ||
                          middle <= from || middle >= to || waiting == kMostHalves;
    if (is_found) {
      const double at = simplest(from, to);
      if (at > begin) return at;
      from = to;
      continue;
    }
    if (evaluations >= kMostEvaluations) {
      return from > begin ? from : std::max(middle, std::nextafter(begin, kInfinity));
    }
    ends[waiting++] = middle;
  }
  return kInfinity;
}

/// The stretch whose bounds reach farthest is halved, until none reaches farther than a value that was met.
std::optional<Expression::Found> Expression::farthest_outside(double from, double to, double low,
                                                              double high, double slack) const {
  struct Stretch {
    double reach, from, to;
    bool operator<(const Stretch& other) const { return reach < other.reach; }
  };
  constexpr std::size_t kMost = 96;
  std::array<Stretch, kMost + 2> heap;
  std::size_t count = 0;
  std::optional<Found> found;
  double farthest = slack;
  const auto add = [&](double begin, double end) {
    if (!(begin < end)) return;
    const Range range = over(begin, end);
    const double reach = std::max(range.high - high, low - range.low);
    if (!(reach > farthest)) return;
    heap[count++] = {reach, begin, end};
    std::push_heap(heap.begin(), heap.begin() + count);
  };
  add(from, to);
  for (std::size_t tried = 0; count > 0 && tried < kMost; ++tried) {
    std::pop_heap(heap.begin(), heap.begin() + count);
    const Stretch own = heap[--count];
    if (!(own.reach > 1.1 * farthest)) break;
    const double middle = std::midpoint(own.from, own.to);
    const double value = (*this)(middle, {});
    const double distance = std::max(value - high, low - value);
    if (distance > farthest && std::isfinite(distance)) {
      farthest = distance;
      found = Found{middle, value};
    }
    if (!(own.from < middle && middle < own.to)) continue;
    add(own.from, middle);
    add(middle, own.to);
  }
  return found;
}

}  // namespace portwave
