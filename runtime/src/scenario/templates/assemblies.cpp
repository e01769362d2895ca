#include "scenario/templates/assemblies.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "portwave/subsystems/base/expression.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/core/component.hpp"
#include "scenario/reader/key_table.hpp"
#include "scenario/templates/template_filler.hpp"
#include "scenario/templates/template_schema.hpp"

namespace portwave::scenario_file {
namespace {

constexpr std::size_t kMostParameters = 1000;  // of an assembly

void check_exposed_ports(const Node& node) {
  for (const auto& [name, path] : node.json().get_ref<const Json::object_t&>()) {
    const Node port = node.member(name, path);
    if (!is_plain_name(name)) {
      port.fail(
          "the name of a port must not be empty nor contain dots, brackets, blanks, commas or "
          "quotes");
    } else if (!path.is_string()) {
      port.fail_expected("a port \"part.port\" of a part inside");
    }
  }
}

struct AssemblyKeys {
  std::string description;
  std::optional<Node> parameters, subsystems, couplings, ports;
};

Json ports_schema() { return map_of({{"type", "string"}, {"pattern", "\\."}}); }

const KeyTable<AssemblyKeys>& assembly_keys() {
  static const KeyTable<AssemblyKeys> keys({
      optional_key("description", "", to(&AssemblyKeys::description, form::text())),
      optional_key(
          "parameters", "",
          later(&AssemblyKeys::parameters, variables_schema("defaults by name; null: required"))),
      required_key("subsystems", "", later(&AssemblyKeys::subsystems, list(Json::object(), 1))),
      optional_key("couplings", "", later(&AssemblyKeys::couplings, list(reference("coupling")))),
      optional_key("ports", "ports of the assembly, each named as \"part.port\" of a part inside",
                   later(&AssemblyKeys::ports, ports_schema())),
  });
  return keys;
}

void read_assembly(const Node& node, AssemblyList::Assembly& assembly) {
  AssemblyKeys keys;
  assembly_keys().read(node, keys);
  if (!node.json().is_object()) return;
  assembly.json = &node.json();
  if (keys.subsystems && (!keys.subsystems->json().is_array() || keys.subsystems->size() == 0)) {
    keys.subsystems->fail_expected("an array of at least one subsystem");
  }
  if (keys.couplings) keys.couplings->is_array("an array of couplings");
  if (keys.ports && keys.ports->is_object("an object of ports \"part.port\" by name")) {
    check_exposed_ports(*keys.ports);
  }
  if (keys.parameters) assembly.parameters = AssemblyList::read_parameters(*keys.parameters);
}

}  // namespace

std::vector<AssemblyList::Parameter> AssemblyList::read_parameters(const Node& node) {
  std::vector<Parameter> parameters;
  if (!node.is_object("an object of parameters with their defaults")) return parameters;
  if (node.size() > kMostParameters) {
    node.fail(fmt::format("must be at most {} parameters, got {}", kMostParameters, node.size()));
    return parameters;
  }
  for (const auto& [name, otherwise] : node.json().get_ref<const Json::object_t&>()) {
    const Node parameter = node.member(name, otherwise);
    if (!Expression::is_name(name)) {
      parameter.fail(fmt::format("the name of a parameter {}", kVariableNameRule));
    } else if (Expression::is_reserved(name)) {
      parameter.fail(fmt::format("{} has a meaning of its own in expressions", in_quotes(name)));
    } else {
      parameters.push_back({name, otherwise.is_null() ? nullptr : &otherwise,
                            TemplateFiller::is_computed(otherwise)});
    }
  }
  return parameters;
}

AssemblyList::AssemblyList(const Node& root) {
  const Json* const all = member_of(root.json(), "assemblies");
  if (all == nullptr) return;
  const Node node = root.member("assemblies", *all);
  if (!node.is_object("an object of assemblies by name")) return;
  for (const auto& [name, value] : all->get_ref<const Json::object_t&>()) {
    const Node assembly = node.member(name, value);
    Assembly& own = assemblies_[name];
    own.name = name;
    read_assembly(assembly, own);
  }
}

const AssemblyList::Assembly* AssemblyList::find(std::string_view name) const {
  const auto found = assemblies_.find(name);
  return found == assemblies_.end() ? nullptr : &found->second;
}

std::vector<std::string> AssemblyList::names() const {
  std::vector<std::string> all;
  for (const auto& [name, assembly] : assemblies_) all.emplace_back(name);
  std::ranges::sort(all);
  return all;
}

Json assemblies_schema() {
  return described(map_of(assembly_keys().schema()), "groups of parts that are used many times");
}

std::optional<std::size_t> AssemblyPorts::add_owner(const std::string& name, std::size_t number) {
  const auto [found, is_new] = owners_.try_emplace(name, number);
  if (is_new) return std::nullopt;
  return found->second;
}

void AssemblyPorts::expose(const Node& node, const std::string& use, const std::string& port,
                           const std::string& inside) {
  const std::size_t dot = inside.find('.');
  const std::string prefix = use + "/";
  if (dot == std::string::npos) {
    filler_.fail(node, fmt::format("must be a port \"part.port\" of a part inside, got {}",
                                   in_quotes(inside)));
  } else if (knows_names_ && !owners_.contains(prefix + inside.substr(0, dot))) {
    fail_inner_part(node, prefix, inside.substr(0, dot));
  }
  ports_.emplace(use + "." + port, resolved(node, prefix + inside));
}

void AssemblyPorts::fail_inner_part(const Node& node, const std::string& prefix,
                                    const std::string& part) {
  if (node.defects().has(node.where())) return;
  std::vector<std::string> known;
  for (const auto& [owner, number] : owners_) {
    const bool is_inside = owner.starts_with(prefix);
    if (is_inside && owner.find('/', prefix.size()) == std::string::npos) {
      known.push_back(owner.substr(prefix.size()));
    }
  }
  std::ranges::sort(known);
  filler_.fail(node, fmt::format("there is no part {} in the assembly.{}", in_quotes(part),
                                 did_you_mean(part, known)));
}

std::string AssemblyPorts::resolved(const Node& node, const std::string& path) {
  if (const auto found = ports_.find(path); found != ports_.end()) return found->second;
  const std::size_t dot = path.find('.');
  if (dot == std::string::npos || !knows_names_) return path;
  const auto owner = owners_.find(path.substr(0, dot));
  if (owner != owners_.end() && owner->second == kUse) {
    fail_port(node, owner->first, path.substr(dot + 1));
  }
  return path;
}

void AssemblyPorts::fail_port(const Node& node, const std::string& use, const std::string& port) {
  if (node.defects().has(node.where())) return;
  std::vector<std::string> known;
  for (const auto& [path, target] : ports_) {
    if (path.starts_with(use + ".")) known.push_back(path.substr(use.size() + 1));
  }
  std::ranges::sort(known);
  filler_.fail(node, fmt::format("{} is an assembly in use and has no port {}.{} Did you mean {}?",
                                 in_quotes(use), in_quotes(port),
                                 known.empty() ? std::string() : "\nports: " + list_of(known) + ".",
                                 nearest_name(port, known).empty()
                                     ? fmt::format("a part inside, {}", in_quotes(use + "/..."))
                                     : in_quotes(nearest_name(port, known))));
}

std::string AssemblyPorts::inner_quantity(const Node& node, const std::string& text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string::npos) return text;
  const std::size_t end = std::min(text.find('.', dot + 1), text.size());
  return resolved(node, text.substr(0, end)) + text.substr(end);
}

Json AssemblyPorts::with_inner_names(const Node& section, const Scope& scope) {
  Json out = section.json();
  filler_.set_use("");
  if (Json* const observed = member_of(out, "observe"); observed && observed->is_array()) {
    const Node list = section.member("observe", *member_of(section.json(), "observe"));
    for (std::size_t i = 0; i < observed->size(); ++i) {
      if (!(*observed)[i].is_string()) continue;
      const Node node = list.at(i);
      const Json label = filler_.fill(node, scope);
      if (label.is_string()) (*observed)[i] = inner_quantity(node, label.get<std::string>());
    }
  }
  rename_keys(section, out, "initial_waves");
  if (Json* const impedance = member_of(out, "impedance")) {
    const Node node = section.member("impedance", *member_of(section.json(), "impedance"));
    rename_keys(node, *impedance, "ports");
  }
  return out;
}

void AssemblyPorts::rename_keys(const Node& parent, Json& out, std::string_view key) {
  Json* const by_port = member_of(out, key);
  if (by_port == nullptr || !by_port->is_object()) return;
  const Node list = parent.member(key, *member_of(parent.json(), key));
  Json renamed = Json::object();
  for (const auto& [port, value] : list.json().get_ref<const Json::object_t&>()) {
    const Node node = list.member(port, value);
    renamed.get_ref<Json::object_t&>().emplace_back(resolved(node, port), value);
  }
  *by_port = std::move(renamed);
}

void AssemblyPorts::rename_quantities(const Node& given, Json& value) {
  if (value.is_string()) {
    value = inner_quantity(given, value.get<std::string>());
  } else if (value.is_array()) {
    const bool is_alike = given.json().is_array() && given.size() == value.size();
    for (std::size_t i = 0; i < value.size(); ++i) {
      const Node node = is_alike ? given.at(i) : given;
      rename_quantities(node, value[i]);
    }
  } else if (value.is_object()) {
    for (auto& [key, member] : value.get_ref<Json::object_t&>()) {
      if (key == "name" || key == "kind" || key == "file" || key == "expression") continue;
      const Json* const written = member_of(given.json(), key);
      const Node node = written == nullptr ? given : given.member(key, *written);
      rename_quantities(node, member);
    }
  }
}

}  // namespace portwave::scenario_file
