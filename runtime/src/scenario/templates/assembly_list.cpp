#include "scenario/templates/assembly_list.hpp"

#include <algorithm>
#include <utility>

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

}  // namespace portwave::scenario_file
