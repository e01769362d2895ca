#include "portwave/subsystems/base/expression.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <numbers>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/digest.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave {
namespace {

bool is_name_part(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

}  // namespace

/// Recursive descent, which writes the steps in postfix order.
class ExpressionParser {
 public:
  ExpressionParser(std::string_view text, std::span<const std::string> variables)
      : text_(text), variables_(variables) {}

  Expression parsed() && {
    comparison();
    skip_blanks();
    if (at_ < text_.size()) fail_expecting("an operator or the end");
    return std::move(out_);
  }

  static bool is_function(std::string_view name) {
    return std::ranges::find(kFunctions, name, &Function::name) != std::end(kFunctions);
  }

 private:
  using Code = Expression::Code;

  struct Function {
    std::string_view name;
    Code code;
    int arguments;
  };
  static constexpr Function kFunctions[] = {
      {"sin", Code::sine, 1},
      {"cos", Code::cosine, 1},
      {"tan", Code::tangent, 1},
      {"asin", Code::arc_sine, 1},
      {"acos", Code::arc_cosine, 1},
      {"atan", Code::arc_tangent, 1},
      {"atan2", Code::arc_tangent_of_two, 2},
      {"sinh", Code::hyperbolic_sine, 1},
      {"cosh", Code::hyperbolic_cosine, 1},
      {"tanh", Code::hyperbolic_tangent, 1},
      {"exp", Code::exponential, 1},
      {"log", Code::logarithm, 1},
      {"sqrt", Code::root, 1},
      {"abs", Code::magnitude, 1},
      {"sign", Code::sign_of, 1},
      {"floor", Code::floor_of, 1},
      {"ceil", Code::ceiling_of, 1},
      {"round", Code::rounded, 1},
      {"min", Code::minimum, 2},
      {"max", Code::maximum, 2},
      {"mod", Code::modulo, 2},
      {"if", Code::choose, 3},
  };

  [[noreturn]] void fail(const std::string& what) const {
    throw ConfigError(
        "", fmt::format("in the expression {}, column {}: {}", in_quotes(text_), at_ + 1, what));
  }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool take(char c) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void emit(Code code, int taken, int index = 0, double number = 0.0) {
    out_.steps_.push_back({code, index, number});
    depth_ += 1 - taken;
    if (depth_ > Expression::kMostDepth) fail("it is nested too deeply");
  }

  // Longer operators stand first.
  struct Comparison {
    std::string_view sign;
    Code code;
  };
  static constexpr Comparison kComparisons[] = {
      {"<=", Code::at_most}, {">=", Code::at_least}, {"==", Code::equal},
      {"!=", Code::unequal}, {"<", Code::less},      {">", Code::greater},
  };

  void comparison() {
    sum();
    for (;;) {
      skip_blanks();
      const auto* const found = std::ranges::find_if(kComparisons, [this](const Comparison& each) {
        return text_.substr(at_).starts_with(each.sign);
      });
      if (found == std::end(kComparisons)) return;
      at_ += found->sign.size();
      sum();
      emit(found->code, 2);
    }
  }
  void sum() {
    term();
    for (;;) {
      const Code code = take('+') ? Code::add : take('-') ? Code::subtract : Code::number;
      if (code == Code::number) return;
      term();
      emit(code, 2);
    }
  }
  void term() {
    sign();
    for (;;) {
      const Code code = take('*') ? Code::multiply : take('/') ? Code::divide : Code::number;
      if (code == Code::number) return;
      sign();
      emit(code, 2);
    }
  }
  void sign() {
    int minus = 0;
    for (;;) {
      if (take('-')) {
        ++minus;
      } else if (!take('+')) {
        break;
      }
    }
    power();
    if (minus % 2 == 1) emit(Code::negate, 1);
  }
  void power() {
    primary();
    if (!take('^')) return;
    enter();
    sign();
    --nesting_;
    emit(Code::power, 2);
  }
  void enter() {
    if (++nesting_ > Expression::kMostDepth) fail("it is nested too deeply");
  }
  void primary() {
    skip_blanks();
    if (at_ == text_.size()) fail_expecting("a number, a name or \"(\"");
    const char c = text_[at_];
    if ((c >= '0' && c <= '9') || c == '.') return number();
    if (take('(')) {
      enter();
      comparison();
      --nesting_;
      if (!take(')')) fail_expecting("\")\"");
      return;
    }
    name();
  }
  void number() {
    double value = 0.0;
    const char* const begin = text_.data() + at_;
    const auto parsed = std::from_chars(begin, text_.data() + text_.size(), value);
    if (parsed.ec != std::errc{} || !std::isfinite(value)) fail("this is not a number");
    at_ += static_cast<std::size_t>(parsed.ptr - begin);
    emit(Code::number, 0, 0, value);
  }
  void name() {
    const std::size_t begin = at_;
    std::size_t end = at_;
    while (end < text_.size() && is_name_part(text_[end])) ++end;
    if (end == begin) fail_expecting("a number, a name or \"(\"");
    const std::string_view word = text_.substr(begin, end - begin);
    const auto variable = std::ranges::find(variables_, word);
    if (variable != variables_.end()) {
      at_ = end;
      return emit(Code::variable, 0, static_cast<int>(variable - variables_.begin()));
    }
    if (word == "pi") {
      at_ = end;
      return emit(Code::number, 0, 0, std::numbers::pi);
    }
    const auto* const function = std::ranges::find(kFunctions, word, &Function::name);
    if (function == std::end(kFunctions)) unknown(word);
    at_ = end;
    if (!take('(')) fail(fmt::format("\"(\" is expected after {}", word));
    enter();
    for (int i = 0; i < function->arguments; ++i) {
      if (i > 0 && !take(',')) fail_arguments(*function);
      comparison();
    }
    --nesting_;
    skip_blanks();
    if (at_ < text_.size() && text_[at_] == ',') fail_arguments(*function);
    if (!take(')')) fail_expecting("\")\"");
    emit(function->code, function->arguments);
  }
  /// With the spelling of other languages put right.
  [[noreturn]] void fail_expecting(std::string_view what) const {
    const std::string_view rest = text_.substr(at_);
    const std::string_view hint = rest.starts_with('?')   ? "; conditions are if(a < b, x, y)"
                                  : rest.starts_with('*') ? "; powers are x^2"
                                  : rest.starts_with('&') || rest.starts_with('|')
                                      ? "; \"and\" is min(a < b, c < d), \"or\" is max"
                                      : "";
    fail(fmt::format("{} is expected here{}", what, hint));
  }
  [[noreturn]] void fail_arguments(const Function& function) const {
    fail(fmt::format("{} takes {} number{}", function.name, function.arguments,
                     function.arguments == 1 ? "" : "s"));
  }
  [[noreturn]] void unknown(std::string_view word) const {
    std::vector<std::string> known(variables_.begin(), variables_.end());
    const std::string names = fmt::format("{}", fmt::join(known, ", "));
    std::string functions;
    for (const Function& function : kFunctions) {
      known.emplace_back(function.name);
      functions += fmt::format("{}{}", functions.empty() ? "\nfunctions: " : ", ", function.name);
    }
    const bool is_called = text_.substr(at_ + word.size()).starts_with('(');
    fail(fmt::format("there is no {}.\nnames: {}{}pi.{}{}", in_quotes(word), names,
                     names.empty() ? "" : ", ", is_called ? functions + "." : "",
                     did_you_mean(std::string(word), known)));
  }

  std::string_view text_;
  std::span<const std::string> variables_;
  std::size_t at_ = 0;
  int depth_ = 0, nesting_ = 0;
  Expression out_;
};

Expression Expression::parse(std::string_view text, std::span<const std::string> variables) {
  if (text.size() > kMostLength) {
    throw ConfigError("", fmt::format("an expression must have at most {} characters, got {}",
                                      kMostLength, text.size()));
  }
  Expression out = ExpressionParser(text, variables).parsed();
  out.can_change_over_ = out.has_branches();
  return out;
}

bool Expression::is_name(std::string_view text) {
  const bool begins_with_digit = !text.empty() && text[0] >= '0' && text[0] <= '9';
  return !text.empty() && !begins_with_digit && std::ranges::all_of(text, is_name_part);
}

bool Expression::is_reserved(std::string_view name) {
  return name == "pi" || ExpressionParser::is_function(name);
}

std::uint64_t Expression::digest() const {
  Digest digest;
  for (const Step& step : steps_) {
    digest.add(static_cast<int>(step.code));
    digest.add(step.index);
    digest.add(step.number);
  }
  return digest.value();
}

bool Expression::uses(int variable) const {
  return std::ranges::any_of(steps_, [variable](const Step& step) {
    return step.code == Code::variable && step.index == variable;
  });
}

double Expression::of_two(Code code, double a, double b) {
  switch (code) {
    case Code::add:
      return a + b;
    case Code::subtract:
      return a - b;
    case Code::multiply:
      return a * b;
    case Code::divide:
      return a / b;
    case Code::power:
      return std::pow(a, b);
    case Code::less:
      return a < b ? 1.0 : 0.0;
    case Code::at_most:
      return a <= b ? 1.0 : 0.0;
    case Code::greater:
      return a > b ? 1.0 : 0.0;
    case Code::at_least:
      return a >= b ? 1.0 : 0.0;
    case Code::equal:
      return a == b ? 1.0 : 0.0;
    case Code::unequal:
      return a != b ? 1.0 : 0.0;
    case Code::arc_tangent_of_two:
      return std::atan2(a, b);
    case Code::minimum:
      return std::min(a, b);
    case Code::maximum:
      return std::max(a, b);
    default:  // modulo
      return a - b * std::floor(a / b);
  }
}

double Expression::of_one(Code code, double a) {
  switch (code) {
    case Code::negate:
      return -a;
    case Code::sine:
      return std::sin(a);
    case Code::cosine:
      return std::cos(a);
    case Code::tangent:
      return std::tan(a);
    case Code::arc_sine:
      return std::asin(a);
    case Code::arc_cosine:
      return std::acos(a);
    case Code::arc_tangent:
      return std::atan(a);
    case Code::hyperbolic_sine:
      return std::sinh(a);
    case Code::hyperbolic_cosine:
      return std::cosh(a);
    case Code::hyperbolic_tangent:
      return std::tanh(a);
    case Code::exponential:
      return std::exp(a);
    case Code::logarithm:
      return std::log(a);
    case Code::root:
      return std::sqrt(a);
    case Code::magnitude:
      return std::abs(a);
    case Code::sign_of:
      return a > 0.0 ? 1.0 : a < 0.0 ? -1.0 : a;
    case Code::floor_of:
      return std::floor(a);
    case Code::ceiling_of:
      return std::ceil(a);
    default:  // rounded
      return std::round(a);
  }
}

template <class ValueOf>
double Expression::evaluate(ValueOf value_of) const {
  std::array<double, kMostDepth> stack;
  std::size_t size = 0;
  for (const Step& step : steps_) {
    if (step.code == Code::number) {
      stack[size++] = step.number;
    } else if (step.code == Code::variable) {
      stack[size++] = value_of(static_cast<std::size_t>(step.index));
    } else if (step.code == Code::choose) {
      size -= 2;
      stack[size - 1] = stack[size - 1] != 0.0 ? stack[size] : stack[size + 1];
    } else if (step.code < Code::choose) {
      --size;
      stack[size - 1] = of_two(step.code, stack[size - 1], stack[size]);
    } else {
      stack[size - 1] = of_one(step.code, stack[size - 1]);
    }
  }
  return size > 0 ? stack[0] : 0.0;
}

double Expression::operator()(std::span<const double> values) const {
  return evaluate([values](std::size_t i) { return values[i]; });
}

double Expression::operator()(double first, std::span<const double> others) const {
  return evaluate([first, others](std::size_t i) { return i == 0 ? first : others[i - 1]; });
}

}  // namespace portwave
