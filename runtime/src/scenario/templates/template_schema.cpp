#include "scenario/templates/template_schema.hpp"

#include <string>
#include <utility>

#include "scenario/reader/limits.hpp"

namespace portwave::scenario_file {
namespace {

constexpr const char* kBraces = "\\{[^{}]*\\}";

bool has(const Json& schema, const char* key) { return schema.contains(key); }

/// Says of what kind a value is: not only what it must not be, or which bounds it has.
bool says_what(const Json& schema) {
  for (const char* const key : {"type", "$ref", "anyOf", "allOf", "enum"}) {
    if (has(schema, key)) return true;
  }
  return false;
}

bool is_restricted_text(const Json& schema) {
  return schema.value("type", "") == "string" &&
         (has(schema, "enum") || has(schema, "pattern") || has(schema, "minLength"));
}

/// A schema of a value that may be computed.
Json computed_or(Json schema) {
  allow_computed_values(schema);
  if (!says_what(schema) || has(schema, "const")) return schema;
  Json out = Json::object();
  for (const char* const key : {"description", "default"}) {
    if (!has(schema, key)) continue;
    out[key] = std::move(schema[key]);
    schema.erase(key);
  }
  const bool is_text = is_restricted_text(schema);
  const bool is_choice = schema.size() == 1 && has(schema, "anyOf");
  Json alternatives = is_choice ? std::move(schema["anyOf"]) : Json::array({std::move(schema)});
  if (is_text) alternatives.push_back(reference("composed_text"));
  alternatives.push_back(reference("computed"));
  out["anyOf"] = std::move(alternatives);
  return out;
}

}  // namespace

void allow_computed_values(Json& schema) {
  if (!schema.is_object()) return;
  if (has(schema, "properties")) {
    for (auto& [key, value] : schema["properties"].items()) {
      if (key == "for") {
        allow_computed_values(value);
      } else {
        value = computed_or(std::move(value));
      }
    }
  }
  if (has(schema, "items")) {
    Json& items = schema["items"];
    if (items.is_array()) {
      for (Json& each : items) each = computed_or(std::move(each));
    } else {
      items = computed_or(std::move(items));
    }
  }
  if (has(schema, "additionalProperties") && schema["additionalProperties"].is_object()) {
    schema["additionalProperties"] = computed_or(std::move(schema["additionalProperties"]));
  }
  for (const char* const key : {"allOf", "anyOf", "oneOf"}) {
    if (!has(schema, key)) continue;
    for (Json& each : schema[key]) allow_computed_values(each);
  }
  for (const char* const key : {"then", "else"}) {
    if (has(schema, key)) allow_computed_values(schema[key]);
  }
}

Json count_schema() {
  return described(integer(1, scenario_limits::kInteger),
                   "number of copies, named name_0, name_1, ...; the index is i");
}

Json indices_schema() {
  Json range = list(integer(-scenario_limits::kIndex, scenario_limits::kIndex));
  range["minItems"] = 2;
  range["maxItems"] = 2;
  return described(map_of(std::move(range)),
                   "a coupling for each value of these indices, such as {\"i\": [0, 9]}: the first "
                   "and the last");
}

const KeyTable<UseKeys>& use_keys() {
  static const KeyTable<UseKeys> keys(
      {required_key("name", "name; parts inside are called name/part",
                    elsewhere<UseKeys>(form::name().schema)),
       required_key("assembly", "one of \"assemblies\"", elsewhere<UseKeys>(text())),
       optional_key("parameters", "parameters of the assembly; others keep their defaults",
                    elsewhere<UseKeys>({{"type", "object"}})),
       optional_key("count", "", elsewhere<UseKeys>(count_schema()))});
  return keys;
}

Json variables_schema(const std::string& description) {
  Json schema = {{"type", "object"}};
  schema["propertyNames"] = {{"pattern", "^[A-Za-z_][A-Za-z0-9_]*$"}};
  return described(std::move(schema), description);
}

void add_template_definitions(Json& definitions) {
  Json computed = {{"description", "a value that is computed when the file is read"}};
  computed["anyOf"] = Json::array(
      {object({{"parameter", described(text(), "a parameter of the assembly, or an index")}},
              {"parameter"}),
       object({{"expression", described(text(), "arithmetic of parameters and indices")}},
              {"expression"})});
  definitions["computed"] = std::move(computed);
  definitions["composed_text"] = described({{"type", "string"}, {"pattern", kBraces}},
                                           "a text with \"{...}\", such as cell_{i+1}");
  definitions["use"] = use_keys().schema();
  allow_computed_values(definitions["use"]);
  const auto entry = [](Json part) -> Json {
    return {{"if", {{"required", Json::array({"assembly"})}}},
            {"then", reference("use")},
            {"else", std::move(part)}};
  };
  definitions["entry"] = entry(reference("subsystem"));
  definitions["open_entry"] =
      entry({{"anyOf", Json::array({reference("subsystem"), reference("plugin_subsystem")})}});
}

}  // namespace portwave::scenario_file
