#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// An arithmetic expression in named variables, such as "0.5*mass + sin(2*pi*t)".
///
/// Operators, the strongest first: ^ (binds to the right, and stronger than a sign: -2^2 is −4);
/// signs; * /; + -; < <= > >= == != (1 where true, 0 elsewhere); parentheses. The constant pi.
/// Functions: sin cos tan asin acos atan atan2(y, x) sinh cosh tanh exp log (natural) sqrt abs sign
/// floor ceil round min(a, b) max(a, b) mod(a, b) = a − b floor(a/b), and if(c, a, b): a where c is
/// not 0, else b. Angles are in radians. Arithmetic is that of double: 1/0 is infinite.
/// Threads: immutable. Cost of a value: one pass over the operations.
class Expression {
 public:
  /// Variables are numbered in the order given; their names hide those of functions and pi.
  /// Errors: ConfigError, `where` being empty, with the column of the error, counted from 1.
  static Expression parse(std::string_view text, std::span<const std::string> variables);

  /// Whether a name may be that of a variable: letters, digits and _, not beginning with a digit.
  static bool is_name(std::string_view text);
  /// True of "pi" and the names of functions.
  static bool is_reserved(std::string_view name);

  /// The value for values of the variables, one for each name. Does not allocate.
  double operator()(std::span<const double> values) const;
  /// The same, with the first variable separate from the others.
  double operator()(double first, std::span<const double> others) const;
  /// The derivative of an expression of one variable, by forward differentiation; where it changes over, or
  /// jumps, that of the branch of the value there.
  double slope(double at) const;
  /// Equal for expressions with the same operations in the same order.
  std::uint64_t digest() const;
  /// True where the value may depend on the variable of this number.
  bool uses(int variable) const;

  /// Bounds and smoothness of an expression of one variable over an open interval of it.
  struct Range {
    double low, high;  ///< bounds of its values, but for roundings
    /// True only if it is shown that no comparison, min, max, abs, sign, floor, ceil, round, mod or
    /// condition that counts changes over within, and that no function leaves its domain.
    bool is_smooth;
  };
  /// Over from < t < to, by interval arithmetic (Moore, Interval Analysis, 1966).
  Range over(double from, double to) const;
  /// The first t in (after, until] where it changes over, in the sense of `Range::is_smooth`, to about
  /// a rounding of t; infinite where there is none. At most some thousand evaluations: if these do not
  /// decide, as near accumulating changes, a t before which nothing changes over.
  double first_change(double after, double until) const;
  /// A value and its time.
  struct Found {
    double time;
    double value;
  };
  /// A value in (from, to) that is outside [low, high] by more than `slack`: about the farthest one. Empty where
  /// interval arithmetic proves that there is none, and where some dozen evaluations do not decide.
  std::optional<Found> farthest_outside(double from, double to, double low, double high,
                                        double slack) const;
  /// Whether any operation in it can change over.
  bool can_change_over() const { return can_change_over_; }

 private:
  friend class ExpressionParser;
  friend class ExpressionRange;
  friend class ExpressionGraph;
  enum class Code : std::uint8_t {
    number,
    variable,
    // of two numbers
    add,
    subtract,
    multiply,
    divide,
    power,
    less,
    at_most,
    greater,
    at_least,
    equal,
    unequal,
    arc_tangent_of_two,
    minimum,
    maximum,
    modulo,
    // of three
    choose,
    // of one
    negate,
    sine,
    cosine,
    tangent,
    arc_sine,
    arc_cosine,
    arc_tangent,
    hyperbolic_sine,
    hyperbolic_cosine,
    hyperbolic_tangent,
    exponential,
    logarithm,
    root,
    magnitude,
    sign_of,
    floor_of,
    ceiling_of,
    rounded,
  };
  struct Step {
    Code code;
    int index = 0;  // of the variable
    double number = 0.0;
  };
  static constexpr int kMostDepth = 64;
  static constexpr std::size_t kMostLength = 10'000;
  template <class ValueOf>
  double evaluate(ValueOf value_of) const;
  static double of_one(Code code, double a);
  static double of_two(Code code, double a, double b);

  bool has_branches() const;

  bool can_change_over_ = false;
  std::vector<Step> steps_;  // in postfix order, for a stack of at most kMostDepth
};

}  // namespace portwave
