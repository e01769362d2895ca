#include "portwave/runtime/scenario/catalogue_json.hpp"

#include <cmath>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

namespace portwave {
namespace {
namespace in_json {

using Json = nlohmann::ordered_json;

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
Json value_json(const std::vector<std::string>& value) { return Json(value); }
Json value_json(const ExpressionRows& value) { return Json(value); }
Json value_json(const std::vector<NamedNumber>& value) {
  Json json = Json::object();
  for (const NamedNumber& own : value) json[own.name] = own.value;
  return json;
}
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
Json info_json(const ParameterInfo& info) {
  Json json = {
      {"name", info.name},
      {"kind", std::string(to_string(info.kind))},
      {"unit", info.unit},
      {"summary", info.summary},
      {"required", !info.default_value.has_value()},
      {"default", info.default_value ? parameter_json(*info.default_value) : Json(nullptr)},
      {"minimum", bound_json(info.minimum)},
      {"minimum_excluded", info.minimum_excluded},
      {"maximum", bound_json(info.maximum)},
      {"passive_only", info.passive_only}};
  if (!info.choices.empty()) json["choices"] = info.choices;
  return json;
}

}  // namespace in_json
}  // namespace

std::string_view to_string(ParameterKind kind) {
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
      return "states";
    case ParameterKind::expression:
      return "expression";
    case ParameterKind::expressions:
      return "expressions";
    case ParameterKind::expression_matrix:
      return "expression_matrix";
    case ParameterKind::constants:
      return "constants";
    case ParameterKind::texts:
      break;
  }
  return "texts";
}

std::string_view group_of(const PartType& type) {
  return type.group.empty() ? std::string_view("other") : std::string_view(type.group);
}

nlohmann::ordered_json parameter_json(const ParameterValue& value) {
  return std::visit([](const auto& own) { return in_json::value_json(own); }, value);
}

nlohmann::ordered_json parameters_json(const Parameters& parameters) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [name, value] : parameters) json[name] = parameter_json(value);
  return json;
}

nlohmann::ordered_json part_type_json(const PartType& type) {
  return part_type_json(type, make_part(type.name, type.example).get());
}

nlohmann::ordered_json part_type_json(const PartType& type, const Component* example) {
  nlohmann::ordered_json parameters = nlohmann::ordered_json::array();
  for (const ParameterInfo& info : type.parameters) parameters.push_back(in_json::info_json(info));
  const Signature nothing;
  const Signature& signature = example == nullptr ? nothing : example->signature();
  return {{"type", type.name},
          {"group", std::string(group_of(type))},
          {"summary", type.summary},
          {"equations", type.equations},
          {"linear", example != nullptr && example->capabilities().linear},
          {"parameters", std::move(parameters)},
          {"example", parameters_json(type.example)},
          {"ports", in_json::list_json(signature.ports)},
          {"states", in_json::list_json(signature.states)},
          {"inputs", in_json::list_json(signature.inputs)}};
}

}  // namespace portwave
