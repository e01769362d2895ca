#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "scenario/file_keys.hpp"
#include "scenario/files/plugins.hpp"
#include "scenario/parts/fmu_entry.hpp"
#include "scenario/parts/system_draft.hpp"
#include "scenario/parts/values.hpp"
#include "scenario/reader/key_table.hpp"
#include "scenario/reader/limits.hpp"
#include "scenario/settings/method_keys.hpp"
#include "scenario/settings/settings.hpp"
#include "scenario/settings/signal_keys.hpp"
#include "scenario/templates/assemblies.hpp"
#include "scenario/templates/template_schema.hpp"

namespace portwave {
namespace scenario_file {
namespace {

/// `signals`: the schema of that section, which follows from the kinds of blocks that there are now.
KeyTable<FileKeys> file_keys_with(Json signals) {
  return KeyTable<FileKeys>({
      optional_key("$schema", "this schema", to(&FileKeys::schema, form::text())),
      required_key("name", "name of the scenario", to(&FileKeys::name, form::name())),
      optional_key("description", "a text for people", to(&FileKeys::description, form::text())),
      optional_key("plugins", "", later(&FileKeys::plugins, plugins_schema())),
      required_key("time", "", later(&FileKeys::time, time_schema())),
      optional_key("parameters", "", elsewhere<FileKeys>(variables_schema("values by name"))),
      optional_key("assemblies", "", elsewhere<FileKeys>(assemblies_schema())),
      required_key("subsystems", "", later(&FileKeys::subsystems, list(Json::object(), 1))),
      optional_key("couplings", "", later(&FileKeys::couplings, list(reference("coupling")))),
      optional_key("method", "", later(&FileKeys::method, method_schema())),
      optional_key("signals", "", later(&FileKeys::signals, std::move(signals))),
      optional_key("events", "", later(&FileKeys::events, events_schema())),
      optional_key("outputs", "", later(&FileKeys::outputs, outputs_schema())),
  });
}

}  // namespace

const KeyTable<FileKeys>& file_keys() {
  static const KeyTable<FileKeys> keys = file_keys_with(Json());
  return keys;
}

Json file_schema() { return file_keys_with(signals_schema()).schema(); }

namespace {

template <class Item>
bool is_empty_list(const std::vector<Item>& items) {
  return items.empty();
}
bool is_empty_list(const ShapedMatrix& matrix) { return matrix.entries.empty(); }

std::optional<Json> default_of(const ParameterInfo& info) {
  if (!info.default_value) return std::nullopt;
  return std::visit(
      [](const auto& value) -> std::optional<Json> {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, double>) {
          return plain(value);
        } else if constexpr (std::is_same_v<T, int> || std::is_same_v<T, bool> ||
                             std::is_same_v<T, std::string>) {
          return Json(value);
        } else if (is_empty_list(value)) {
          return Json::array();  // also for matrices: [] says what their being absent says
        } else {
          return std::nullopt;
        }
      },
      *info.default_value);
}

// A bound that allow_active lifts is left to passive_bounds.
Json number_schema(const ParameterInfo& info, bool is_integer) {
  Json schema = {{"type", is_integer ? "integer" : "number"}};
  if (std::isfinite(info.minimum) && !info.passive_only) {
    schema[info.minimum_excluded ? "exclusiveMinimum" : "minimum"] = plain(info.minimum);
  }
  const double most =
      is_integer ? std::min<double>(info.maximum, scenario_limits::kInteger) : info.maximum;
  if (std::isfinite(most)) schema["maximum"] = plain(most);
  return schema;
}

Json parameter_schema(const ParameterInfo& info) {
  switch (info.kind) {
    case ParameterKind::number:
      return number_schema(info, false);
    case ParameterKind::numbers:
      return list(number_schema(info, false));
    case ParameterKind::integer:
      return number_schema(info, true);
    case ParameterKind::boolean:
      return boolean();
    case ParameterKind::choice:
      return choice(info.choices);
    case ParameterKind::matrix:
      return {{"allOf", Json::array({reference("matrix")})}};
    case ParameterKind::ports:
      return list(reference("port"));
    case ParameterKind::inputs:
      return {{"anyOf", Json::array({list(reference("named")), map_of(text())})}};
    case ParameterKind::states:
      return {{"anyOf",
               Json::array({list(reference("named")), map_of(text()), counted_states_schema()})}};
    case ParameterKind::expression:
      return expression_schema();
    case ParameterKind::expressions:
      return list(expression_schema());
    case ParameterKind::expression_matrix:
      return expression_matrix_schema();
    case ParameterKind::constants:
      return constants_schema();
    case ParameterKind::texts:
      return list(info.choices.empty() ? text() : choice(info.choices));
  }
  return Json::object();
}

std::string description_of(const ParameterInfo& info) {
  std::string description = info.summary;
  if (!info.unit.empty()) description += " [" + info.unit + "]";
  return info.passive_only ? description + "; not negative unless allow_active" : description;
}

std::vector<std::string> required_parameters(const PartType& type) {
  std::vector<std::string> names;
  for (const ParameterInfo& info : type.parameters) {
    if (!info.default_value) names.push_back(info.name);
  }
  return names;
}

Json parameters_schema(const PartType& type) {
  Json properties = Json::object();
  for (const ParameterInfo& info : type.parameters) {
    Json schema = described(parameter_schema(info), description_of(info));
    if (auto value = default_of(info)) schema["default"] = *std::move(value);
    properties[info.name] = std::move(schema);
  }
  return described(object(std::move(properties), required_parameters(type)), type.summary);
}

// The lower bounds that hold unless the part says allow_active; null if the type has none.
Json passive_bounds(const PartType& type) {
  Json bounds = Json::object();
  for (const ParameterInfo& info : type.parameters) {
    if (info.passive_only) bounds[info.name] = {{"minimum", plain(info.minimum)}};
  }
  if (bounds.empty()) return nullptr;
  Json condition = when_key_is(
      "type", type.name, {{"properties", {{"parameters", {{"properties", std::move(bounds)}}}}}});
  condition["if"]["not"] = {{"properties", {{"allow_active", {{"const", true}}}}},
                            {"required", Json::array({"allow_active"})}};
  return condition;
}

Json subsystem_schema() {
  std::vector<std::string> names;
  std::string summaries = "type of the part";
  Json conditions = Json::array();
  for (const PartType& type : catalogue()) {
    names.push_back(type.name);
    summaries += "\n" + type.name + ": " + type.summary;
    Json then = {{"properties", {{"parameters", reference(type.name + "_parameters")}}}};
    if (!required_parameters(type).empty()) then["required"] = Json::array({"parameters"});
    conditions.push_back(when_key_is("type", type.name, std::move(then)));
    if (Json bounds = passive_bounds(type); !bounds.is_null()) conditions.push_back(bounds);
  }
  names.emplace_back(kFmuType);
  summaries += "\nfmu: an FMU for co-simulation, FMI 2.0 or 3.0; loaded only with --allow-plugins";
  conditions.push_back(when_key_is(
      "type", kFmuType,
      {{"required", Json::array({"path"})}, {"not", {{"required", Json::array({"parameters"})}}}}));
  conditions.back()["else"] = {
      {"properties", {{"path", false}, {"ports", false}, {"start", false}, {"outputs", false}}}};
  Json schema = part_schema();
  schema["properties"]["type"] = described(choice(names), summaries);
  schema["allOf"] = std::move(conditions);
  return schema;
}

/// A type that the schema does not know, where a plugin may bring it.
Json plugin_subsystem_schema() {
  Json schema = subsystem_schema();
  schema.erase("allOf");
  Json& type = schema["properties"]["type"];
  type = described({{"type", "string"}, {"not", {{"enum", type["enum"]}}}}, "type of a plugin");
  return schema;
}

Json whole_schema() {
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                 {"title", "portwave scenario"}};
  schema.update(file_schema());
  // Types that a plugin may bring are taken only where there are plugins.
  const auto entries = [](Json items) -> Json {
    Json within = {{"properties", {{"subsystems", {{"items", std::move(items)}}}}}};
    Json whole = within;
    whole["properties"]["assemblies"] = {{"additionalProperties", std::move(within)}};
    return whole;
  };
  schema["if"] = {{"required", Json::array({"plugins"})}};
  schema["then"] = entries(reference("open_entry"));
  schema["else"] = entries(reference("entry"));
  Json definitions = {
      {"subsystem", subsystem_schema()}, {"plugin_subsystem", plugin_subsystem_schema()},
      {"coupling", coupling_schema()},   {"impedance", impedance_schema()},
      {"signal", input_schema()},        {"signal_name", signal_name_schema()},
      {"matrix", matrix_schema()},       {"port", port_schema()},
      {"named", named_schema()}};
  for (const PartType& type : catalogue()) {
    definitions[type.name + "_parameters"] = parameters_schema(type);
  }
  for (auto& [name, definition] : definitions.items()) {
    if (name != "impedance") allow_computed_values(definition);
  }
  add_template_definitions(definitions);
  schema["definitions"] = std::move(definitions);
  return schema;
}

}  // namespace

}  // namespace scenario_file

scenario_file::Json scenario_schema() { return scenario_file::whole_schema(); }

}  // namespace portwave
