// The files of a package: SystemStructure.ssd and the parameter sets.

#include <algorithm>
#include <pugixml.hpp>
#include <sstream>

#include <fmt/format.h>

#include "adapters/structures/ssp_reader.hpp"
#include "export/structures/ssp_draft.hpp"

namespace portwave::exported {
namespace {

constexpr const char* kNamespace = "http://ssp-standard.org/SSP1/SystemStructure";

std::string exact(double value) { return fmt::format("{}", value); }

void set(pugi::xml_node at, const char* name, const std::string& value) {
  at.append_attribute(name).set_value(value.c_str());
}

std::string text_of(const pugi::xml_document& document) {
  std::ostringstream out;
  document.save(out, "  ", pugi::format_default, pugi::encoding_utf8);
  return out.str();
}

pugi::xml_node root_of(pugi::xml_document& document, const char* name) {
  pugi::xml_node declaration = document.append_child(pugi::node_declaration);
  set(declaration, "version", "1.0");
  set(declaration, "encoding", "UTF-8");
  pugi::xml_node root = document.append_child(name);
  set(root, "xmlns:ssc", std::string(kNamespace) + "Common");
  return root;
}

void annotate(pugi::xml_node at, const Json& own) {
  if (own.empty()) return;
  pugi::xml_node annotation = at.append_child("ssd:Annotations").append_child("ssc:Annotation");
  set(annotation, "type", structures::kOwnAnnotation);
  // In an element: SSP 1.0 allows no text there.
  pugi::xml_node note = annotation.append_child("portwave:Note");
  set(note, "xmlns:portwave", "urn:portwave:note");
  note.text().set(own.dump().c_str());
}

const char* type_of(const fmi::Variable& variable) {
  switch (variable.type) {
    case fmi::VariableType::float64:
    case fmi::VariableType::float32:
      return "Real";
    case fmi::VariableType::boolean:
      return "Boolean";
    case fmi::VariableType::text:
      return "String";
    default:
      return "Integer";
  }
}

void add_connector(pugi::xml_node list, const fmi::Fmu& fmu, const std::string& name,
                   std::map<std::string, fmi::Unit>& units) {
  const fmi::Variable* const variable = fmu.description().find(name);
  if (variable == nullptr) return;
  pugi::xml_node connector = list.append_child("ssd:Connector");
  set(connector, "name", name);
  set(connector, "kind", variable->role == fmi::Role::input ? "input" : "output");
  const std::string type = type_of(*variable);
  pugi::xml_node kind = connector.append_child(("ssc:" + type).c_str());
  const fmi::Unit* const unit = fmu.description().unit_of(*variable);
  if (unit == nullptr || type != "Real") return;
  // Two FMUs may mean different things by one name.
  std::string called = variable->unit;
  for (int n = 2;; ++n) {
    const auto [known, is_new] = units.emplace(called, *unit);
    if (is_new || (known->second.powers == unit->powers && known->second.factor == unit->factor &&
                   known->second.offset == unit->offset)) {
      break;
    }
    called = fmt::format("{}_{}", variable->unit, n);
  }
  set(kind, "unit", called);
}

void add_units(pugi::xml_node root, const std::map<std::string, fmi::Unit>& units) {
  constexpr const char* kNames[fmi::Unit::kBases] = {"kg", "m", "s", "A", "K", "mol", "cd", "rad"};
  if (units.empty()) return;
  pugi::xml_node list = root.append_child("ssd:Units");
  for (const auto& [name, unit] : units) {
    pugi::xml_node own = list.append_child("ssc:Unit");
    set(own, "name", name);
    pugi::xml_node base = own.append_child("ssc:BaseUnit");
    for (std::size_t i = 0; i < fmi::Unit::kBases; ++i) {
      if (unit.powers[i] != 0) set(base, kNames[i], fmt::format("{}", unit.powers[i]));
    }
    if (unit.factor != 1.0) set(base, "factor", exact(unit.factor));
    if (unit.offset != 0.0) set(base, "offset", exact(unit.offset));
  }
}

void add_parameter(pugi::xml_node list, const std::string& name, const char* type,
                   const std::string& value) {
  pugi::xml_node own = list.append_child("ssv:Parameter");
  set(own, "name", name);
  set(own.append_child((std::string("ssv:") + type).c_str()), "value", value);
}

void add_inputs(pugi::xml_node system, const SspDraft& draft) {
  const bool has_values = std::ranges::any_of(
      draft.connectors, [](const SspConnector& own) { return own.value.has_value(); });
  if (!has_values) return;
  pugi::xml_node set_node = system.append_child("ssd:ParameterBindings")
                                .append_child("ssd:ParameterBinding")
                                .append_child("ssd:ParameterValues")
                                .append_child("ssv:ParameterSet");
  set(set_node, "version", "1.0");
  set(set_node, "name", "inputs");
  pugi::xml_node list = set_node.append_child("ssv:Parameters");
  for (const SspConnector& own : draft.connectors) {
    if (own.value) add_parameter(list, own.name, "Real", exact(*own.value));
  }
}

void add_connections(pugi::xml_node system, const SspDraft& draft) {
  if (draft.connections.empty()) return;
  pugi::xml_node list = system.append_child("ssd:Connections");
  for (const SspConnection& own : draft.connections) {
    pugi::xml_node connection = list.append_child("ssd:Connection");
    if (!own.from.component.empty()) set(connection, "startElement", own.from.component);
    set(connection, "startConnector", own.from.connector);
    if (!own.to.component.empty()) set(connection, "endElement", own.to.component);
    set(connection, "endConnector", own.to.connector);
    if (!own.converts_units) set(connection, "suppressUnitConversion", "true");
    if (own.factor == 1.0 && own.offset == 0.0) continue;
    pugi::xml_node transformation = connection.append_child("ssc:LinearTransformation");
    set(transformation, "factor", exact(own.factor));
    set(transformation, "offset", exact(own.offset));
  }
}

}  // namespace

std::string structure_description(const SspDraft& draft) {
  pugi::xml_document document;
  pugi::xml_node root = root_of(document, "ssd:SystemStructureDescription");
  set(root, "xmlns:ssd", std::string(kNamespace) + "Description");
  set(root, "xmlns:ssv", std::string(kNamespace) + "ParameterValues");
  set(root, "version", "1.0");
  set(root, "name", draft.name.empty() ? "system" : draft.name);
  if (!draft.description.empty()) set(root, "description", draft.description);
  set(root, "generationTool", "portwave");
  pugi::xml_node system = root.append_child("ssd:System");
  set(system, "name", draft.name.empty() ? "system" : draft.name);
  if (!draft.connectors.empty()) {
    pugi::xml_node list = system.append_child("ssd:Connectors");
    for (const SspConnector& own : draft.connectors) {
      pugi::xml_node connector = list.append_child("ssd:Connector");
      set(connector, "name", own.name);
      set(connector, "kind", own.is_input ? "input" : "output");
      connector.append_child("ssc:Real");
    }
  }
  add_inputs(system, draft);
  std::map<std::string, fmi::Unit> units;
  pugi::xml_node elements = system.append_child("ssd:Elements");
  for (const SspComponent& own : draft.components) {
    pugi::xml_node component = elements.append_child("ssd:Component");
    set(component, "name", own.name);
    set(component, "type", "application/x-fmu-sharedlibrary");
    set(component, "source", own.source);
    set(component, "implementation", "CoSimulation");
    if (!own.connectors.empty()) {
      pugi::xml_node list = component.append_child("ssd:Connectors");
      for (const std::string& name : own.connectors) {
        add_connector(list, *own.setup.fmu, name, units);
      }
    }
    if (!own.start.empty()) {
      pugi::xml_node binding =
          component.append_child("ssd:ParameterBindings").append_child("ssd:ParameterBinding");
      set(binding, "type", "application/x-ssp-parameter-set");
      set(binding, "source", own.parameters);
    }
    Json noted = own.own;
    if (own.step_s > 0.0) noted["step_s"] = own.step_s;
    annotate(component, noted);
  }
  add_connections(system, draft);
  add_units(root, units);
  pugi::xml_node experiment = root.append_child("ssd:DefaultExperiment");
  set(experiment, "startTime", exact(draft.start_s));
  set(experiment, "stopTime", exact(draft.end_s));
  annotate(root, draft.own);
  return text_of(document);
}

std::string parameter_set(const SspComponent& component) {
  if (component.start.empty()) return {};
  pugi::xml_document document;
  pugi::xml_node root = root_of(document, "ssv:ParameterSet");
  set(root, "xmlns:ssv", std::string(kNamespace) + "ParameterValues");
  set(root, "version", "1.0");
  set(root, "name", component.name);
  pugi::xml_node list = root.append_child("ssv:Parameters");
  for (const auto& [name, value] : component.start.items()) {
    const fmi::Variable* const variable = component.setup.fmu->description().find(name);
    const std::string type = variable == nullptr ? "Real" : type_of(*variable);
    const double number = value.is_number()    ? value.get<double>()
                          : value.is_boolean() ? (value.get<bool>() ? 1.0 : 0.0)
                                               : 0.0;
    const std::string text = type == "String"    ? value.get<std::string>()
                             : type == "Boolean" ? (number != 0.0 ? "true" : "false")
                                                 : exact(number);
    add_parameter(list, name, type.c_str(), text);
  }
  return text_of(document);
}

}  // namespace portwave::exported
