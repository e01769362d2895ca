#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "portwave/subsystems/base/expression.hpp"

namespace portwave {

/// Expressions of common variables as one graph, to be differentiated and evaluated together (ExpressionTape).
///
/// Equal subexpressions are one node. What is added is simplified: numbers are folded; 0 + a, 1·a, a^1, −(−a)
/// are a, and 0·a and a − a are 0 whatever a is; factors that are numbers stand first and once; a/c with a
/// number c is (1/c)·a; c − c cos a is 2c sin²(a/2), and c cosh a − c is 2c sinh²(a/2), which do not cancel
/// near 0. So an evaluation may differ from that of the `Expression` by round-off.
/// Nodes are numbered so that arguments come before what is made of them.
/// Threads: none may read while another adds.
class ExpressionGraph {
 public:
  using Code = Expression::Code;
  using Node = int;
  /// `arguments` of a number and a variable: none.
  struct Operation {
    Code code;
    Node arguments[3] = {-1, -1, -1};
    int index = 0;        ///< of a variable
    double number = 0.0;  ///< of a number
  };

  explicit ExpressionGraph(int variables);

  int variables() const { return variables_; }
  /// `values`: what each variable of the expression stands for here.
  Node add(const Expression& expression, std::span<const Node> values);

  Node number(double value);
  Node variable(int index) const { return index; }
  Node sum(Node a, Node b);
  Node difference(Node a, Node b);
  Node product(Node a, Node b);
  Node quotient(Node a, Node b);
  Node power(Node a, Node b);
  Node negative(Node a);
  Node chosen(Node condition, Node yes, Node no);

  /// ∂/∂x of every variable x, by reverse differentiation: the operations are a small multiple of those of
  /// the node. Where it changes over, or jumps, the derivative of the branch of the value (Expression::slope).
  std::vector<Node> gradient(Node of);
  /// The sum of the absolute terms of a node, of products and powers of sums no more than their slopes make of the
  /// terms of the sums: its rounding is some ε of that, however much they cancel.
  Node magnitude(Node of);
  /// The second derivatives, n×n by columns; equal places of the two halves are one node.
  std::vector<Node> hessian(Node of);

  /// A power by its products, where the exponent is a whole number up to kMostFactors.
  Node expanded(Node power);
  static constexpr int kMostFactors = 64;

  const Operation& at(Node node) const { return operations_[static_cast<std::size_t>(node)]; }
  int size() const { return static_cast<int>(operations_.size()); }
  std::optional<double> number_of(Node node) const;
  bool is_zero(Node node) const { return number_of(node) == 0.0; }
  bool depends_on(Node node, int variable) const;
  /// The degree of a polynomial in the variables, or a bound of it where terms of it cancel. None for what is
  /// not seen to be one.
  std::optional<int> degree(Node node) const;
  /// By variable, whether an operation in it that can change over depends on that one; and whether there is any.
  std::vector<bool> change_over_by(Node node) const;
  bool can_change_over(Node node) const;
  /// The same operation of others, simplified like all that is added.
  Node with_arguments(Node node, const std::array<Node, 3>& arguments);
  /// An operation of another graph, of arguments here; no variable.
  Node copied(const Operation& operation, const std::array<Node, 3>& arguments);

  static int arity(Code code);
  /// The value of an operation of one number or of two.
  static double value(Code code, double a) { return Expression::of_one(code, a); }
  static double value(Code code, double a, double b) { return Expression::of_two(code, a, b); }

 private:
  Node insert(Operation operation);
  Node of_one(Code code, Node a);
  Node of_two(Code code, Node a, Node b);
  Node scaled(double factor, Node a);
  std::optional<Node> without_cancellation(Node a, Node b);
  std::optional<Node> sine_of_whole(Node a, Node b);
  void add_slopes(Node node, Node slope, std::vector<Node>& slopes);
  std::vector<bool> reached_from(Node node) const;

  int variables_;
  std::vector<Operation> operations_;
  using Key = std::tuple<Code, Node, Node, Node, int, std::uint64_t>;
  std::map<Key, Node> known_;
};

}  // namespace portwave
