#include "portwave/subsystems/catalogue/symbol.hpp"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/expression.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave {
namespace {

/// As many as Expression::parse takes.
constexpr std::size_t kMostCharacters = 10'000;

}  // namespace

Symbol::Symbol(double number)
    : Symbol(fmt::format("{}", number), std::signbit(number) ? Binding::product : Binding::whole) {
  if (!std::isfinite(number)) {
    throw ConfigError("",
                      fmt::format("a number in a traced function must be finite, got {}", number));
  }
}

Symbol::Symbol(std::string text, Binding binding) : text_(std::move(text)), binding_(binding) {
  if (text_.size() <= kMostCharacters) return;
  throw ConfigError(
      "",
      fmt::format("a traced function has more than {} characters as text: what it uses again and "
                  "again is written out each time",
                  kMostCharacters));
}

Symbol Symbol::named(std::string_view name) {
  if (!Expression::is_name(name) || Expression::is_reserved(name)) {
    throw ConfigError(
        "", fmt::format("{} cannot be the name of a number in an expression", in_quotes(name)));
  }
  return {std::string(name), Binding::whole};
}

std::string Symbol::within(Binding least) const {
  return binding_ < least ? "(" + text_ + ")" : text_;
}

/// Text is read from the left, so that what stands on the right has to bind more.
Symbol Symbol::joined(const Symbol& a, std::string_view sign, const Symbol& b, Binding binding) {
  const auto more = static_cast<Binding>(static_cast<int>(binding) + 1);
  return {fmt::format("{}{}{}", a.within(binding), sign, b.within(more)), binding};
}

Symbol Symbol::call(std::string_view function, std::initializer_list<Symbol> arguments) {
  std::string text(function);
  text += '(';
  for (const Symbol& argument : arguments) {
    if (&argument != arguments.begin()) text += ", ";
    text += argument.text_;
  }
  return {text + ")", Binding::whole};
}

// Zeros and ones, as sparse matrices and sums in loops bring them along, are left out.

Symbol operator+(const Symbol& a, const Symbol& b) {
  if (a.text_ == "0") return b;
  if (b.text_ == "0") return a;
  return Symbol::joined(a, " + ", b, Symbol::Binding::sum);
}
Symbol operator-(const Symbol& a, const Symbol& b) {
  if (b.text_ == "0") return a;
  return Symbol::joined(a, " - ", b, Symbol::Binding::sum);
}
Symbol operator*(const Symbol& a, const Symbol& b) {
  if (a.text_ == "0" || b.text_ == "1") return a;
  if (b.text_ == "0" || a.text_ == "1") return b;
  return Symbol::joined(a, "*", b, Symbol::Binding::product);
}
Symbol operator/(const Symbol& a, const Symbol& b) {
  return Symbol::joined(a, "/", b, Symbol::Binding::product);
}
Symbol operator-(const Symbol& a) {
  return {"-" + a.within(Symbol::Binding::power), Symbol::Binding::product};
}

/// Comparisons of comparisons have parentheses on both sides.
Symbol operator<(const Symbol& a, const Symbol& b) {
  return {a.within(Symbol::Binding::sum) + " < " + b.within(Symbol::Binding::sum),
          Symbol::Binding::comparison};
}
Symbol operator<=(const Symbol& a, const Symbol& b) {
  return {a.within(Symbol::Binding::sum) + " <= " + b.within(Symbol::Binding::sum),
          Symbol::Binding::comparison};
}
Symbol operator>(const Symbol& a, const Symbol& b) { return b < a; }
Symbol operator>=(const Symbol& a, const Symbol& b) { return b <= a; }
Symbol operator==(const Symbol& a, const Symbol& b) {
  return {a.within(Symbol::Binding::sum) + " == " + b.within(Symbol::Binding::sum),
          Symbol::Binding::comparison};
}
Symbol operator!=(const Symbol& a, const Symbol& b) {
  return {a.within(Symbol::Binding::sum) + " != " + b.within(Symbol::Binding::sum),
          Symbol::Binding::comparison};
}

Symbol pow(const Symbol& base, const Symbol& exponent) {
  return {base.within(Symbol::Binding::whole) + "^" + exponent.within(Symbol::Binding::whole),
          Symbol::Binding::power};
}

}  // namespace portwave
