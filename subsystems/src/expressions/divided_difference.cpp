#include "expressions/divided_difference.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {

class DividedDifference {
 public:
  using Node = ExpressionGraph::Node;
  using Code = ExpressionGraph::Code;

  DividedDifference(const ExpressionGraph& from, ExpressionGraph& to, Node y, Node delta)
      : from_(from), to_(to), y_(y), delta_(delta) {}

  std::optional<Node> of(Node node) {
    const std::vector<bool> needed = reached_from(node);
    known_.assign(at(node) + 1, std::nullopt);
    for (Node i = 0; i <= node; ++i) {
      if (needed[at(i)] && !(known_[at(i)] = values(from_.at(i)))) return std::nullopt;
    }
    return known_.back()->quotient;
  }

 private:
  /// At y and at y + δ, and the difference of the two over δ.
  struct Values {
    Node low, high, quotient;
  };

  std::vector<bool> reached_from(Node node) const {
    std::vector<bool> reached(at(node) + 1, false);
    reached.back() = true;
    for (Node i = node; i >= 0; --i) {
      if (!reached[at(i)]) continue;
      for (const Node argument : from_.at(i).arguments) {
        if (argument >= 0) reached[at(argument)] = true;
      }
    }
    return reached;
  }

  std::optional<Values> values(const ExpressionGraph::Operation& own) {
    switch (own.code) {
      case Code::number: {
        const Node number = to_.number(own.number);
        return Values{number, number, to_.number(0.0)};
      }
      case Code::variable:
        return Values{y_, to_.sum(y_, delta_), to_.number(1.0)};
      default:
        break;
    }
    const int arity = ExpressionGraph::arity(own.code);
    if (arity == 3) return std::nullopt;
    const Values& a = *known_[at(own.arguments[0])];
    return arity == 1 ? of_one(own, a) : of_two(own, a, *known_[at(own.arguments[1])]);
  }

  std::optional<Values> of_two(const ExpressionGraph::Operation& own, const Values& a,
                               const Values& b) {
    switch (own.code) {
      case Code::add:
        return Values{to_.sum(a.low, b.low), to_.sum(a.high, b.high),
                      to_.sum(a.quotient, b.quotient)};
      case Code::subtract:
        return Values{to_.difference(a.low, b.low), to_.difference(a.high, b.high),
                      to_.difference(a.quotient, b.quotient)};
      case Code::multiply:
        return product(a, b);
      case Code::divide:
        return no_pole(quotient(a, b), own.arguments[0], own.arguments[1]);
      case Code::power:
        return power(own, a);
      default:
        return std::nullopt;
    }
  }

  std::optional<Values> of_one(const ExpressionGraph::Operation& own, const Values& a) {
    const auto made = [&](Node quotient) {
      return Values{same(own, a.low), same(own, a.high), quotient};
    };
    switch (own.code) {
      case Code::negate:
        return Values{to_.negative(a.low), to_.negative(a.high), to_.negative(a.quotient)};
      case Code::root: {
        const Node low = same(own, a.low), high = same(own, a.high);
        return Values{low, high, to_.quotient(a.quotient, to_.sum(low, high))};
      }
      case Code::sine:
        return made(times(function(Code::cosine, middle(a)), over_angle(Code::sine, half(a)), a));
      case Code::cosine:
        return made(to_.negative(
            times(function(Code::sine, middle(a)), over_angle(Code::sine, half(a)), a)));
      case Code::hyperbolic_sine:
        return made(times(function(Code::hyperbolic_cosine, middle(a)),
                          over_angle(Code::hyperbolic_sine, half(a)), a));
      case Code::hyperbolic_cosine:
        return made(times(function(Code::hyperbolic_sine, middle(a)),
                          over_angle(Code::hyperbolic_sine, half(a)), a));
      case Code::exponential:
        return made(times(function(Code::exponential, middle(a)),
                          over_angle(Code::hyperbolic_sine, half(a)), a));
      default:
        return std::nullopt;
    }
  }

  Values product(const Values& a, const Values& b) {
    return {to_.product(a.low, b.low), to_.product(a.high, b.high),
            to_.sum(to_.product(a.quotient, middle(b)), to_.product(middle(a), b.quotient))};
  }
  /// From a = (a/b)b.
  Values quotient(const Values& a, const Values& b) {
    Values out = {to_.quotient(a.low, b.low), to_.quotient(a.high, b.high), 0};
    out.quotient =
        to_.quotient(to_.difference(a.quotient, to_.product(middle(out), b.quotient)), middle(b));
    return out;
  }

  /// Whole ones by repeated squaring, from the highest bit of the exponent on.
  std::optional<Values> power(const ExpressionGraph::Operation& own, const Values& a) {
    const auto exponent = from_.number_of(own.arguments[1]);
    const bool is_whole = exponent && std::trunc(*exponent) == *exponent &&
                          std::abs(*exponent) <= ExpressionGraph::kMostFactors;
    if (!is_whole) return std::nullopt;
    if (*exponent == 2.0) return square(from_.at(own.arguments[0]), a);
    const auto count = static_cast<unsigned>(std::abs(*exponent));
    Values out = a;
    for (unsigned bit = std::bit_floor(count) / 2; bit > 0; bit /= 2) {
      out = product(out, out);
      if ((count & bit) != 0) out = product(out, a);
    }
    if (*exponent > 0.0) return out;
    const Node one = to_.number(1.0);
    return no_pole(quotient({one, one, to_.number(0.0)}, out), std::nullopt, own.arguments[0]);
  }

  /// A divisor without its whole powers, which do not show that it has changed its sign.
  Node base_of(Node divisor) const {
    while (from_.at(divisor).code == Code::power) divisor = from_.at(divisor).arguments[0];
    return divisor;
  }
  /// No number where a divisor changes its sign between y and y + δ, unless `top`, 1 if there is none, vanishes with it: a
  /// step does not lead over a pole, beyond which 1/(1 − q²) has values again. A thousandth of the way beside the root,
  /// as far as a straight line finds it, the quotient is hundreds of times as large as at the ends, or about the same.
  Values no_pole(Values of, std::optional<Node> top, Node bottom) {
    constexpr double kBeside = 1.0 / 1024.0, kLarger = 8.0, kFound = 0.02;
    const Node base = base_of(bottom);
    const Values& divisor = *known_[at(base)];
    if (divisor.low == divisor.high) return of;
    const Node zero = to_.number(0.0);
    const auto two = [&](Code code, Node a, Node b) {
      return to_.copied({.code = code}, {a, b, -1});
    };
    const Node width = to_.difference(divisor.low, divisor.high);
    const Node root = to_.quotient(divisor.low, width);
    const Node inward = to_.chosen(two(Code::greater, to_.number(0.5), root), to_.number(kBeside),
                                   to_.number(-kBeside));
    const Node place = to_.sum(y_, to_.product(to_.sum(root, inward), delta_));
    const auto beside = [&](Node node) {
      const Values& ends = *known_[at(node)];
      return size(to_.quotient(value_at(node, place), to_.sum(size(ends.low), size(ends.high))));
    };
    const Node above = top ? beside(*top) : to_.number(0.5);
    const Node is_pole =
        two(Code::greater, above, to_.product(to_.number(kLarger), beside(bottom)));
    const Node is_lost = two(Code::greater, beside(base), to_.number(kFound));
    const Node none = to_.number(std::numeric_limits<double>::quiet_NaN());
    const Node checked = to_.chosen(is_pole, none, to_.chosen(is_lost, none, of.quotient));
    const Node is_same = two(Code::equal, two(Code::greater, divisor.low, zero),
                             two(Code::greater, divisor.high, zero));
    of.quotient = to_.chosen(is_same, of.quotient, checked);
    return of;
  }
  Node size(Node a) { return function(Code::magnitude, a); }
  Node value_at(Node node, Node place) {
    std::vector<Node> values(at(node) + 1, -1);
    const std::vector<bool> needed = reached_from(node);
    for (Node i = 0; i <= node; ++i) {
      if (!needed[at(i)]) continue;
      const ExpressionGraph::Operation& own = from_.at(i);
      std::array<Node, 3> arguments = {-1, -1, -1};
      for (std::size_t k = 0; k < 3; ++k) {
        if (own.arguments[k] >= 0) arguments[k] = values[at(own.arguments[k])];
      }
      values[at(i)] = own.code == Code::variable ? place : to_.copied(own, arguments);
    }
    return values.back();
  }

  /// sin² b − sin² a = sin(a + b) sin(b − a), and so sinh².
  Values square(const ExpressionGraph::Operation& base, const Values& a) {
    const Node two = to_.number(2.0);
    const Node low = to_.power(a.low, two), high = to_.power(a.high, two);
    if (base.code != Code::sine && base.code != Code::hyperbolic_sine) {
      return {low, high, to_.product(a.quotient, to_.sum(a.low, a.high))};
    }
    const Values& angle = *known_[at(base.arguments[0])];
    const Node difference = to_.product(angle.quotient, delta_);
    return {low, high,
            times(function(base.code, to_.sum(angle.low, angle.high)),
                  over_angle(base.code, difference), angle)};
  }

  Node times(Node a, Node b, const Values& angle) {
    return to_.product(angle.quotient, to_.product(a, b));
  }
  /// sin(z)/z or sinh(z)/z, also at 0, with derivatives as good as Newton's method needs them.
  Node over_angle(Code code, Node z) {
    const Node none = to_.copied({.code = Code::equal}, {z, to_.number(0.0), -1});
    const Node small = to_.chosen(none, to_.number(1e-20), z);
    return to_.quotient(function(code, small), small);
  }
  Node function(Code code, Node a) { return to_.copied({.code = code}, {a, -1, -1}); }
  Node same(const ExpressionGraph::Operation& own, Node a) { return function(own.code, a); }
  Node middle(const Values& a) {
    return a.low == a.high ? a.low : to_.product(to_.number(0.5), to_.sum(a.low, a.high));
  }
  Node half(const Values& a) {
    return to_.product(to_.number(0.5), to_.product(a.quotient, delta_));
  }

  const ExpressionGraph& from_;
  ExpressionGraph& to_;
  Node y_, delta_;
  std::vector<std::optional<Values>> known_;
};

}  // namespace

std::optional<ExpressionGraph::Node> divided_difference(const ExpressionGraph& graph,
                                                        ExpressionGraph::Node of,
                                                        ExpressionGraph& to,
                                                        ExpressionGraph::Node y,
                                                        ExpressionGraph::Node delta) {
  return DividedDifference(graph, to, y, delta).of(of);
}

}  // namespace portwave
