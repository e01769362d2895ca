#pragma once

#include <concepts>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/port.hpp"

namespace PORTWAVE_EXPORT portwave {

/// A number that is written down, not computed: arithmetic with it makes the text of an Expression. So a function
/// template of numbers, called with symbols, writes itself down, and a `port_hamiltonian` part takes it as its energy,
/// with exact derivatives and in lanes.
///
/// Comparisons are symbols, too, and not conditions: in place of `if` and `?:` stands `select`. The functions are those
/// of expressions, found by their arguments: `sin(q)`, not `std::sin(q)`.
/// Errors: ConfigError for numbers that are not finite and for names that expressions cannot have, and where the text
///         grows beyond all reading, as by squaring in a loop.
class Symbol {
 public:
  Symbol(double number);
  static Symbol named(std::string_view name);

  const std::string& text() const { return text_; }

  friend Symbol operator+(const Symbol& a, const Symbol& b);
  friend Symbol operator-(const Symbol& a, const Symbol& b);
  friend Symbol operator*(const Symbol& a, const Symbol& b);
  friend Symbol operator/(const Symbol& a, const Symbol& b);
  friend Symbol operator+(const Symbol& a) { return a; }
  friend Symbol operator-(const Symbol& a);
  Symbol& operator+=(const Symbol& other) { return *this = *this + other; }
  Symbol& operator-=(const Symbol& other) { return *this = *this - other; }
  Symbol& operator*=(const Symbol& other) { return *this = *this * other; }
  Symbol& operator/=(const Symbol& other) { return *this = *this / other; }

  /// 1 or 0.
  friend Symbol operator<(const Symbol& a, const Symbol& b);
  friend Symbol operator<=(const Symbol& a, const Symbol& b);
  friend Symbol operator>(const Symbol& a, const Symbol& b);
  friend Symbol operator>=(const Symbol& a, const Symbol& b);
  friend Symbol operator==(const Symbol& a, const Symbol& b);
  friend Symbol operator!=(const Symbol& a, const Symbol& b);

  friend Symbol pow(const Symbol& base, const Symbol& exponent);
  friend Symbol sqrt(const Symbol& x) { return call("sqrt", {x}); }
  friend Symbol exp(const Symbol& x) { return call("exp", {x}); }
  friend Symbol log(const Symbol& x) { return call("log", {x}); }
  friend Symbol sin(const Symbol& x) { return call("sin", {x}); }
  friend Symbol cos(const Symbol& x) { return call("cos", {x}); }
  friend Symbol tan(const Symbol& x) { return call("tan", {x}); }
  friend Symbol asin(const Symbol& x) { return call("asin", {x}); }
  friend Symbol acos(const Symbol& x) { return call("acos", {x}); }
  friend Symbol atan(const Symbol& x) { return call("atan", {x}); }
  friend Symbol sinh(const Symbol& x) { return call("sinh", {x}); }
  friend Symbol cosh(const Symbol& x) { return call("cosh", {x}); }
  friend Symbol tanh(const Symbol& x) { return call("tanh", {x}); }
  friend Symbol abs(const Symbol& x) { return call("abs", {x}); }
  friend Symbol fabs(const Symbol& x) { return call("abs", {x}); }
  friend Symbol sign(const Symbol& x) { return call("sign", {x}); }
  friend Symbol floor(const Symbol& x) { return call("floor", {x}); }
  friend Symbol ceil(const Symbol& x) { return call("ceil", {x}); }
  friend Symbol round(const Symbol& x) { return call("round", {x}); }
  friend Symbol atan2(const Symbol& y, const Symbol& x) { return call("atan2", {y, x}); }
  friend Symbol min(const Symbol& a, const Symbol& b) { return call("min", {a, b}); }
  friend Symbol max(const Symbol& a, const Symbol& b) { return call("max", {a, b}); }
  /// a − b ⌊a/b⌋, of the sign of b.
  friend Symbol mod(const Symbol& a, const Symbol& b) { return call("mod", {a, b}); }
  /// `yes` where `condition` is not 0.
  friend Symbol select(const Symbol& condition, const Symbol& yes, const Symbol& no) {
    return call("if", {condition, yes, no});
  }

 private:
  /// What binds less has parentheses within what binds more.
  enum class Binding { comparison, sum, product, power, whole };

  Symbol(std::string text, Binding binding);
  static Symbol call(std::string_view function, std::initializer_list<Symbol> arguments);
  static Symbol joined(const Symbol& a, std::string_view sign, const Symbol& b, Binding binding);
  std::string within(Binding least) const;

  std::string text_;
  Binding binding_;
};

/// What a function of numbers computes, as the text of an expression of these names:
///   traced([](auto q, auto p) { return p * p / 2 + 1 - cos(q); }, "q", "p")  →  "p*p/2 + 1 - cos(q)"
template <class Function, std::convertible_to<std::string_view>... Names>
std::string traced(const Function& function, const Names&... names) {
  return Symbol(function(Symbol::named(names)...)).text();
}

/// Likewise of all `states` at once: the function takes a std::span<const Symbol>, one for each.
template <class Function>
std::string traced(const Function& function, std::span<const StateVariable> states) {
  std::vector<Symbol> symbols;
  for (const StateVariable& state : states) symbols.push_back(Symbol::named(state.name));
  return Symbol(function(std::span<const Symbol>(symbols))).text();
}

}  // namespace portwave
