#include "scenario/reader/key_table.hpp"

#include <cmath>

namespace portwave::scenario_file {

Json plain(double value) {
  const bool is_whole = value == std::floor(value) && std::abs(value) < 1e15;
  return is_whole ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

Json reference(const std::string& definition) { return {{"$ref", "#/definitions/" + definition}}; }

Json described(Json schema, const std::string& description) {
  schema["description"] = description;
  return schema;
}

Json with_default(Json schema, Json value) {
  schema["default"] = std::move(value);
  return schema;
}

Json text() { return {{"type", "string"}}; }
Json boolean() { return {{"type", "boolean"}}; }
Json number() { return {{"type", "number"}}; }
Json positive() { return range_schema(NumberRange::positive()); }
Json not_zero() { return {{"type", "number"}, {"not", {{"const", 0}}}}; }
Json non_negative() { return range_schema(NumberRange::non_negative()); }

Json integer(std::int64_t minimum, std::int64_t maximum) {
  return {{"type", "integer"}, {"minimum", minimum}, {"maximum", maximum}};
}

Json range_schema(const NumberRange& range) {
  Json schema = number();
  if (std::isfinite(range.minimum)) {
    schema[range.minimum_excluded ? "exclusiveMinimum" : "minimum"] = plain(range.minimum);
  }
  if (std::isfinite(range.maximum)) {
    schema[range.maximum_excluded ? "exclusiveMaximum" : "maximum"] = plain(range.maximum);
  }
  return schema;
}

Json choice(const std::vector<std::string>& choices) {
  return {{"type", "string"}, {"enum", choices}};
}

Json list(Json items, std::size_t fewest) {
  Json schema = {{"type", "array"}, {"items", std::move(items)}};
  if (fewest > 0) schema["minItems"] = fewest;
  return schema;
}

Json object(Json properties, const std::vector<std::string>& required) {
  Json schema = {
      {"type", "object"}, {"additionalProperties", false}, {"properties", std::move(properties)}};
  if (!required.empty()) schema["required"] = required;
  return schema;
}

Json map_of(Json values) {
  return {{"type", "object"}, {"additionalProperties", std::move(values)}};
}

Json when_key_is(const std::string& key, const std::string& value, Json then) {
  return {{"if", {{"properties", {{key, {{"const", value}}}}}, {"required", Json::array({key})}}},
          {"then", std::move(then)}};
}

Json by_kind(const std::vector<std::pair<std::string, Json>>& variants) {
  std::vector<std::string> kinds;
  Json conditions = Json::array();
  for (const auto& [kind, variant] : variants) {
    kinds.push_back(kind);
    conditions.push_back(when_key_is("kind", kind, variant));
  }
  return {{"type", "object"},
          {"required", Json::array({"kind"})},
          {"properties", {{"kind", choice(kinds)}}},
          {"allOf", std::move(conditions)}};
}

namespace form {

Form<double> number(const NumberRange& range) {
  return {[range](const Node& node) { return node.number(range); }, range_schema(range)};
}

Form<double> number_judged_later(Json schema) {
  return {[](const Node& node) { return node.number(); }, std::move(schema)};
}

Form<std::int64_t> integer(std::int64_t minimum, std::int64_t maximum) {
  return {[=](const Node& node) { return node.integer(minimum, maximum); },
          scenario_file::integer(minimum, maximum)};
}

Form<bool> boolean() {
  return {[](const Node& node) { return node.boolean(); }, scenario_file::boolean()};
}

Form<std::string> text() {
  return {[](const Node& node) { return node.text(); }, scenario_file::text()};
}

Form<std::string> name() {
  return {[](const Node& node) {
            auto text = node.text();
            if (!text || !text->empty()) return text;
            node.fail("must not be empty");
            return std::optional<std::string>();
          },
          Json{{"type", "string"}, {"minLength", 1}}};
}

}  // namespace form

}  // namespace portwave::scenario_file
