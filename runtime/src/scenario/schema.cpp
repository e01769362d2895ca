#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "execution/method_rules.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "scenario/scenario_limits.hpp"
#include "scenario/scenario_method.hpp"
#include "scenario/scenario_network_method.hpp"
#include "scenario/scenario_parts.hpp"
#include "scenario/scenario_values.hpp"

namespace portwave {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kPartName = "^[^\\s.,\\[\\]\"']+$";
constexpr const char* kPortPath = "^[^\\s.]+\\.[^\\s.]+$";

// 0 rather than 0.0 where a number is whole.
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
Json more_than(int limit) { return {{"type", "number"}, {"exclusiveMinimum", limit}}; }
Json positive() { return more_than(0); }
Json not_zero() { return {{"type", "number"}, {"not", {{"const", 0}}}}; }
Json non_negative() { return {{"type", "number"}, {"minimum", 0}}; }

Json integer(std::int64_t minimum, std::int64_t maximum) {
  return {{"type", "integer"}, {"minimum", minimum}, {"maximum", maximum}};
}

Json choice(const std::vector<std::string>& choices) {
  return {{"type", "string"}, {"enum", choices}};
}

Json list(Json items, std::size_t fewest = 0) {
  Json schema = {{"type", "array"}, {"items", std::move(items)}};
  if (fewest > 0) schema["minItems"] = fewest;
  return schema;
}

// An object with these keys and no others.
Json object(Json properties, const std::vector<std::string>& required) {
  Json schema = {
      {"type", "object"}, {"additionalProperties", false}, {"properties", std::move(properties)}};
  if (!required.empty()) schema["required"] = required;
  return schema;
}

// An object whose keys are names of the user's.
Json map_of(Json values) {
  return {{"type", "object"}, {"additionalProperties", std::move(values)}};
}

Json when_key_is(const std::string& key, const std::string& value, Json then) {
  return {{"if", {{"properties", {{key, {{"const", value}}}}}, {"required", Json::array({key})}}},
          {"then", std::move(then)}};
}

// An object that "kind" tells apart; each variant lists its own keys.
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

// The keys of one variant of by_kind, "kind" among them.
Json variant(const std::string& kind, const Json& properties, std::vector<std::string> required) {
  Json all = {{"kind", {{"const", kind}}}};
  all.update(properties);
  required.insert(required.begin(), "kind");
  return object(std::move(all), required);
}

Json matrix_schema() {
  const Json index = {{"type", "integer"}, {"minimum", 0}};
  Json entry = {{"type", "array"},
                {"items", Json::array({index, index, number()})},
                {"minItems", 3},
                {"maxItems", 3}};
  Json schema = {{"description", "rows, or entries [row, column, value] counted from 0"}};
  schema["anyOf"] = Json::array(
      {list(list(number())), object({{"entries", list(std::move(entry))}}, {"entries"})});
  return schema;
}

Json named_schema() {
  Json schema = {{"description", "a name, or a name and a unit"}};
  schema["anyOf"] = Json::array({text(), object({{"name", text()}, {"unit", text()}}, {"name"})});
  return schema;
}

Json port_schema() {
  return object(
      {{"name", described(text(), "name of the port")},
       {"domain", with_default(choice(scenario_file::domain_names()), "generic")},
       {"causality",
        described(choice(scenario_file::causality_names()),
                  "effort_in: the effort acts on the part; flow_in: the flow drives the part")},
       {"dimension", with_default(integer(1, scenario_limits::kPortDimension), 1)}},
      {"name", "causality"});
}

Json signal_schema() {
  const Json sine = object({{"frequency_Hz", number()}, {"phase_rad", with_default(number(), 0)}},
                           {"frequency_Hz"});
  const Json knot = {{"type", "array"}, {"items", number()}, {"minItems", 2}, {"maxItems", 2}};
  Json table = variant(
      "table",
      {{"file", described(text(), "CSV file of two columns, time_s and value, beside this file")},
       {"knots", described(list(knot, 1), "[time_s, value] with increasing times")}},
      {});
  table["oneOf"] =
      Json::array({{{"required", Json::array({"file"})}}, {{"required", Json::array({"knots"})}}});
  return described(
      by_kind({{"constant", variant("constant", {{"value", number()}}, {"value"})},
               {"sine_product", variant("sine_product",
                                        {{"amplitude", number()},
                                         {"offset", with_default(number(), 0)},
                                         {"sines", list(sine, 1)}},
                                        {"amplitude", "sines"})},
               {"table", std::move(table)}}),
      "external input u(t): constant; offset + amplitude times the product of sines; or linear "
      "between the knots of a table");
}

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
        } else if (value.empty()) {
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
    case ParameterKind::states:
      return list(reference("named"));
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
  Json states = {
      {"description", "states by name, the others keep their defaults; or all in order"}};
  states["anyOf"] = Json::array({map_of(number()), list(number())});
  Json schema = object(
      {{"name", described({{"type", "string"}, {"pattern", kPartName}}, "name of the part")},
       {"type", described(choice(names), summaries)},
       {"parameters", {{"type", "object"}}},
       {"initial_state", std::move(states)},
       {"inputs", described(map_of(reference("signal")), "external inputs by name; others are 0")},
       {"allow_active", with_default(described(boolean(), "the part may create energy"), false)}},
      {"name", "type"});
  schema["allOf"] = std::move(conditions);
  return schema;
}

Json ports_of_coupling(std::size_t fewest, std::size_t most) {
  Json ports = list({{"type", "string"}, {"pattern", kPortPath}}, fewest);
  ports["maxItems"] = most;
  return described(std::move(ports), "ports, each \"part.port\"");
}

Json coupling_variant(const std::string& kind) {
  constexpr std::size_t kMany = scenario_limits::kCouplingPorts;
  if (kind == "transformer" || kind == "gyrator") {
    const char* const law = kind == "gyrator" ? "r in e1 = r f2, e2 = -r f1; not 0"
                                              : "n in e1 = n e2, f2 = -n f1; not 0";
    return variant(kind,
                   {{"ports", ports_of_coupling(2, 2)}, {"ratio", described(not_zero(), law)}},
                   {"ports", "ratio"});
  }
  if (kind == "skew_gain") {
    return variant(kind, {{"ports", ports_of_coupling(1, kMany)}, {"gain", reference("matrix")}},
                   {"ports", "gain"});
  }
  if (kind == "kernel") {
    return variant(kind,
                   {{"ports", ports_of_coupling(1, kMany)},
                    {"E", reference("matrix")},
                    {"F", reference("matrix")}},
                   {"ports", "E", "F"});
  }
  if (kind == "resistive") {
    return variant(kind, {{"ports", ports_of_coupling(1, 1)}, {"resistance", non_negative()}},
                   {"ports", "resistance"});
  }
  const bool is_end = kind == "free" || kind == "fixed";
  const bool is_junction = kind == "common_effort" || kind == "common_flow";
  return variant(kind,
                 {{"ports", ports_of_coupling(is_end ? 1 : 2, is_end        ? 1
                                                              : is_junction ? kMany
                                                                            : 2)}},
                 {"ports"});
}

Json coupling_schema() {
  std::vector<std::pair<std::string, Json>> variants;
  for (const std::string& kind : scenario_file::coupling_kinds()) {
    variants.emplace_back(kind, coupling_variant(kind));
  }
  return described(by_kind(variants),
                   "connection: e1 = e2, f1 + f2 = 0; common_effort: all e equal, sum of f is 0; "
                   "common_flow: all f equal, sum of e is 0; transformer; gyrator; skew_gain: "
                   "u = -gain y; kernel: E e + F f = 0; free: e = 0; fixed: f = 0; resistive: "
                   "e = -resistance f");
}

Json time_schema() {
  Json schema =
      object({{"step_s", described(positive(), "macro-step h [s]")},
              {"end_s", described(positive(), "end of the run [s], a whole number of steps")},
              {"steps", described(integer(1, scenario_limits::kSteps), "number of macro-steps")}},
             {"step_s"});
  schema["oneOf"] =
      Json::array({{{"required", Json::array({"end_s"})}}, {{"required", Json::array({"steps"})}}});
  return schema;
}

Json by_port(const Json& values) {
  Json value;
  value["anyOf"] = Json::array({values, list(values)});
  return map_of(std::move(value));
}

Json tuned_impedance(const std::string& kind) {
  Json factor = with_default(
      described(
          {{"anyOf", Json::array({{{"const", 0}}, {{"type", "number"}, {"exclusiveMinimum", 1}}})}},
          "set them anew when the state has put one off by more than this factor; 0: never"),
      plain(CouplingMethod().retune_factor));
  return variant(kind, {{"retune_factor", std::move(factor)}}, {});
}

Json impedance_schema() {
  const Json value = described(positive(), "effort per flow, at every port that is not listed");
  Json ports = described(by_port(positive()), "by \"part.port\": a number, or one per component");
  std::vector<std::pair<std::string, Json>> variants = {
      {"uniform", variant("uniform", {{"value", value}}, {"value"})},
      {"per_port",
       variant("per_port", {{"value", value}, {"ports", std::move(ports)}}, {"value"})}};
  for (const std::string& kind : scenario_file::tuned_impedance_kinds()) {
    variants.emplace_back(kind, tuned_impedance(kind));
  }
  return described(
      by_kind(variants),
      "wave impedances of the ports: given; or tuned to the parts' one-step responses. fne: the "
      "largest that keep every part firmly nonexpansive; matched: no port reflects into its own "
      "part; leaf: both ports of a connection matched to the side whose ports interact less; "
      "adapted: from the leaves of a tree to its root; auto: the best of these by predicted rate");
}

Json tank_schema() {
  return described(
      object({{"initial_J",
               described(non_negative(), "energy at the start [J]; absent: that of initial_waves")},
              {"initial_fraction",
               with_default(described(non_negative(),
                                      "added to it: this share of the energy stored "
                                      "at the start"),
                            plain(TankOptions().initial_fraction))},
              {"cap_J",
               described(non_negative(), "what exceeds it is given up [J]; absent: no limit")}},
             {}),
      "energy tank of the guard, of each island");
}

// The keys of "method", of all kinds.
Json method_properties() {
  const CouplingMethod defaults;
  const RelaxationRange widest = update_rule_of(defaults.kind)->relaxation_range();
  const Json relaxation = {
      {"type", "number"}, {"exclusiveMinimum", 0}, {"exclusiveMaximum", plain(widest.most)}};
  return {
      {"kind",
       with_default(choice(scenario_file::method_kinds()), std::string(to_string(defaults.kind)))},
      {"iterations",
       with_default(described(integer(0, scenario_limits::kIterations),
                              "budget: evaluations of the parts before each step is committed; "
                              "of a dynamic iteration, iterations of each window"),
                    defaults.iterations)},
      {"tolerance",
       with_default(described(non_negative(),
                              fmt::format("relative; 0: use the whole budget. With \"auto\" or "
                                          "\"interface\" and no tolerance of either kind, {:g}",
                                          scenario_file::kAutomaticTolerance)),
                    plain(defaults.tolerance))},
      {"energy_tolerance_J",
       with_default(
           described(non_negative(), "energy of the gap at the ports [J] to stop at; 0: none"),
           plain(defaults.energy_tolerance_J))},
      {"tolerance_per_part",
       with_default(described(boolean(), "hold every part to the tolerance by itself"),
                    defaults.tolerance_per_part)},
      {"relaxation", with_default(described(relaxation, "at most 1 with peaceman-rachford"),
                                  plain(defaults.relaxation))},
      {"acceleration", with_default(described(integer(0, kMaxAcceleration),
                                              "earlier evaluations that Anderson acceleration "
                                              "remembers; 0: none"),
                                    defaults.acceleration)},
      {"impedance", reference("impedance")},
      {"guard", with_default(described(boolean(),
                                       "no step takes more energy from an island's tank than is "
                                       "in it"),
                             defaults.guard)},
      {"tank", tank_schema()},
      {"initial_waves",
       described(by_port(number()), "outgoing waves [sqrt J] by \"part.port\"; others are 0")}};
}

Json one_of(Json value, const char* word) {
  Json schema;
  schema["anyOf"] = Json::array({std::move(value), {{"const", word}}});
  return schema;
}

Json chosen(Json value, const char* what) {
  return with_default(described(one_of(std::move(value), "auto"), what), "auto");
}

// The keys that only methods without waves have.
Json network_properties() {
  const SplittingOptions splitting;
  const DynamicIterationOptions dynamic;
  Json fast = list(text(), 1);
  fast["uniqueItems"] = true;
  const Json share = {{"type", "number"}, {"minimum", 0}, {"maximum", 1}};
  return {
      {"coupling_flow", with_default(described(choice(scenario_file::coupling_flows()),
                                               "strang: how the flow of the coupling is solved"),
                                     std::string(to_string(splitting.coupling_flow)))},
      {"split_dissipation",
       with_default(described(boolean(), "strang: take dissipation out of the local flows"),
                    splitting.split_dissipation)},
      {"fast", described(std::move(fast), "impulse: names of the fast subsystems")},
      {"factor", with_default(described(integer(1, method_rules::kMostSteps),
                                        "impulse: fast steps per macro-step"),
                              splitting.factor)},
      {"lambda", chosen(positive(), "lions-mercier: step of the iteration")},
      {"mu", chosen(non_negative(), "lions-mercier: shift [1/s]")},
      {"omega", chosen(non_negative(), "lions-mercier: exponent of the weight [1/s], at least mu")},
      {"alpha", with_default(described(share,
                                       "lions-mercier: share of the dissipation that stays "
                                       "in the parts"),
                             dynamic.alpha)},
      {"window_steps", with_default(described(integer(1, method_rules::kMostSteps),
                                              "dynamic iteration: macro-steps per window"),
                                    dynamic.window_steps)},
      {"integrator", with_default(described(choice(scenario_file::integrators()),
                                            "dynamic iteration: auto is midpoint, and radau-iia "
                                            "where E of the coupled system is singular"),
                                  std::string(to_string(dynamic.integrator)))},
      {"metric", with_default(described(choice(scenario_file::iteration_metrics()),
                                        "lions-mercier: inner product; auto is energy, and "
                                        "identity where a part is a descriptor system"),
                              std::string(to_string(dynamic.metric)))},
      {"divergence_limit",
       with_default(described(one_of(more_than(1), "none"),
                              "jacobi, gauss-seidel: give up when waveforms change by more than "
                              "this times their size at the start"),
                    dynamic.divergence_limit)}};
}

Json kind_is_one_of(const std::vector<std::string>& kinds) {
  return {{"properties", {{"kind", {{"enum", kinds}}}}}, {"required", Json::array({"kind"})}};
}

// What depends on the kind of method.
Json method_conditions(const Json& properties) {
  const Json absent = false;
  const auto without_others = [&](MethodKind kind) {
    Json keys = Json::object();
    const auto& own = scenario_file::method_keys(kind);
    for (const auto& [key, schema] : properties.items()) {
      if (std::find(own.begin(), own.end(), key) == own.end()) keys[key] = absent;
    }
    return Json{{"properties", std::move(keys)}};
  };
  Json automatic = {{"properties",
                     {{"relaxation", absent},
                      {"acceleration", absent},
                      {"impedance", {{"properties", {{"kind", {{"const", "auto"}}}}}}}}}};
  Json conditions = Json::array();
  for (const UpdateRule* rule : update_rules()) {
    const RelaxationRange range = rule->relaxation_range();
    if (!range.includes_most) continue;  // the widest, which stands with the key
    Json narrow = {{"properties", {{"relaxation", {{"maximum", plain(range.most)}}}}}};
    conditions.push_back(when_key_is("kind", std::string(rule->name()), std::move(narrow)));
  }
  conditions.push_back(when_key_is("kind", "auto", std::move(automatic)));
  Json interface = {{"properties", {{"relaxation", absent}, {"acceleration", absent}}}};
  conditions.push_back(when_key_is("kind", "interface", std::move(interface)));
  std::vector<std::string> networks;
  for (const MethodKind kind : {MethodKind::strang, MethodKind::impulse, MethodKind::lions_mercier,
                                MethodKind::jacobi, MethodKind::gauss_seidel}) {
    networks.emplace_back(to_string(kind));
    Json own = without_others(kind);
    if (kind == MethodKind::impulse) own["required"] = Json::array({"fast"});
    conditions.push_back(when_key_is("kind", networks.back(), std::move(own)));
  }
  conditions.push_back({{"if", kind_is_one_of(networks)},
                        {"then", Json::object()},
                        {"else", without_others(MethodKind::automatic)}});
  networks.emplace_back("auto");
  networks.emplace_back("interface");
  conditions.push_back({{"if", kind_is_one_of(networks)},
                        {"then", Json::object()},
                        {"else", {{"required", Json::array({"impedance"})}}}});
  return conditions;
}

Json method_schema() {
  Json properties = method_properties();
  properties.update(network_properties());
  Json conditions = method_conditions(properties);
  Json schema = object(std::move(properties), {});
  schema["allOf"] = std::move(conditions);
  return schema;
}

Json outputs_schema() {
  Json labels = list(text());
  labels["uniqueItems"] = true;
  return object(
      {{"observe", described(std::move(labels),
                             "\"part.state\", \"part.storage\" or \"part.port.effort\", .flow, "
                             ".incident, .outgoing; absent: every state")},
       {"every", with_default(described(integer(1, scenario_limits::kRecordEvery),
                                        "record every so many steps"),
                              1)}},
      {});
}

}  // namespace

Json scenario_schema() {
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                 {"title", "portwave scenario"}};
  schema.update(object({{"$schema", described(text(), "this schema")},
                        {"name", {{"type", "string"}, {"minLength", 1}}},
                        {"description", text()},
                        {"time", time_schema()},
                        {"subsystems", list(reference("subsystem"), 1)},
                        {"couplings", list(reference("coupling"))},
                        {"method", method_schema()},
                        {"outputs", outputs_schema()}},
                       {"name", "time", "subsystems", "method"}));
  Json definitions = {{"subsystem", subsystem_schema()}, {"coupling", coupling_schema()},
                      {"impedance", impedance_schema()}, {"signal", signal_schema()},
                      {"matrix", matrix_schema()},       {"port", port_schema()},
                      {"named", named_schema()}};
  for (const PartType& type : catalogue()) {
    definitions[type.name + "_parameters"] = parameters_schema(type);
  }
  schema["definitions"] = std::move(definitions);
  return schema;
}

}  // namespace portwave
