#include "portwave/subsystems/base/expression_graph.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace portwave {

ExpressionGraph::ExpressionGraph(int variables) : variables_(variables) {
  for (int i = 0; i < variables; ++i) {
    insert({.code = Code::variable, .arguments = {-1, -1, -1}, .index = i});
  }
}

int ExpressionGraph::arity(Code code) {
  if (code <= Code::variable) return 0;
  if (code < Code::choose) return 2;
  return code == Code::choose ? 3 : 1;
}

ExpressionGraph::Node ExpressionGraph::insert(Operation operation) {
  const auto& [a, b, c] = operation.arguments;
  const Key key{
      operation.code, a, b, c, operation.index, std::bit_cast<std::uint64_t>(operation.number)};
  const auto [place, is_new] = known_.try_emplace(key, size());
  if (is_new) operations_.push_back(operation);
  return place->second;
}

ExpressionGraph::Node ExpressionGraph::number(double value) {
  return insert({.code = Code::number, .arguments = {-1, -1, -1}, .index = 0, .number = value});
}

std::optional<double> ExpressionGraph::number_of(Node node) const {
  return at(node).code == Code::number ? std::optional(at(node).number) : std::nullopt;
}

ExpressionGraph::Node ExpressionGraph::add(const Expression& expression,
                                           std::span<const Node> values) {
  std::vector<Node> stack;
  const auto taken = [&stack] {
    const Node top = stack.back();
    stack.pop_back();
    return top;
  };
  for (const Expression::Step& step : expression.steps_) {
    if (step.code == Code::number) {
      stack.push_back(number(step.number));
    } else if (step.code == Code::variable) {
      stack.push_back(values[static_cast<std::size_t>(step.index)]);
    } else if (step.code == Code::choose) {
      const Node no = taken(), yes = taken(), condition = taken();
      stack.push_back(chosen(condition, yes, no));
    } else if (step.code < Code::choose) {
      const Node b = taken(), a = taken();
      stack.push_back(of_two(step.code, a, b));
    } else {
      stack.push_back(of_one(step.code, taken()));
    }
  }
  return stack.empty() ? number(0.0) : stack.back();
}

ExpressionGraph::Node ExpressionGraph::of_one(Code code, Node a) {
  if (code == Code::negate) return negative(a);
  if (const auto own = number_of(a)) return number(Expression::of_one(code, *own));
  return insert({.code = code, .arguments = {a, -1, -1}});
}

ExpressionGraph::Node ExpressionGraph::of_two(Code code, Node a, Node b) {
  switch (code) {
    case Code::add:
      return sum(a, b);
    case Code::subtract:
      return difference(a, b);
    case Code::multiply:
      return product(a, b);
    case Code::divide:
      return quotient(a, b);
    case Code::power:
      return power(a, b);
    default:
      break;
  }
  const auto x = number_of(a), y = number_of(b);
  if (x && y) return number(Expression::of_two(code, *x, *y));
  return insert({.code = code, .arguments = {a, b, -1}});
}

ExpressionGraph::Node ExpressionGraph::negative(Node a) { return scaled(-1.0, a); }

/// factor·a. A product with a number holds it first; −1 times what is no product is its negative.
ExpressionGraph::Node ExpressionGraph::scaled(double factor, Node a) {
  if (factor == 0.0) return number(0.0);
  if (factor == 1.0) return a;
  const Operation own = at(a);
  if (own.code == Code::number) return number(factor * own.number);
  if (own.code == Code::negate) return scaled(-factor, own.arguments[0]);
  if (own.code == Code::multiply) {
    if (const auto inner = number_of(own.arguments[0])) {
      return scaled(factor * *inner, own.arguments[1]);
    }
  }
  if (factor == -1.0 && own.code == Code::subtract) {
    return difference(own.arguments[1], own.arguments[0]);
  }
  if (factor == -1.0) return insert({.code = Code::negate, .arguments = {a, -1, -1}});
  return insert({.code = Code::multiply, .arguments = {number(factor), a, -1}});
}

ExpressionGraph::Node ExpressionGraph::sum(Node a, Node b) {
  const auto x = number_of(a), y = number_of(b);
  if (x && y) return number(*x + *y);
  if (is_zero(a)) return b;
  if (is_zero(b)) return a;
  if (a == b) return scaled(2.0, a);
  if (at(b).code == Code::negate) return difference(a, at(b).arguments[0]);
  if (at(a).code == Code::negate) return difference(b, at(a).arguments[0]);
  return insert({.code = Code::add, .arguments = {std::min(a, b), std::max(a, b), -1}});
}

ExpressionGraph::Node ExpressionGraph::difference(Node a, Node b) {
  const auto x = number_of(a), y = number_of(b);
  if (x && y) return number(*x - *y);
  if (is_zero(b)) return a;
  if (is_zero(a)) return negative(b);
  if (a == b) return number(0.0);
  if (at(b).code == Code::negate) return sum(a, at(b).arguments[0]);
  if (const auto exact = without_cancellation(a, b)) return *exact;
  if (const auto exact = without_cancellation(b, a)) return negative(*exact);
  return insert({.code = Code::subtract, .arguments = {a, b, -1}});
}

/// c − c cos a, or c − c cosh a.
std::optional<ExpressionGraph::Node> ExpressionGraph::without_cancellation(Node a, Node b) {
  const auto whole = number_of(a);
  if (!whole) return std::nullopt;
  double factor = 1.0;
  if (const Operation& own = at(b); own.code == Code::multiply) {
    factor = number_of(own.arguments[0]).value_or(0.0);
    b = own.arguments[1];
  }
  const Operation own = at(b);
  const bool is_cosine = own.code == Code::cosine;
  if (factor != *whole || !(is_cosine || own.code == Code::hyperbolic_cosine)) return std::nullopt;
  const Node half = scaled(0.5, own.arguments[0]);
  const Node sine = of_one(is_cosine ? Code::sine : Code::hyperbolic_sine, half);
  return scaled(is_cosine ? 2.0 * factor : -2.0 * factor, power(sine, number(2.0)));
}

/// Half of whole angles, as derivatives of sin²(a/2) bring them: sin(a/2) cos(a/2) = sin(a)/2, and so of sinh.
std::optional<ExpressionGraph::Node> ExpressionGraph::sine_of_whole(Node a, Node b) {
  if (at(a).code == Code::cosine || at(a).code == Code::hyperbolic_cosine) std::swap(a, b);
  const Operation sine = at(a), cosine = at(b);
  const bool fits = (sine.code == Code::sine && cosine.code == Code::cosine) ||
                    (sine.code == Code::hyperbolic_sine && cosine.code == Code::hyperbolic_cosine);
  if (!fits || sine.arguments[0] != cosine.arguments[0]) return std::nullopt;
  const Operation half = at(sine.arguments[0]);
  if (half.code != Code::multiply || number_of(half.arguments[0]) != 0.5) return std::nullopt;
  return scaled(0.5, of_one(sine.code, half.arguments[1]));
}

/// Numbers and signs of the factors are taken out of them.
ExpressionGraph::Node ExpressionGraph::product(Node a, Node b) {
  if (const auto x = number_of(a)) return scaled(*x, b);
  if (const auto y = number_of(b)) return scaled(*y, a);
  double factor = 1.0;
  for (Node* each : {&a, &b}) {
    const Operation own = at(*each);
    if (own.code == Code::negate) {
      factor = -factor;
      *each = own.arguments[0];
    } else if (own.code == Code::multiply) {
      const auto inner = number_of(own.arguments[0]);
      if (!inner) continue;
      factor *= *inner;
      *each = own.arguments[1];
    }
  }
  if (const auto sine = sine_of_whole(a, b)) return scaled(factor, *sine);
  const Node both =
      a == b ? power(a, number(2.0))
             : insert({.code = Code::multiply, .arguments = {std::min(a, b), std::max(a, b), -1}});
  return scaled(factor, both);
}

ExpressionGraph::Node ExpressionGraph::quotient(Node a, Node b) {
  const auto x = number_of(a), y = number_of(b);
  if (x && y) return number(*x / *y);
  if (y && std::isfinite(1.0 / *y) && 1.0 / *y != 0.0) return scaled(1.0 / *y, a);
  if (is_zero(a)) return a;
  if (a == b) return number(1.0);
  return insert({.code = Code::divide, .arguments = {a, b, -1}});
}

ExpressionGraph::Node ExpressionGraph::power(Node a, Node b) {
  const auto x = number_of(a), y = number_of(b);
  if (x && y) return number(std::pow(*x, *y));
  if (y == 0.0) return number(1.0);
  if (y == 1.0) return a;
  if (y == 0.5) return of_one(Code::root, a);
  return insert({.code = Code::power, .arguments = {a, b, -1}});
}

ExpressionGraph::Node ExpressionGraph::chosen(Node condition, Node yes, Node no) {
  if (const auto known = number_of(condition)) return *known != 0.0 ? yes : no;
  if (yes == no) return yes;
  return insert({.code = Code::choose, .arguments = {condition, yes, no}});
}

ExpressionGraph::Node ExpressionGraph::with_arguments(Node node,
                                                      const std::array<Node, 3>& arguments) {
  if (std::ranges::equal(at(node).arguments, arguments)) return node;
  return copied(Operation(at(node)), arguments);
}

ExpressionGraph::Node ExpressionGraph::copied(const Operation& operation,
                                              const std::array<Node, 3>& arguments) {
  switch (arity(operation.code)) {
    case 0:
      return number(operation.number);
    case 1:
      return of_one(operation.code, arguments[0]);
    case 2:
      return of_two(operation.code, arguments[0], arguments[1]);
    default:
      return chosen(arguments[0], arguments[1], arguments[2]);
  }
}

/// By repeated squaring, from the highest bit of the exponent on.
ExpressionGraph::Node ExpressionGraph::expanded(Node power) {
  const Operation own = at(power);
  if (own.code != Code::power) return power;
  const auto exponent = number_of(own.arguments[1]);
  if (!exponent || std::trunc(*exponent) != *exponent || std::abs(*exponent) > kMostFactors) {
    return power;
  }
  const auto times = [this](Node a, Node b) {
    return insert({.code = Code::multiply, .arguments = {std::min(a, b), std::max(a, b), -1}});
  };
  const auto count = static_cast<unsigned>(std::abs(*exponent));
  Node out = own.arguments[0];
  for (int bit = std::bit_width(count) - 2; bit >= 0; --bit) {
    out = times(out, out);
    if ((count >> bit & 1U) != 0) out = times(out, own.arguments[0]);
  }
  if (*exponent > 0.0) return out;
  return insert({.code = Code::divide, .arguments = {number(1.0), out, -1}});
}

std::vector<bool> ExpressionGraph::reached_from(Node node) const {
  std::vector<bool> reached(static_cast<std::size_t>(node) + 1, false);
  reached.back() = true;
  for (Node i = node; i >= 0; --i) {
    if (!reached[static_cast<std::size_t>(i)]) continue;
    for (const Node argument : at(i).arguments) {
      if (argument >= 0) reached[static_cast<std::size_t>(argument)] = true;
    }
  }
  return reached;
}

bool ExpressionGraph::depends_on(Node node, int variable) const {
  return variable <= node && reached_from(node)[static_cast<std::size_t>(variable)];
}

std::vector<bool> ExpressionGraph::change_over_by(Node node) const {
  const std::vector<bool> reached = reached_from(node);
  std::vector<bool> in_one(reached.size(), false);  // part of an operation that can change over
  for (Node i = node; i >= 0; --i) {
    if (!reached[static_cast<std::size_t>(i)]) continue;
    const Code code = at(i).code;
    const bool compares = code >= Code::less && code <= Code::unequal;
    const bool selects = code >= Code::minimum && code <= Code::choose;
    const bool own =
        in_one[static_cast<std::size_t>(i)] || compares || selects || code >= Code::magnitude;
    if (!own) continue;
    in_one[static_cast<std::size_t>(i)] = true;
    for (const Node argument : at(i).arguments) {
      if (argument >= 0) in_one[static_cast<std::size_t>(argument)] = true;
    }
  }
  in_one.resize(static_cast<std::size_t>(variables_), false);
  return in_one;
}

bool ExpressionGraph::can_change_over(Node node) const {
  const std::vector<bool> by = change_over_by(node);
  return std::find(by.begin(), by.end(), true) != by.end();
}

std::optional<int> ExpressionGraph::degree(Node node) const {
  const std::vector<bool> reached = reached_from(node);
  std::vector<std::optional<int>> degrees(reached.size());
  for (Node i = 0; i <= node; ++i) {
    if (!reached[static_cast<std::size_t>(i)]) continue;
    std::optional<int>& own = degrees[static_cast<std::size_t>(i)];
    const Operation& operation = at(i);
    const auto of = [&](int k) {
      return degrees[static_cast<std::size_t>(operation.arguments[k])];
    };
    switch (operation.code) {
      case Code::number:
        own = 0;
        break;
      case Code::variable:
        own = 1;
        break;
      case Code::negate:
        own = of(0);
        break;
      case Code::add:
      case Code::subtract:
        if (of(0) && of(1)) own = std::max(*of(0), *of(1));
        break;
      case Code::multiply:
        if (of(0) && of(1)) own = *of(0) + *of(1);
        break;
      case Code::power: {
        const auto exponent = number_of(operation.arguments[1]);
        const bool is_whole = exponent && *exponent > 0.0 && std::trunc(*exponent) == *exponent;
        if (is_whole && *exponent <= kMostFactors && of(0)) {
          own = *of(0) * static_cast<int>(*exponent);
        }
        break;
      }
      default:
        break;
    }
    if (own && *own > 1'000'000) own.reset();
  }
  return degrees.back();
}

ExpressionGraph::Node ExpressionGraph::magnitude(Node of) {
  const std::vector<bool> reached = reached_from(of);
  std::vector<Node> sizes(reached.size(), -1);
  // (x − c)² near c has the rounding of x − c times its slope there, not that of (|x| + |c|)².
  std::vector<bool> is_sum(reached.size(), false);
  for (Node i = 0; i <= of; ++i) {
    if (!reached[static_cast<std::size_t>(i)]) continue;
    const Operation own = at(i);  // a copy: what is added moves them
    const auto size = [&](int k) { return sizes[static_cast<std::size_t>(own.arguments[k])]; };
    const auto value = [&](int k) { return of_one(Code::magnitude, own.arguments[k]); };
    const auto adds = [&](int k) { return is_sum[static_cast<std::size_t>(own.arguments[k])]; };
    const auto least = [&](Node a, Node b) { return copied({.code = Code::minimum}, {a, b, -1}); };
    Node& out = sizes[static_cast<std::size_t>(i)];
    switch (own.code) {
      case Code::add:
      case Code::subtract:
        out = sum(size(0), size(1));
        is_sum[static_cast<std::size_t>(i)] = true;
        break;
      case Code::multiply:
        out = product(size(0), size(1));
        is_sum[static_cast<std::size_t>(i)] = adds(0) || adds(1);
        if ((adds(0) && !number_of(own.arguments[1])) || (adds(1) && !number_of(own.arguments[0])))
          out = least(out, sum(product(size(0), value(1)), product(value(0), size(1))));
        break;
      case Code::divide:
        out = quotient(size(0), value(1));
        is_sum[static_cast<std::size_t>(i)] = adds(0);
        break;
      case Code::negate:
        out = size(0);
        is_sum[static_cast<std::size_t>(i)] = adds(0);
        break;
      case Code::minimum:
      case Code::maximum:
        out = copied({.code = Code::maximum}, {size(0), size(1), -1});
        is_sum[static_cast<std::size_t>(i)] = adds(0) || adds(1);
        break;
      case Code::magnitude:
        out = size(0);
        is_sum[static_cast<std::size_t>(i)] = adds(0);
        break;
      case Code::choose:
        out = chosen(own.arguments[0], size(1), size(2));
        is_sum[static_cast<std::size_t>(i)] = adds(1) || adds(2);
        break;
      case Code::power: {
        const auto exponent = number_of(own.arguments[1]);
        const bool is_whole = exponent && *exponent > 0.0 && std::trunc(*exponent) == *exponent;
        out = is_whole ? power(size(0), own.arguments[1]) : of_one(Code::magnitude, i);
        if (is_whole && adds(0)) {
          is_sum[static_cast<std::size_t>(i)] = true;
          const Node slope = product(own.arguments[1], power(value(0), number(*exponent - 1.0)));
          out = least(out, product(slope, size(0)));
        }
        break;
      }
      default:
        out = of_one(Code::magnitude, i);
        break;
    }
  }
  return sizes.back();
}

std::vector<ExpressionGraph::Node> ExpressionGraph::gradient(Node of) {
  const Node zero = number(0.0);
  std::vector<Node> slopes(static_cast<std::size_t>(of) + 1, zero);
  slopes.back() = number(1.0);
  for (Node i = of; i >= variables_; --i) {
    const Node slope = slopes[static_cast<std::size_t>(i)];
    if (slope != zero) add_slopes(i, slope, slopes);
  }
  slopes.resize(static_cast<std::size_t>(variables_), zero);
  return slopes;
}

/// What a node of this slope adds to those of its arguments.
void ExpressionGraph::add_slopes(Node node, Node slope, std::vector<Node>& slopes) {
  const Operation own = at(node);  // a copy: the graph grows
  const auto& [a, b, c] = own.arguments;
  const auto add = [&](Node to, Node what) {
    Node& place = slopes[static_cast<std::size_t>(to)];
    place = sum(place, what);
  };
  const Node one = number(1.0), zero = number(0.0), two = number(2.0);
  switch (own.code) {
    case Code::number:
    case Code::variable:
      return;
    case Code::add:
      add(a, slope);
      return add(b, slope);
    case Code::subtract:
      add(a, slope);
      return add(b, negative(slope));
    case Code::multiply:
      add(a, product(slope, b));
      return add(b, product(slope, a));
    case Code::divide: {
      const Node share = quotient(slope, b);
      add(a, share);
      return add(b, negative(product(share, node)));
    }
    case Code::power:
      add(a, product(slope, product(b, power(a, difference(b, one)))));
      if (!number_of(b)) add(b, product(slope, product(node, of_one(Code::logarithm, a))));
      return;
    case Code::arc_tangent_of_two: {
      const Node share = quotient(slope, sum(power(a, two), power(b, two)));
      add(a, product(share, b));
      return add(b, negative(product(share, a)));
    }
    case Code::minimum:
    case Code::maximum: {
      const Node second = of_two(own.code == Code::minimum ? Code::less : Code::greater, b, a);
      add(a, chosen(second, zero, slope));
      return add(b, chosen(second, slope, zero));
    }
    case Code::modulo:
      add(a, slope);
      return add(b, negative(product(slope, of_one(Code::floor_of, quotient(a, b)))));
    case Code::choose:
      add(b, chosen(a, slope, zero));
      return add(c, chosen(a, zero, slope));
    case Code::negate:
      return add(a, negative(slope));
    case Code::sine:
      return add(a, product(slope, of_one(Code::cosine, a)));
    case Code::cosine:
      return add(a, negative(product(slope, of_one(Code::sine, a))));
    case Code::tangent:
      return add(a, product(slope, sum(one, power(node, two))));
    case Code::arc_sine:
    case Code::arc_cosine: {
      const Node share = quotient(slope, of_one(Code::root, difference(one, power(a, two))));
      return add(a, own.code == Code::arc_sine ? share : negative(share));
    }
    case Code::arc_tangent:
      return add(a, quotient(slope, sum(one, power(a, two))));
    case Code::hyperbolic_sine:
      return add(a, product(slope, of_one(Code::hyperbolic_cosine, a)));
    case Code::hyperbolic_cosine:
      return add(a, product(slope, of_one(Code::hyperbolic_sine, a)));
    case Code::hyperbolic_tangent:
      return add(a, product(slope, difference(one, power(node, two))));
    case Code::exponential:
      return add(a, product(slope, node));
    case Code::logarithm:
      return add(a, quotient(slope, a));
    case Code::root:
      return add(a, scaled(0.5, quotient(slope, node)));
    case Code::magnitude:
      return add(a, chosen(of_two(Code::less, a, zero), negative(slope), slope));
    default:  // comparisons, sign, floor, ceil, round
      return;
  }
}

std::vector<ExpressionGraph::Node> ExpressionGraph::hessian(Node of) {
  const std::vector<Node> slopes = gradient(of);
  const auto n = slopes.size();
  std::vector<Node> out(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::vector<Node> row = gradient(slopes[i]);
    for (std::size_t j = 0; j <= i; ++j) out[j * n + i] = out[i * n + j] = row[j];
  }
  return out;
}

}  // namespace portwave
