#include <array>
#include <cmath>

#include "portwave/subsystems/base/expression.hpp"

namespace portwave {
namespace {

/// A value and its derivative.
struct Dual {
  double value = 0.0;
  double slope = 0.0;
};

/// factor · x, but 0 where the factor is: what does not depend on the variable has no slope, also where a
/// function is vertical.
double times(double slope, double factor) { return slope == 0.0 ? 0.0 : slope * factor; }

}  // namespace

double Expression::slope(double at) const {
  std::array<Dual, kMostDepth> stack;
  std::size_t size = 0;
  const auto of_one_number = [](Code code, const Dual& a) {
    const double x = a.value;
    switch (code) {
      case Code::negate:
        return -a.slope;
      case Code::sine:
        return times(a.slope, std::cos(x));
      case Code::cosine:
        return times(a.slope, -std::sin(x));
      case Code::tangent:
        return times(a.slope, 1.0 + std::tan(x) * std::tan(x));
      case Code::arc_sine:
        return times(a.slope, 1.0 / std::sqrt(1.0 - x * x));
      case Code::arc_cosine:
        return times(a.slope, -1.0 / std::sqrt(1.0 - x * x));
      case Code::arc_tangent:
        return times(a.slope, 1.0 / (1.0 + x * x));
      case Code::hyperbolic_sine:
        return times(a.slope, std::cosh(x));
      case Code::hyperbolic_cosine:
        return times(a.slope, std::sinh(x));
      case Code::hyperbolic_tangent:
        return times(a.slope, 1.0 - std::tanh(x) * std::tanh(x));
      case Code::exponential:
        return times(a.slope, std::exp(x));
      case Code::logarithm:
        return times(a.slope, 1.0 / x);
      case Code::root:
        return times(a.slope, 0.5 / std::sqrt(x));
      case Code::magnitude:
        return x < 0.0 ? -a.slope : a.slope;
      default:  // sign, floor, ceil, round
        return 0.0;
    }
  };
  const auto of_two_numbers = [](Code code, const Dual& a, const Dual& b) {
    switch (code) {
      case Code::add:
        return a.slope + b.slope;
      case Code::subtract:
        return a.slope - b.slope;
      case Code::multiply:
        return times(a.slope, b.value) + times(b.slope, a.value);
      case Code::divide:
        return times(a.slope, 1.0 / b.value) - times(b.slope, a.value / (b.value * b.value));
      case Code::power:
        return times(a.slope, b.value * std::pow(a.value, b.value - 1.0)) +
               times(b.slope, std::pow(a.value, b.value) * std::log(a.value));
      case Code::arc_tangent_of_two: {
        const double square = a.value * a.value + b.value * b.value;
        return times(a.slope, b.value / square) - times(b.slope, a.value / square);
      }
      case Code::minimum:
        return b.value < a.value ? b.slope : a.slope;
      case Code::maximum:
        return b.value > a.value ? b.slope : a.slope;
      case Code::modulo:
        return a.slope - times(b.slope, std::floor(a.value / b.value));
      default:  // comparisons
        return 0.0;
    }
  };
  for (const Step& step : steps_) {
    if (step.code == Code::number) {
      stack[size++] = {step.number, 0.0};
    } else if (step.code == Code::variable) {
      stack[size++] = {at, 1.0};
    } else if (step.code == Code::choose) {
      size -= 2;
      stack[size - 1] = stack[size - 1].value != 0.0 ? stack[size] : stack[size + 1];
    } else if (step.code < Code::choose) {
      --size;
      const Dual a = stack[size - 1], b = stack[size];
      stack[size - 1] = {of_two(step.code, a.value, b.value), of_two_numbers(step.code, a, b)};
    } else {
      const Dual a = stack[size - 1];
      stack[size - 1] = {of_one(step.code, a.value), of_one_number(step.code, a)};
    }
  }
  return size > 0 ? stack[0].slope : 0.0;
}

}  // namespace portwave
