#include "portwave/runtime/signals/signal_graph.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/name_search.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "signals/parameter_change.hpp"

namespace portwave {
namespace {

int outputs_of(const Block* block) { return block == nullptr ? 1 : block->shape().outputs; }

/// "name[3]" as "name" and 3; without brackets −1; malformed ones belong to the name.
std::pair<std::string_view, int> split_label(std::string_view label) {
  const std::size_t open = label.rfind('[');
  if (open == std::string_view::npos || label.back() != ']') return {label, -1};
  int index = -1;
  const char* const end = label.data() + label.size() - 1;
  const auto parsed = std::from_chars(label.data() + open + 1, end, index);
  if (parsed.ec != std::errc{} || parsed.ptr != end || index < 0) return {label, -1};
  return {label.substr(0, open), index};
}

}  // namespace

int SignalGraph::find_signal(std::string_view label) const {
  const auto [name, index] = split_label(label);
  for (const Node& node : nodes_) {
    if (node.name != name) continue;
    if (index < 0) return node.outputs == 1 ? node.first_output : -1;
    return index < node.outputs ? node.first_output + index : -1;
  }
  return -1;
}

std::string SignalGraph::label(int signal) const {
  for (const Node& node : nodes_) {
    const int index = signal - node.first_output;
    if (index < 0 || index >= node.outputs) continue;
    return node.outputs == 1 ? node.name : fmt::format("{}[{}]", node.name, index);
  }
  return {};
}

SignalGraph SignalGraph::at_half_steps() const {
  SignalGraph out = *this;
  for (Node& node : out.nodes_) {
    if (node.every > 1 && node.every <= std::numeric_limits<int>::max() / 2) node.every *= 2;
  }
  return out;
}

SignalGraphBuilder& SignalGraphBuilder::sensor(std::string name, Sensor sensor, int every) {
  nodes_.push_back({std::move(name), nullptr, true, sensor, {}, every});
  return *this;
}

SignalGraphBuilder& SignalGraphBuilder::block(std::string name, std::shared_ptr<const Block> block,
                                              std::vector<std::string> inputs, int every,
                                              std::uint64_t digest) {
  if (block != nullptr && block->digest() != 0) digest = block->digest();
  nodes_.push_back(
      {std::move(name), std::move(block), false, {}, std::move(inputs), every, digest});
  return *this;
}

SignalGraphBuilder& SignalGraphBuilder::actuate(std::string signal, int part, int input) {
  actuators_.push_back({std::move(signal), part, input});
  return *this;
}

SignalGraphBuilder& SignalGraphBuilder::actuate_parameter(std::string signal, int part,
                                                          std::string parameter,
                                                          SignalGraph::ParameterChange with) {
  parameters_.push_back({std::move(signal), part, std::move(parameter), std::move(with)});
  return *this;
}

/// The graph as it is checked.
class SignalGraphBuilder::Draft {
 public:
  explicit Draft(const SignalGraphBuilder& from) : from_(from) {}

  Issues check(SignalGraph& graph) {
    add_nodes(graph);
    join(graph);
    if (issues_.empty()) order(graph);
    add_actuators(graph);
    add_parameters(graph);
    return std::move(issues_);
  }

 private:
  void fail(std::string where, std::string what) {
    issues_.push_back({std::move(where), std::move(what)});
  }

  void add_nodes(SignalGraph& graph) {
    for (std::size_t i = 0; i < from_.nodes_.size(); ++i) {
      const PendingNode& given = from_.nodes_[i];
      const std::string where = fmt::format("/blocks/{}", i);
      if (given.name.empty()) {
        fail(where + "/name", "must not be empty");
      } else if (!is_plain_name(given.name)) {
        fail(where + "/name",
             fmt::format("must not contain dots, brackets, blanks, commas or quotes, got {}",
                         in_quotes(given.name)));
      } else if (!numbers_.emplace(given.name, static_cast<int>(i)).second) {
        fail(where + "/name", fmt::format("the name {} is already taken", in_quotes(given.name)));
      }
      if (given.every < 1) {
        fail(where + "/every", fmt::format("must be >= 1, got {}", given.every));
      }
      if (given.is_sensor) check_sensor(given.sensor, where);
      SignalGraph::Node node;
      node.name = given.name;
      node.every = std::max(given.every, 1);
      node.block = given.block;
      node.digest = given.digest;
      node.sensor = given.sensor;
      node.first_output = graph.signals_;
      node.outputs = outputs_of(given.block.get());
      node.first_state = graph.states_;
      graph.signals_ += node.outputs;
      if (given.block != nullptr) graph.states_ += given.block->shape().states;
      graph.nodes_.push_back(std::move(node));
    }
  }

  void check_sensor(const Sensor& sensor, const std::string& where) {
    const System& system = *from_.system_;
    const bool is_port = sensor.kind == Sensor::Kind::effort || sensor.kind == Sensor::Kind::flow;
    const bool has_part = sensor.part >= 0 && sensor.part < std::ssize(system.parts());
    bool fits = has_part;
    if (is_port) {
      fits = sensor.index >= 0 && sensor.index < std::ssize(system.scalar_ports());
    } else if (has_part && sensor.kind != Sensor::Kind::storage) {
      const Signature& signature = system.parts()[at(sensor.part)].component->signature();
      fits = sensor.index >= 0 && sensor.index < signature.state_size();
    }
    if (!fits) fail(where + "/of", "there is no such part, state or port");
  }

  /// −1, and noted, when there is none.
  int signal_named(const SignalGraph& graph, const std::string& label, const std::string& where) {
    const auto [name, index] = split_label(label);
    if (const auto number = numbers_.find(name); number != numbers_.end()) {
      const SignalGraph::Node& node = graph.nodes_[at(number->second)];
      if (index < 0 ? node.outputs == 1 : index < node.outputs) {
        return node.first_output + std::max(index, 0);
      }
      const bool is_made = from_.nodes_[at(number->second)].is_sensor || node.block != nullptr;
      if (!is_made) return -1;  // its defect is told elsewhere
      fail(where, node.outputs == 1
                      ? fmt::format("{} has one output: write {}", in_quotes(node.name),
                                    in_quotes(node.name))
                      : fmt::format("{0} has {1} outputs: write \"{2}[0]\" to \"{2}[{3}]\"",
                                    in_quotes(node.name), node.outputs, printable(node.name),
                                    node.outputs - 1));
      return -1;
    }
    // A name that no block may have is told there.
    if (std::ranges::find(graph.nodes_, label, &SignalGraph::Node::name) != graph.nodes_.end()) {
      return -1;
    }
    std::vector<std::string> names;
    for (const SignalGraph::Node& node : graph.nodes_) {
      if (node.name.find('/') == std::string::npos) names.push_back(node.name);  // not made up
    }
    const std::string known = names.empty()
                                  ? "there is none"
                                  : fmt::format("signals: \"{}\"", fmt::join(names, "\", \""));
    fail(where, fmt::format("there is no signal {}.\n{}.{}", in_quotes(label), known,
                            did_you_mean(label, names)));
    return -1;
  }

  void join(SignalGraph& graph) {
    for (std::size_t i = 0; i < from_.nodes_.size(); ++i) {
      const PendingNode& given = from_.nodes_[i];
      const std::string where = fmt::format("/blocks/{}/inputs", i);
      if (given.block != nullptr && std::ssize(given.inputs) != given.block->shape().inputs) {
        fail(where, fmt::format("needs {} signal{}, got {}", given.block->shape().inputs,
                                given.block->shape().inputs == 1 ? "" : "s", given.inputs.size()));
      }
      for (std::size_t k = 0; k < given.inputs.size(); ++k) {
        graph.nodes_[i].inputs.push_back(
            signal_named(graph, given.inputs[k], fmt::format("{}/{}", where, k)));
      }
    }
  }

  /// Sources, sensors and blocks without feedthrough come first, then what they feed, in the order
  /// in which they were added as far as that leaves a choice.
  void order(SignalGraph& graph) {
    const auto count = static_cast<int>(graph.nodes_.size());
    std::vector<int> owner(at(graph.signals_));
    for (int i = 0; i < count; ++i) {
      const SignalGraph::Node& node = graph.nodes_[at(i)];
      for (int k = 0; k < node.outputs; ++k) owner[at(node.first_output + k)] = i;
    }
    const auto feeds = [&](int i) {
      const Block* const block = graph.nodes_[at(i)].block.get();
      return block != nullptr && block->shape().feeds_through;
    };
    enum class Mark { unseen, open, done };
    std::vector<Mark> marks(at(count), Mark::unseen);
    std::vector<std::pair<int, std::size_t>> path;  // nodes on the way, with the next input
    std::vector<bool> is_told(at(count), false);    // nodes of loops
    for (int root = 0; root < count; ++root) {
      if (marks[at(root)] != Mark::unseen) continue;
      path.assign(1, {root, 0});
      marks[at(root)] = Mark::open;
      while (!path.empty()) {
        auto& [node, next] = path.back();
        const std::vector<int>& inputs = graph.nodes_[at(node)].inputs;
        if (!feeds(node) || next == inputs.size()) {
          marks[at(node)] = Mark::done;
          graph.order_.push_back(node);
          path.pop_back();
          continue;
        }
        const int signal = inputs[next++];
        if (signal < 0) continue;  // of a block that could not be made
        const int from = owner[at(signal)];
        if (marks[at(from)] == Mark::open) fail_loop(graph, path, from, is_told);
        if (marks[at(from)] != Mark::unseen) continue;
        marks[at(from)] = Mark::open;
        path.emplace_back(from, 0);
      }
    }
  }

  /// Loops that have no block in common are all told.
  void fail_loop(const SignalGraph& graph, const std::vector<std::pair<int, std::size_t>>& path,
                 int first, std::vector<bool>& is_told) {
    if (is_told[at(first)]) return;
    const auto begin = std::ranges::find(path, first, &std::pair<int, std::size_t>::first);
    if (std::any_of(begin, path.end(), [&](const auto& step) { return is_told[at(step.first)]; })) {
      return;
    }
    for (auto i = begin; i != path.end(); ++i) is_told[at(i->first)] = true;
    // The path leads against the signals.
    std::string loop = graph.nodes_[at(first)].name;
    for (auto i = path.end(); i != begin;) {
      loop += " -> " + graph.nodes_[at((--i)->first)].name;
    }
    fail(fmt::format("/blocks/{}", first),
         fmt::format("algebraic loop: {}.\nEach of these needs the present value of the one before "
                     "it: put a \"delay\" of one sample between two of them",
                     printable(loop)));
  }

  void add_actuators(SignalGraph& graph) {
    std::vector<bool> driven(from_.system_->settable_inputs().size(), false);
    for (std::size_t i = 0; i < from_.actuators_.size(); ++i) {
      const PendingActuator& given = from_.actuators_[i];
      const std::string where = fmt::format("/actuators/{}", i);
      const int signal = signal_named(graph, given.signal, where);
      const int found = from_.system_->find_setting(given.part, given.input);
      if (found < 0) {
        fail(where, "this input cannot be set: it is not Signal::settable");
        continue;
      }
      const auto slot = static_cast<std::size_t>(found);
      if (driven[slot]) fail(where, "this input is driven already");
      driven[slot] = true;
      if (signal >= 0) graph.actuators_.push_back({signal, static_cast<int>(slot)});
    }
  }

  void add_parameters(SignalGraph& graph) {
    std::set<std::pair<int, std::string_view>> driven;
    for (std::size_t i = 0; i < from_.parameters_.size(); ++i) {
      const PendingParameter& given = from_.parameters_[i];
      const std::string where = fmt::format("/parameter_actuators/{}", i);
      const int signal = signal_named(graph, given.signal, where);
      if (given.part < 0 || given.part >= std::ssize(from_.system_->parts())) {
        fail(where, "there is no such part");
        continue;
      }
      const Component& part = *from_.system_->parts()[at(given.part)].component;
      SignalGraph::ParameterChange with = given.with;
      if (with == nullptr) {
        std::string defect;
        with = parameter_change(part, given.parameter, defect);
        if (!defect.empty()) {
          fail(where, defect);
          continue;
        }
      }
      if (!driven.emplace(given.part, given.parameter).second) {
        fail(where, "this parameter is driven already");
      }
      if (signal < 0) continue;
      graph.parameter_actuators_.push_back({signal, given.part, given.parameter, std::move(with)});
    }
  }

  const SignalGraphBuilder& from_;
  std::map<std::string_view, int> numbers_;  // nodes by name
  Issues issues_;
};

Issues SignalGraphBuilder::check() const {
  SignalGraph graph;
  return Draft(*this).check(graph);
}

SignalGraph SignalGraphBuilder::build() const {
  SignalGraph graph;
  throw_if_any(Draft(*this).check(graph));
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].is_sensor || nodes_[i].block != nullptr) continue;
    throw ConfigError(fmt::format("/blocks/{}", i), "there is no block");
  }
  return graph;
}

}  // namespace portwave
