// portwave list, portwave schema

#include <algorithm>
#include <cmath>
#include <memory>
#include <ostream>
#include <type_traits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <portwave/subsystems/base/printable.hpp>
#include <portwave/subsystems/catalogue/catalogue.hpp>

#include "line/commands.hpp"
#include "verbs/columns.hpp"
#include "verbs/list_parts.hpp"

namespace portwave::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string_view name_of(ParameterKind kind) {
  switch (kind) {
    case ParameterKind::number:
      return "number";
    case ParameterKind::numbers:
      return "numbers";
    case ParameterKind::integer:
      return "integer";
    case ParameterKind::boolean:
      return "boolean";
    case ParameterKind::choice:
      return "choice";
    case ParameterKind::matrix:
      return "matrix";
    case ParameterKind::ports:
      return "ports";
    case ParameterKind::inputs:
      return "inputs";
    case ParameterKind::states:
      break;
  }
  return "states";
}

Json bound_json(double bound) { return std::isfinite(bound) ? Json(bound) : Json(nullptr); }

Json named_json(const std::string& name, const std::string& unit) {
  return {{"name", name}, {"unit", unit}};
}

Json port_json(const Port& port) {
  const DomainUnits unit = units(port.domain);
  return {{"name", port.name},
          {"causality", std::string(to_string(port.causality))},
          {"domain", std::string(to_string(port.domain))},
          {"dimension", port.dimension},
          {"effort_unit", std::string(unit.effort)},
          {"flow_unit", std::string(unit.flow)},
          {"impedance_unit", std::string(unit.impedance)}};
}

Json item_json(const Port& port) { return port_json(port); }
Json item_json(const MatrixEntry& e) { return Json::array({e.row, e.column, e.value}); }
Json item_json(const std::vector<double>& row) { return Json(row); }
template <class Named>
Json item_json(const Named& named) {
  return named_json(named.name, named.unit);
}

template <class Item>
Json list_json(const std::vector<Item>& items) {
  Json json = Json::array();
  for (const Item& item : items) json.push_back(item_json(item));
  return json;
}

Json value_json(double value) { return Json(value); }
Json value_json(int value) { return Json(value); }
Json value_json(bool value) { return Json(value); }
Json value_json(const std::string& value) { return Json(value); }
Json value_json(const std::vector<double>& value) { return Json(value); }
template <class Item>
Json value_json(const std::vector<Item>& value) {
  return list_json(value);
}
/// The form of scenario files, without units that follow from the domain.
Json value_json(const std::vector<Port>& ports) {
  Json json = Json::array();
  for (const Port& port : ports) {
    json.push_back({{"name", port.name},
                    {"causality", std::string(to_string(port.causality))},
                    {"domain", std::string(to_string(port.domain))},
                    {"dimension", port.dimension}});
  }
  return json;
}
/// As a scenario file takes it: [] for an empty matrix, which a list of no rows stands for too.
Json value_json(const MatrixEntries& value) {
  if (value.empty()) return Json::array();
  return {{"entries", list_json(value)}};
}
Json value_json(const ShapedMatrix& value) { return value_json(value.entries); }
Json parameter_value_json(const ParameterValue& value) {
  return std::visit([](const auto& v) { return value_json(v); }, value);
}

Json parameter_json(const ParameterInfo& info) {
  Json json = {
      {"name", info.name},
      {"kind", std::string(name_of(info.kind))},
      {"unit", info.unit},
      {"summary", info.summary},
      {"required", !info.default_value.has_value()},
      {"default", info.default_value ? parameter_value_json(*info.default_value) : Json(nullptr)},
      {"minimum", bound_json(info.minimum)},
      {"minimum_excluded", info.minimum_excluded},
      {"maximum", bound_json(info.maximum)},
      {"passive_only", info.passive_only}};
  if (info.kind == ParameterKind::choice) json["choices"] = info.choices;
  return json;
}

/// Ports and states may depend on the parameters, so they are those of the type's example.
std::unique_ptr<Component> example_of(const PartType& type) {
  return make_part(type.name, type.example);
}

Json type_json(const PartType& type) {
  const std::unique_ptr<Component> part = example_of(type);
  const Signature& signature = part->signature();
  Json parameters = Json::array();
  for (const ParameterInfo& info : type.parameters) parameters.push_back(parameter_json(info));
  return {{"type", type.name},
          {"group", std::string(group_of(type))},
          {"summary", type.summary},
          {"equations", type.equations},
          {"linear", part->capabilities().linear},
          {"parameters", std::move(parameters)},
          {"example", parameters_json(type.example)},
          {"ports", list_json(signature.ports)},
          {"states", list_json(signature.states)},
          {"inputs", list_json(signature.inputs)}};
}

std::string indented(const std::string& text) {
  std::string result = "  ";
  for (const char c : text) {
    result += c;
    if (c == '\n') result += "  ";
  }
  result.erase(result.find_last_not_of(" \n") + 1);
  return result + "\n";
}

std::string port_text(const Port& port) {
  const DomainUnits unit = units(port.domain);
  std::string text = unit.effort.empty()
                         ? "any units"
                         : fmt::format("effort [{}], flow [{}]", unit.effort, unit.flow);
  return port.dimension == 1 ? text : text + fmt::format(", {} components", port.dimension);
}

std::string type_text(const PartType& type) {
  const std::unique_ptr<Component> part = example_of(type);
  const Signature& signature = part->signature();

  std::vector<std::vector<std::string>> parameters;
  for (const ParameterInfo& info : type.parameters) {
    parameters.push_back({info.name, info.unit.empty() ? "-" : info.unit,
                          std::string(name_of(info.kind)), parameter_default(info),
                          parameter_range(info), info.summary});
  }
  if (!parameters.empty()) {
    parameters.insert(parameters.begin(), {"name", "unit", "kind", "default", "range", "meaning"});
  }
  std::vector<std::vector<std::string>> ports;
  for (const Port& port : signature.ports) {
    ports.push_back({port.name, std::string(to_string(port.causality)),
                     std::string(to_string(port.domain)), port_text(port)});
  }
  std::vector<std::vector<std::string>> states;
  for (const StateVariable& s : signature.states) states.push_back({s.name, "[" + s.unit + "]"});
  std::vector<std::vector<std::string>> inputs;
  for (const ExternalInput& i : signature.inputs) inputs.push_back({i.name, "[" + i.unit + "]"});

  return fmt::format("{}: {}\n\nequations\n{}", type.name, type.summary, indented(type.equations)) +
         section("parameters", parameters) + section("ports", ports) + section("states", states) +
         section("external inputs", inputs) + "\n" + indented(port_drawing(type.name, signature));
}

/// By group, in the order in which groups first appear, with one width for the names of all.
std::string catalogue_text() {
  std::vector<std::string_view> groups;
  std::size_t width = 0;
  for (const PartType& type : catalogue()) {
    if (std::ranges::find(groups, group_of(type)) == groups.end()) groups.push_back(group_of(type));
    width = std::max(width, type.name.size());
  }
  std::string text;
  for (const std::string_view group : groups) {
    text += fmt::format("{}{}\n", text.empty() ? "" : "\n", group);
    for (const PartType& type : catalogue()) {
      if (group_of(type) == group)
        text += fmt::format("  {:<{}}  {}\n", type.name, width, type.summary);
    }
  }
  return text;
}

const PartType& known_type(const std::string& name) {
  if (const PartType* const type = find_part_type(name)) return *type;
  std::vector<std::string> names;
  for (const PartType& type : catalogue()) names.push_back(type.name);
  throw ConfigError("", fmt::format("there is no type of part {}.\n  types: {}.{}", in_quotes(name),
                                    fmt::join(names, ", "), did_you_mean(name, names)));
}

}  // namespace

std::string_view group_of(const PartType& type) {
  return type.group.empty() ? std::string_view("other") : std::string_view(type.group);
}

std::string parameter_range(const ParameterInfo& info) {
  if (info.kind == ParameterKind::choice) return fmt::format("{}", fmt::join(info.choices, "|"));
  std::string text;
  const bool has_minimum = std::isfinite(info.minimum);
  if (has_minimum) text = fmt::format("{} {}", info.minimum_excluded ? ">" : ">=", info.minimum);
  if (std::isfinite(info.maximum)) {
    text += fmt::format("{}<= {}", has_minimum ? ", " : "", info.maximum);
  }
  return info.passive_only ? text + " (less with allow_active)" : text;
}

std::string parameter_default(const ParameterInfo& info) {
  if (!info.default_value) return "required";
  if (const auto* const number = std::get_if<double>(&*info.default_value)) {
    return fmt::format("{:g}", *number);
  }
  if (const auto* const word = std::get_if<std::string>(&*info.default_value)) return *word;
  return parameter_value_json(*info.default_value).dump();
}

Json parameters_json(const Parameters& parameters) {
  Json json = Json::object();
  for (const auto& [name, value] : parameters) json[name] = parameter_value_json(value);
  return json;
}

int run_command(const ListArguments& arguments, std::ostream& out, std::ostream& err) {
  const std::vector<std::string> of_plugins = load_plugins(arguments.plugins);
  if (arguments.blocks) return list_blocks(arguments, out, err);
  if (arguments.methods) return list_methods(arguments, out, err);
  if (arguments.markdown) {
    out << (arguments.type ? part_section(known_type(*arguments.type)) : parts_page());
    return kOk;
  }
  if (arguments.type) {
    const PartType& type = known_type(*arguments.type);
    out << (arguments.json ? type_json(type).dump(2) + "\n" : type_text(type));
    return kOk;
  }
  if (arguments.json) {
    Json types = Json::array();
    for (const PartType& type : catalogue()) types.push_back(type_json(type));
    out << types.dump(2) << '\n';
    return kOk;
  }
  out << catalogue_text();
  if (!of_plugins.empty()) {
    err << fmt::format("From plugins: {}.\n", fmt::join(of_plugins, ", "));
  }
  err << "\"portwave list TYPE\" shows one in full.\n";
  return kOk;
}

int run_command(const SchemaArguments& arguments, std::ostream& out, std::ostream&) {
  load_plugins(arguments.plugins);
  out << scenario_schema().dump(2) << '\n';
  return kOk;
}

}  // namespace portwave::cli
