#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace portwave {

/// An arithmetic expression in named variables, such as "0.5*mass + sin(2*pi*t)". Operators + - * / ^
/// and < > (1 where true, 0 elsewhere), parentheses, pi, and the functions sin cos tan asin acos
/// atan exp log sqrt abs floor tanh min max. ^ binds to the right and stronger than a sign: -2^2 is
/// −4.
class Expression {
 public:
  /// Variables are numbered in the order given. Errors: ConfigError, `where` being empty, with the
  /// column of what is wrong, counted from 1.
  static Expression parse(std::string_view text, std::span<const std::string> variables);

  /// The value for values of the variables. Does not allocate.
  double operator()(std::span<const double> values) const;

 private:
  friend class ExpressionParser;
  enum class Code : std::uint8_t {
    number,
    variable,
    add,
    subtract,
    multiply,
    divide,
    power,
    less,
    greater,
    negate,
    sine,
    cosine,
    tangent,
    arc_sine,
    arc_cosine,
    arc_tangent,
    exponential,
    logarithm,
    root,
    magnitude,
    floor_of,
    hyperbolic_tangent,
    minimum,
    maximum
  };
  struct Step {
    Code code;
    int index = 0;  // of the variable
    double number = 0.0;
  };
  static constexpr int kMostDepth = 64;

  std::vector<Step> steps_;  // in postfix order, for a stack of at most kMostDepth
};

}  // namespace portwave
