#include "portwave/subsystems/base/expression_tape.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "base/workspace.hpp"
#include "kernels/tape_kernels.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/lane_group.hpp"

namespace portwave {

namespace tape {

const Kernels& kernels() { return PORTWAVE_KERNELS(kTape); }

}  // namespace tape

namespace {

using Node = ExpressionGraph::Node;
using Code = ExpressionGraph::Code;

/// The nodes to be computed, in order, and for each of them the last one that uses it.
class TapePlan {
 public:
  TapePlan(ExpressionGraph& graph, std::span<const Node> results) : graph_(graph) {
    const int before = graph.size();
    lowered_.assign(static_cast<std::size_t>(before), -1);
    for (const Node result : results) results_.push_back(lower(result));
    const auto count = static_cast<std::size_t>(graph.size());
    std::vector<bool> reached(count, false);
    last_use_.assign(count, -1);
    for (const Node result : results_) {
      reached[static_cast<std::size_t>(result)] = true;
      last_use_[static_cast<std::size_t>(result)] = graph.size();
    }
    for (Node i = graph.size() - 1; i >= 0; --i) {
      if (!reached[static_cast<std::size_t>(i)]) continue;
      for (const Node argument : graph.at(i).arguments) {
        if (argument < 0) continue;
        reached[static_cast<std::size_t>(argument)] = true;
        Node& last = last_use_[static_cast<std::size_t>(argument)];
        last = std::max(last, i);
      }
    }
    for (Node i = 0; i < graph.size(); ++i) {
      if (reached[static_cast<std::size_t>(i)]) order_.push_back(i);
    }
  }

  const std::vector<Node>& order() const { return order_; }
  const std::vector<Node>& results() const { return results_; }
  Node last_use(Node node) const { return last_use_[static_cast<std::size_t>(node)]; }

 private:
  /// With powers as products, and so everything that is made of them.
  Node lower(Node node) {
    std::vector<Node> path{node};
    while (!path.empty()) {
      const Node top = path.back();
      if (lowered(top) >= 0) {
        path.pop_back();
        continue;
      }
      const ExpressionGraph::Operation own = graph_.at(top);
      bool is_ready = true;
      for (const Node argument : own.arguments) {
        if (argument < 0 || lowered(argument) >= 0) continue;
        path.push_back(argument);
        is_ready = false;
      }
      if (!is_ready) continue;
      path.pop_back();
      lowered_[static_cast<std::size_t>(top)] = graph_.expanded(
          graph_.with_arguments(top, {own.arguments[0] < 0 ? -1 : lowered(own.arguments[0]),
                                      own.arguments[1] < 0 ? -1 : lowered(own.arguments[1]),
                                      own.arguments[2] < 0 ? -1 : lowered(own.arguments[2])}));
    }
    return lowered(node);
  }
  Node lowered(Node node) const { return lowered_[static_cast<std::size_t>(node)]; }

  ExpressionGraph& graph_;
  std::vector<Node> lowered_, results_, order_, last_use_;
};

/// Functions of the C library.
void other_function(Code code, const double* a, const double* b, double* to, int lanes) {
  const bool of_two = code < Code::choose;
  for (int l = 0; l < lanes; ++l) {
    to[l] = of_two ? ExpressionGraph::value(code, a[l], b[l]) : ExpressionGraph::value(code, a[l]);
  }
}

/// Of sines and cosines the other one of the same angle, where both are wanted.
std::map<Node, Node> sines_and_cosines(const ExpressionGraph& graph,
                                       const std::vector<Node>& order) {
  std::map<Node, Node> sines, cosines, partner;  // the first two by their angle
  for (const Node node : order) {
    const ExpressionGraph::Operation& own = graph.at(node);
    if (own.code == Code::sine) sines[own.arguments[0]] = node;
    if (own.code == Code::cosine) cosines[own.arguments[0]] = node;
  }
  for (const auto& [angle, sine] : sines) {
    const auto cosine = cosines.find(angle);
    if (cosine == cosines.end()) continue;
    partner[sine] = cosine->second;
    partner[cosine->second] = sine;
  }
  return partner;
}

constexpr int kMostRegisters = std::numeric_limits<std::uint16_t>::max();

}  // namespace

ExpressionTape::ExpressionTape(const ExpressionGraph& of, std::span<const Node> results)
    : variables_(of.variables()) {
  ExpressionGraph graph = of;  // the plan adds nodes
  const TapePlan plan(graph, results);
  std::vector<int> place(static_cast<std::size_t>(graph.size()), -1);
  const auto place_of = [&place](Node node) -> int& {
    return place[static_cast<std::size_t>(node)];
  };
  registers_ = variables_;
  for (const Node node : plan.order()) {
    if (graph.at(node).code == Code::variable) {
      place_of(node) = graph.at(node).index;
    } else if (const auto number = graph.number_of(node)) {
      place_of(node) = registers_++;
      numbers_.push_back(*number);
    }
  }
  std::vector<int> free;
  const auto take_register = [&] {
    if (free.empty()) free.push_back(registers_++);
    const int taken = free.back();
    free.pop_back();
    return taken;
  };
  const std::map<Node, Node> partner = sines_and_cosines(graph, plan.order());
  for (const Node node : plan.order()) {
    const ExpressionGraph::Operation& own = graph.at(node);
    const int arity = ExpressionGraph::arity(own.code);
    if (arity == 0) continue;
    TapeProgram::Step step{own.code, 0, 0, 0, 0};
    std::uint16_t* const from[] = {&step.a, &step.b, &step.c};
    for (int k = 0; k < arity; ++k) {
      const Node argument = own.arguments[k];
      *from[k] = static_cast<std::uint16_t>(place_of(argument));
      const bool is_temporary = ExpressionGraph::arity(graph.at(argument).code) > 0;
      const bool is_seen =
          std::find(own.arguments, own.arguments + k, argument) != own.arguments + k;
      if (is_temporary && !is_seen && plan.last_use(argument) == node) {
        free.push_back(place_of(argument));
      }
    }
    if (place_of(node) >= 0) continue;  // with its partner
    place_of(node) = take_register();
    step.to = static_cast<std::uint16_t>(place_of(node));
    if (own.code == Code::sine || own.code == Code::cosine) {
      const auto other = partner.find(node);
      if (other != partner.end()) place_of(other->second) = take_register();
      step.b =
          other == partner.end() ? step.to : static_cast<std::uint16_t>(place_of(other->second));
    }
    steps_.push_back(step);
    if (registers_ > kMostRegisters) {
      throw ConfigError("", fmt::format("the expressions need more than {} intermediate results",
                                        kMostRegisters));
    }
  }
  for (const Node result : plan.results()) {
    results_.push_back(static_cast<std::uint16_t>(place_of(result)));
  }
}

std::string ExpressionTape::bytes() const {
  std::string out = fmt::format("{} {}:", variables_, registers_);
  for (const double number : numbers_) out += fmt::format(" {:a}", number);
  for (const TapeProgram::Step& step : steps_) {
    out += fmt::format(";{} {} {} {} {}", static_cast<int>(step.code), step.to, step.a, step.b,
                       step.c);
  }
  for (const std::uint16_t result : results_) out += fmt::format(",{}", result);
  return out;
}

void ExpressionTape::operator()(const double* x, double* out) const {
  detail::Workspace scratch(static_cast<std::size_t>(registers_));
  run<1>(x, out, scratch.data());
}

TapeProgram ExpressionTape::program() const {
  return {.variables = variables_,
          .constants = static_cast<int>(numbers_.size()),
          .registers = registers_,
          .steps = static_cast<int>(steps_.size()),
          .results = results(),
          .constant = numbers_.data(),
          .step = steps_.data(),
          .result = results_.data(),
          .other = other_function};
}

template <int lanes>
void ExpressionTape::run(const double* x, double* out, double* scratch) const {
  static_assert(lanes == 1 || lanes == kLaneGroup);
  const tape::Kernels& own = tape::kernels();
  (lanes == 1 ? own.run_alone : own.run)(program(), x, out, scratch);
}

template void ExpressionTape::run<1>(const double*, double*, double*) const;
template void ExpressionTape::run<8>(const double*, double*, double*) const;

}  // namespace portwave
