#include "scenario/assembly_list.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/expression.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/core/component.hpp"
#include "scenario/scenario_templates.hpp"

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

void read_assembly(const Node& node, AssemblyList::Assembly& assembly) {
  const ObjectReader object(node,
                            {"description", "parameters", "subsystems", "couplings", "ports"});
  if (!object.is_object()) return;
  assembly.json = &node.json();
  if (const auto text = object.find("description")) text->text();
  if (const auto parts = object.require("subsystems")) {
    if (!parts->json().is_array() || parts->size() == 0) {
      parts->fail_expected("an array of at least one subsystem");
    }
  }
  if (const auto joints = object.find("couplings")) joints->is_array("an array of couplings");
  if (const auto ports = object.find("ports")) {
    if (ports->is_object("an object of ports \"part.port\" by name")) check_exposed_ports(*ports);
  }
  if (const auto parameters = object.find("parameters")) {
    assembly.parameters = AssemblyList::read_parameters(*parameters);
  }
}

}  // namespace

const Json* member_of(const Json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  for (const auto& [name, value] : object.get_ref<const Json::object_t&>()) {
    if (name == key) return &value;
  }
  return nullptr;
}

Json* member_of(Json& object, std::string_view key) {
  return const_cast<Json*>(member_of(std::as_const(object), key));
}

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

}  // namespace portwave::scenario_file
