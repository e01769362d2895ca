// portwave list, portwave schema

#include <algorithm>
#include <cmath>
#include <memory>
#include <ostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <portwave/runtime/scenario/catalogue_json.hpp>
#include <portwave/subsystems/base/printable.hpp>
#include <portwave/subsystems/catalogue/catalogue.hpp>

#include "line/commands.hpp"
#include "verbs/columns.hpp"
#include "verbs/list_parts.hpp"

namespace portwave::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Ports and states may depend on the parameters, so they are those of the type's example.
std::unique_ptr<Component> example_of(const PartType& type) {
  return make_part(type.name, type.example);
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
                          std::string(to_string(info.kind)), parameter_default(info),
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
         section("external inputs", inputs) + "\n" + indented(port_drawing(type.name, signature)) +
         "\nan example, whose ports, states and inputs these are\n" + indented(example_text(type));
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
  return parameter_json(*info.default_value).dump();
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
    out << (arguments.json ? part_type_json(type).dump(2) + "\n" : type_text(type));
    return kOk;
  }
  if (arguments.json) {
    Json types = Json::array();
    for (const PartType& type : catalogue()) types.push_back(part_type_json(type));
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
