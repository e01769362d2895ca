#include "signals/expression.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave {

/// Recursive descent, which writes the steps in postfix order.
class ExpressionParser {
 public:
  ExpressionParser(std::string_view text, std::span<const std::string> variables)
      : text_(text), variables_(variables) {}

  Expression run() && {
    comparison();
    skip_blanks();
    if (at_ < text_.size()) fail("an operator or the end is expected here");
    return std::move(out_);
  }

 private:
  using Code = Expression::Code;

  struct Function {
    std::string_view name;
    Code code;
    int arguments;
  };
  static constexpr Function kFunctions[] = {
      {"sin", Code::sine, 1},        {"cos", Code::cosine, 1},
      {"tan", Code::tangent, 1},     {"asin", Code::arc_sine, 1},
      {"acos", Code::arc_cosine, 1}, {"atan", Code::arc_tangent, 1},
      {"exp", Code::exponential, 1}, {"log", Code::logarithm, 1},
      {"sqrt", Code::root, 1},       {"abs", Code::magnitude, 1},
      {"floor", Code::floor_of, 1},  {"tanh", Code::hyperbolic_tangent, 1},
      {"min", Code::minimum, 2},     {"max", Code::maximum, 2},
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

  void comparison() {
    sum();
    for (;;) {
      const Code code = take('<') ? Code::less : take('>') ? Code::greater : Code::number;
      if (code == Code::number) return;
      sum();
      emit(code, 2);
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
    if (at_ == text_.size()) fail("a number, a name or \"(\" is expected here");
    const char c = text_[at_];
    if ((c >= '0' && c <= '9') || c == '.') return number();
    if (take('(')) {
      enter();
      comparison();
      --nesting_;
      if (!take(')')) fail("\")\" is expected here");
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
    const auto is_part = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    const std::size_t begin = at_;
    std::size_t end = at_;
    while (end < text_.size() && is_part(text_[end])) ++end;
    if (end == begin) fail("a number, a name or \"(\" is expected here");
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
      if (i > 0 && !take(',')) fail(fmt::format("{} takes {} numbers", word, function->arguments));
      comparison();
    }
    --nesting_;
    if (!take(')')) fail("\")\" is expected here");
    emit(function->code, function->arguments);
  }
  [[noreturn]] void unknown(std::string_view word) const {
    std::vector<std::string> known(variables_.begin(), variables_.end());
    const std::string names = fmt::format("{}", fmt::join(known, ", "));
    for (const Function& function : kFunctions) known.emplace_back(function.name);
    fail(fmt::format("there is no {}.\nnames: {}{}pi.{}", in_quotes(word), names,
                     names.empty() ? "" : ", ", did_you_mean(std::string(word), known)));
  }

  std::string_view text_;
  std::span<const std::string> variables_;
  std::size_t at_ = 0;
  int depth_ = 0, nesting_ = 0;
  Expression out_;
};

Expression Expression::parse(std::string_view text, std::span<const std::string> variables) {
  return ExpressionParser(text, variables).run();
}

double Expression::operator()(std::span<const double> values) const {
  std::array<double, kMostDepth> stack;
  std::size_t size = 0;
  for (const Step& step : steps_) {
    if (step.code == Code::number || step.code == Code::variable) {
      stack[size++] =
          step.code == Code::number ? step.number : values[static_cast<std::size_t>(step.index)];
      continue;
    }
    const bool is_binary =
        (step.code >= Code::add && step.code <= Code::greater) || step.code >= Code::minimum;
    const double b = stack[size - 1], a = is_binary ? stack[size - 2] : 0.0;
    if (is_binary) --size;
    double& out = stack[size - 1];
    switch (step.code) {
      case Code::add:
        out = a + b;
        break;
      case Code::subtract:
        out = a - b;
        break;
      case Code::multiply:
        out = a * b;
        break;
      case Code::divide:
        out = a / b;
        break;
      case Code::power:
        out = std::pow(a, b);
        break;
      case Code::less:
        out = a < b ? 1.0 : 0.0;
        break;
      case Code::greater:
        out = a > b ? 1.0 : 0.0;
        break;
      case Code::negate:
        out = -b;
        break;
      case Code::sine:
        out = std::sin(b);
        break;
      case Code::cosine:
        out = std::cos(b);
        break;
      case Code::tangent:
        out = std::tan(b);
        break;
      case Code::arc_sine:
        out = std::asin(b);
        break;
      case Code::arc_cosine:
        out = std::acos(b);
        break;
      case Code::arc_tangent:
        out = std::atan(b);
        break;
      case Code::exponential:
        out = std::exp(b);
        break;
      case Code::logarithm:
        out = std::log(b);
        break;
      case Code::root:
        out = std::sqrt(b);
        break;
      case Code::magnitude:
        out = std::abs(b);
        break;
      case Code::floor_of:
        out = std::floor(b);
        break;
      case Code::hyperbolic_tangent:
        out = std::tanh(b);
        break;
      case Code::minimum:
        out = std::min(a, b);
        break;
      case Code::maximum:
        out = std::max(a, b);
        break;
      default:
        break;
    }
  }
  return stack[0];
}

}  // namespace portwave
