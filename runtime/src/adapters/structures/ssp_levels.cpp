#include "adapters/structures/ssp_levels.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "adapters/files/xml_file.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave::structures {

using namespace files;
namespace {

class Resolver {
 public:
  Resolver(const Levels& levels, Structure& structure, Issues& issues)
      : levels_(levels), out_(structure), issues_(issues), connector_(structure, issues) {}

  void run() {
    for (const Wire& wire : levels_.wires) {
      if (drivers_.emplace(wire.to, &wire).second) continue;
      issues_.push_back(
          {wire.where, fmt::format("{} is connected already", in_quotes(shown_node(wire.to)))});
    }
    for (const Wire& wire : levels_.wires) {
      if (wire.to.of != Node::Of::component) continue;
      auto value = resolve(wire.to);
      if (value) connector_.connect(wire.to.index, wire.to.name, *std::move(value), wire.where);
    }
    for (const auto& [name, connector] : levels_.systems.front().connectors) {
      if (connector.kind != "output" && connector.kind != "calculatedParameter") continue;
      auto value = resolve({Node::Of::system, 0, name});
      if (value) out_.outputs.push_back({name, *std::move(value)});
    }
    take_start_values_for_inputs();
  }

 private:
  std::string shown_node(const Node& node) const {
    switch (node.of) {
      case Node::Of::component:
        return out_.elements[node.index].name + "." + node.name;
      case Node::Of::system: {
        const std::string& path = levels_.systems[node.index].path;
        return path.empty() ? node.name : path + "." + node.name;
      }
      case Node::Of::dictionary:
        break;
    }
    return node.name;
  }

  /// The value at a connector, in its unit. Nothing: nobody gives it one. Connectors are followed to what drives
  /// them one after the other, since a chain of them may be as long as the file.
  std::optional<Expression> resolve(const Node& node) {
    std::vector<const Wire*> chain;
    std::set<Node> on_the_way;
    std::optional<Expression> value;
    for (const Node* at = &node;;) {
      if (const auto known = known_.find(*at); known != known_.end()) {
        value = known->second;
        break;
      }
      if (!on_the_way.insert(*at).second) {
        tell_loop(*at);
        break;
      }
      const auto driver = drivers_.find(*at);
      if (driver == drivers_.end()) {
        value = own_value(*at);
        break;
      }
      const Wire& wire = *driver->second;
      chain.push_back(&wire);
      at = &wire.from;
      if (at->of != Node::Of::component) continue;
      value = connector_.output(at->index, at->name, wire.where);
      if (value && !value->unit) take_unit_of(connector_of(*at), *value);
      break;
    }
    for (auto wire = chain.rbegin(); wire != chain.rend(); ++wire) {
      if (value) value = pass(**wire, *std::move(value));
      if ((*wire)->to.of != Node::Of::component) known_.emplace((*wire)->to, value);
    }
    return value;
  }

  void tell_loop(const Node& node) {
    issues_.push_back(
        {drivers_.at(node)->where,
         fmt::format("the connections around {} form a loop without any component in it",
                     in_quotes(shown_node(node)))});
  }

  /// That of a connector which nothing drives.
  std::optional<Expression> own_value(const Node& node) {
    if (node.of != Node::Of::system) return std::nullopt;
    const Level& level = levels_.systems[node.index];
    const SystemConnector& connector = level.connectors.at(node.name);
    const auto bound = level.values.find(node.name);
    const bool is_outermost = node.index == 0;
    Expression out;
    take_unit_of(&connector, out);
    out.where = connector.where;
    if (bound != level.values.end()) {
      const auto* const number = std::get_if<double>(&bound->second.value);
      if (number == nullptr) {
        issues_.push_back(
            {bound->second.where, fmt::format("{} takes a number", in_quotes(shown_node(node)))});
        return std::nullopt;
      }
      Expression value{
          .offset = *number, .unit = bound->second.unit, .unit_name = bound->second.unit_name};
      if (connector.unit && value.unit && !convert(value, *connector.unit)) {
        differ(bound->second.where, value, connector.unit, connector.unit_name, node);
        return std::nullopt;
      }
      out.offset = bound->second.then.of(value.offset);
      if (!out.unit) out.unit = value.unit;
    }
    if (is_outermost && (connector.kind == "input" || connector.kind == "inout")) {
      const std::optional<double> value =
          bound != level.values.end() ? std::optional(out.offset) : std::nullopt;
      out.offset = 0.0;
      out.terms.push_back({{Source::Kind::input, input_named(node.name, value), {}}, 1.0});
      return out;
    }
    if (bound == level.values.end()) return std::nullopt;
    return out;
  }

  std::size_t input_named(const std::string& name, std::optional<double> value) {
    for (std::size_t i = 0; i < out_.inputs.size(); ++i) {
      if (out_.inputs[i].name == name) return i;
    }
    out_.inputs.push_back({name, value});
    return out_.inputs.size() - 1;
  }

  static void take_unit_of(const SystemConnector* connector, Expression& value) {
    if (connector == nullptr) return;
    value.unit = connector->unit;
    value.unit_name = connector->unit_name;
  }

  const SystemConnector* connector_of(const Node& node) const {
    const auto find_in = [&](const std::map<std::string, SystemConnector>& all) {
      const auto found = all.find(node.name);
      return found == all.end() ? nullptr : &found->second;
    };
    switch (node.of) {
      case Node::Of::component:
        return find_in(levels_.components[node.index]);
      case Node::Of::system:
        return find_in(levels_.systems[node.index].connectors);
      case Node::Of::dictionary:
        return find_in(levels_.dictionaries[node.index].entries);
    }
    return nullptr;
  }

  /// What the unit at a connector is: that of the FMU, or else what the structure says.
  std::pair<std::optional<fmi::Unit>, std::string> unit_at(const Node& node) const {
    if (node.of == Node::Of::component) {
      const Element& element = out_.elements[node.index];
      const fmi::Variable* const own = element.find(node.name);
      if (own != nullptr) {
        if (auto unit = unit_of(*element.fmu, *own)) return {unit, own->unit};
      }
    }
    const SystemConnector* const connector = connector_of(node);
    if (connector == nullptr) return {};
    return {connector->unit, connector->unit_name};
  }

  void differ(const std::string& where, const Expression& value,
              const std::optional<fmi::Unit>& unit, const std::string& name, const Node& node) {
    issues_.push_back(
        {where, fmt::format("{} is in {}, and what goes there in {}", in_quotes(shown_node(node)),
                            shown(unit, name), shown(value.unit, value.unit_name))});
  }

  /// Through a connection: units are converted, then the transformation is applied.
  std::optional<Expression> pass(const Wire& wire, Expression value) {
    const auto [unit, name] = unit_at(wire.to);
    if (wire.converts_units && unit && !convert(value, *unit)) {
      differ(wire.where, value, unit, name, wire.to);
      return std::nullopt;
    }
    if (!wire.converts_units || unit) {
      value.unit = unit;
      value.unit_name = name;
    }
    const Transformation& by = wire.transformation;
    if (!by.points.empty()) {
      const std::size_t number = out_.lookups.size();
      Expression looked_up{.unit = value.unit, .unit_name = value.unit_name, .where = wire.where};
      looked_up.terms.push_back({{Source::Kind::lookup, number, {}}, 1.0});
      out_.lookups.push_back({std::move(value), by.points});
      return looked_up;
    }
    for (Expression::Term& term : value.terms) term.factor *= by.factor;
    value.offset = by.factor * value.offset + by.offset;
    value.where = wire.where;
    return value;
  }

  /// An input that nobody gave a value begins with that of what it goes to.
  void take_start_values_for_inputs() {
    for (const Element& element : out_.elements) {
      for (const auto& [variable, value] : element.inputs) {
        if (value.terms.size() != 1 || value.terms[0].source.kind != Source::Kind::input) continue;
        StructureInput& input = out_.inputs[value.terms[0].source.index];
        if (input.value || value.terms[0].factor == 0.0) continue;
        std::optional<double> start;
        const auto given = element.start.find(variable);
        const auto* const set =
            given == element.start.end() ? nullptr : std::get_if<double>(&given->second);
        const fmi::Variable* const own = element.find(variable);
        if (set != nullptr) {
          start = *set;
        } else if (own != nullptr) {
          start = number_in(own->start);
        }
        if (start) input.value = (*start - value.offset) / value.terms[0].factor;
      }
    }
  }

  const Levels& levels_;
  Structure& out_;
  Issues& issues_;
  Connector connector_;
  std::map<Node, const Wire*> drivers_;
  std::map<Node, std::optional<Expression>> known_;  // of connectors on the way
};

}  // namespace

void connect_levels(const Levels& levels, Structure& structure, Issues& issues) {
  Resolver(levels, structure, issues).run();
}

std::optional<FmuValue> value_for(const ParameterValue& value, const Element& element,
                                  const fmi::Variable& variable, Issues& issues, Issues& notes) {
  const auto* const number = std::get_if<double>(&value.value);
  if (number == nullptr) return value.value;
  const auto unit = unit_of(*element.fmu, variable);
  if (!value.unit && !value.unit_name.empty() && value.unit_name != variable.unit) {
    notes.push_back(
        {value.where,
         fmt::format(
             "the unit {} of the value of {} of {} is defined nowhere: it is taken in {}",
             in_quotes(value.unit_name), in_quotes(variable.name), in_quotes(element.name),
             variable.unit.empty() ? "the unit of the variable" : shown(unit, variable.unit))});
  }
  Expression converted{.offset = *number, .unit = value.unit, .unit_name = value.unit_name};
  if (!unit || convert(converted, *unit)) return value.then.of(converted.offset);
  issues.push_back(
      {value.where, fmt::format("{} of {} is in {}, and the value given is in {}",
                                in_quotes(variable.name), in_quotes(element.name),
                                shown(unit, variable.unit), shown(value.unit, value.unit_name))});
  return std::nullopt;
}

}  // namespace portwave::structures
