#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/core/gauss_stages.hpp"
#include "scenario/method_schema.hpp"
#include "scenario/method_special_options.hpp"
#include "scenario/scenario_events.hpp"
#include "scenario/scenario_limits.hpp"
#include "scenario/scenario_parts.hpp"
#include "scenario/scenario_signals.hpp"
#include "scenario/scenario_values.hpp"
#include "scenario/schema_tools.hpp"
#include "scenario/template_schema.hpp"

namespace portwave {
namespace scenario_file {
namespace {

constexpr const char* kPartName = "^[^\\s.,\\[\\]\"']+$";
constexpr const char* kPortPath = "^[^\\s.]+\\.[^\\s.]+$";

Json matrix_schema() {
  const Json index = {{"type", "integer"}, {"minimum", 0}};
  Json entry = {{"type", "array"},
                {"items", Json::array({index, index, number()})},
                {"minItems", 3},
                {"maxItems", 3}};
  Json schema = {{"description",
                  "rows, entries [row, column, value] counted from 0, or a file: Matrix Market "
                  "(.mtx), SciPy (.npz), NumPy (.npy) or MATLAB (.mat)"}};
  schema["anyOf"] = Json::array(
      {list(list(number())), object({{"entries", list(std::move(entry))}}, {"entries"}),
       object({{"file", text()},
               {"variable", described(text(), "of a .mat file: which of its matrices")}},
              {"file"})});
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
       {"domain", with_default(described(choice(domain_names()),
                                         "what effort and flow are; generic meets every domain"),
                               "generic")},
       {"causality",
        described(choice(causality_names()),
                  "effort_in: the effort acts on the part; flow_in: the flow drives the part")},
       {"dimension",
        with_default(described(integer(1, scenario_limits::kPortDimension), "number of components"),
                     1)}},
      {"name", "causality"});
}

Json signal_schema() {
  std::vector<std::pair<std::string, Json>> variants;
  for (const SignalKindSchema& source : signal_kind_schemas()) {
    Json schema = variant(source.kind, source.properties, source.required);
    schema.update(source.rules);
    variants.emplace_back(source.kind, std::move(schema));
  }
  variants.emplace_back("signal",
                        variant("signal", {{"signal", reference("signal_name")}}, {"signal"}));
  variants.emplace_back(
      "settable",
      variant("settable", {{"initial", with_default(described(number(), "until it is set"), 0)}},
              {}));
  return described(by_kind(variants),
                   "external input u(t): constant; offset + amplitude times the product of sines; "
                   "linear between the knots of a table; chirp; noise; an expression in t; a "
                   "signal of \"signals\", held "
                   "over each step; or set by the program that steps");
}

Json signal_name_schema() {
  Json schema = {{"description", "a signal by name, a quantity \"part.state\", or a number"}};
  schema["anyOf"] = Json::array({text(), number()});
  return schema;
}

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
      return list(reference("named"));
    case ParameterKind::states:
      return {{"anyOf", Json::array({list(reference("named")),
                                     object({{"count", integer(1, scenario_limits::kStates)},
                                             {"name", with_default(text(), "x")},
                                             {"unit", with_default(text(), "")}},
                                            {"count"})})}};
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
       {"allow_active", with_default(described(boolean(), "the part may create energy"), false)},
       {"count", count_schema()},
       {"substeps", with_default(described(integer(1, kMostPartSubsteps),
                                           "steps that the part takes within each step"),
                                 1)},
       {"cut", described(object({{"parts", described(integer(1, scenario_limits::kCutParts),
                                                     "about equal pieces")}},
                                {"parts"}),
                         "cuts a linear part into pieces that are stepped in parallel")}},
      {"name", "type"});
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

Json plugins_schema() {
  Json files = list({{"type", "string"}, {"minLength", 1}}, 1);
  files["uniqueItems"] = true;
  return described(std::move(files),
                   "shared libraries with types of parts, such as \"./libmy.so\"; loaded only with "
                   "--allow-plugins");
}

Json ports_of_coupling(std::size_t fewest, std::size_t most) {
  Json ports = list({{"type", "string"}, {"pattern", kPortPath}}, fewest);
  ports["maxItems"] = most;
  return described(std::move(ports), "ports, each \"part.port\"");
}

Json described_matrix(const std::string& description) {
  return described({{"allOf", Json::array({reference("matrix")})}}, description);
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
    return variant(kind,
                   {{"ports", ports_of_coupling(1, kMany)},
                    {"gain", described_matrix("skew, of the inputs by the outputs")}},
                   {"ports", "gain"});
  }
  if (kind == "kernel") {
    return variant(kind,
                   {{"ports", ports_of_coupling(1, kMany)},
                    {"E", described_matrix("of the efforts")},
                    {"F", described_matrix("of the flows")}},
                   {"ports", "E", "F"});
  }
  if (kind == "resistive") {
    return variant(kind,
                   {{"ports", ports_of_coupling(1, 1)},
                    {"resistance", described(non_negative(), "effort per flow")}},
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
  for (const std::string& kind : coupling_kinds()) {
    Json variant = coupling_variant(kind);
    variant["properties"]["for"] = indices_schema();
    variants.emplace_back(kind, std::move(variant));
  }
  return described(by_kind(variants),
                   "connection: e1 = e2, f1 + f2 = 0; common_effort: all e equal, sum of f is 0; "
                   "common_flow: all f equal, sum of e is 0; transformer; gyrator; skew_gain: "
                   "u = -gain y; kernel: E e + F f = 0; free: e = 0; fixed: f = 0; resistive: "
                   "e = -resistance f");
}

Json time_schema() {
  const NumberRange tolerances = StepSizes::tolerances();
  Json tolerance = {
      {"type", "number"}, {"minimum", tolerances.minimum}, {"maximum", tolerances.maximum}};
  const Json step = by_kind(
      {{"adaptive",
        variant(
            "adaptive",
            {{"tolerance", described(std::move(tolerance), "of the local error, relative")},
             {"largest_s", described(positive(), "largest step [s]; absent: an eighth of the run")},
             {"smallest_s",
              described(positive(),
                        "no shorter step is tried [s]; absent: as short as it has to be")},
             {"event_tolerance_s",
              described(positive(),
                        "a step ends at most so long after an event [s]; absent: 1e-9 of the "
                        "largest step")}},
            {"tolerance"})}});
  Json schema = object(
      {{"step_s", described(positive(), "macro-step h [s]")},
       {"step", described(step, "how steps choose their size, in place of step_s")},
       {"start_s", with_default(described({{"type", "number"}}, "start of the run [s]"), 0)},
       {"end_s", described({{"type", "number"}},
                           "end of the run [s], later than start_s; with step_s a whole number of "
                           "steps after that")},
       {"steps", described(integer(1, scenario_limits::kSteps), "number of macro-steps")},
       {"start",
        with_default(described(choice({"consistent", "as_given"}),
                               "states that violate a rigid joint, at the start or where an input "
                               "jumps: refused, or stepped as they are"),
                     "consistent")}},
      {});
  schema["oneOf"] = Json::array({{{"required", Json::array({"step_s", "end_s"})}},
                                 {{"required", Json::array({"step_s", "steps"})}},
                                 {{"required", Json::array({"step", "end_s"})}}});
  return schema;
}

Json outputs_schema() {
  Json labels = list(text());
  labels["uniqueItems"] = true;
  return object(
      {{"observe", described(std::move(labels),
                             "\"part.state\", \"part.storage\" or \"part.port.effort\", .flow, "
                             ".incident, .outgoing; absent: every state")},
       {"every",
        with_default(
            described(integer(1, scenario_limits::kRecordEvery), "record every so many steps"), 1)},
       {"every_s",
        described(positive(),
                  "record every so many seconds: a whole number of steps or, where steps "
                  "choose their size, between them too")},
       {"envelope", with_default(described(boolean(),
                                           "also the smallest and the largest value of "
                                           "each quantity since the row before"),
                                 false)},
       {"last_s", described(positive(), "keep the last so many seconds of the run only")},
       {"energies", with_default(described(boolean(),
                                           "also what each part and each junction does "
                                           "with energy"),
                                 false)},
       {"format", with_default(described(choice({"csv", "hdf5", "none"}),
                                         "texts, one file results.h5, or the summary alone"),
                               "csv")},
       {"per_rank", with_default(described(boolean(),
                                           "with \"hdf5\" on several ranks: each writes a file "
                                           "with its parts, and results.h5 refers to these"),
                                 false)}},
      {});
}

Json whole_schema() {
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                 {"title", "portwave scenario"}};
  schema.update(
      object({{"$schema", described(text(), "this schema")},
              {"name", described({{"type", "string"}, {"minLength", 1}}, "name of the scenario")},
              {"description", described(text(), "a text for people")},
              {"plugins", plugins_schema()},
              {"time", time_schema()},
              {"parameters", variables_schema("values by name")},
              {"assemblies", assemblies_schema()},
              {"subsystems", list(Json::object(), 1)},
              {"couplings", list(reference("coupling"))},
              {"method", method_schema()},
              {"signals", signals_schema()},
              {"events", events_schema()},
              {"outputs", outputs_schema()}},
             {"name", "time", "subsystems"}));
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
      {"signal", signal_schema()},       {"signal_name", signal_name_schema()},
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

const std::vector<SignalKindSchema>& signal_kind_schemas() {
  static const std::vector<SignalKindSchema> all = [] {
    const Json sine =
        object({{"frequency_Hz", described(number(), "frequency [Hz]")},
                {"phase_rad", with_default(described(number(), "phase at t = 0 [rad]"), 0)}},
               {"frequency_Hz"});
    const Json knot = {{"type", "array"}, {"items", number()}, {"minItems", 2}, {"maxItems", 2}};
    const Json offset = with_default(described(number(), "added to it"), 0);
    return std::vector<SignalKindSchema>{
        {"constant", {{"value", described(number(), "the value")}}, {"value"}},
        {"sine_product",
         {{"amplitude", described(number(), "factor of the product")},
          {"offset", offset},
          {"sines",
           described(list(sine, 1), "factors sin(2 pi f t + phase); one is the usual case")}},
         {"amplitude", "sines"}},
        {"table",
         {{"file",
           described(text(), "CSV file of two columns, time_s and value, beside this file")},
          {"knots", described(list(knot, 1), "[time_s, value] with increasing times")}},
         {},
         {{"oneOf", Json::array({{{"required", Json::array({"file"})}},
                                 {{"required", Json::array({"knots"})}}})}}},
        {"chirp",
         {{"amplitude", described(number(), "of the sine")},
          {"from_Hz", described(number(), "frequency at t = 0 [Hz]")},
          {"to_Hz", described(number(), "frequency from duration_s on [Hz]")},
          {"duration_s", described(positive(), "time in which the frequency changes [s]")},
          {"phase_rad", with_default(described(number(), "phase at t = 0 [rad]"), 0)},
          {"offset", offset}},
         {"amplitude", "from_Hz", "to_Hz", "duration_s"}},
        {"noise",
         {{"standard_deviation", described(non_negative(), "of the values, which are Gaussian")},
          {"interval_s", described(positive(), "between independent values [s]")},
          {"seed", with_default(described(integer(0, scenario_limits::kInteger),
                                          "the same seed gives the same values"),
                                1)},
          {"mean", with_default(described(number(), "of the values"), 0)}},
         {"standard_deviation", "interval_s"}},
        {"expression",
         {{"expression", described(text(), "in t [s], such as \"5*sin(2*pi*t)\"")}},
         {"expression"}}};
  }();
  return all;
}

}  // namespace scenario_file

scenario_file::Json scenario_schema() { return scenario_file::whole_schema(); }

}  // namespace portwave
