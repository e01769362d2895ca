#include "scenario/parts/values.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "scenario/files/matrix_file.hpp"
#include "scenario/reader/key_table.hpp"
#include "scenario/reader/limits.hpp"

namespace portwave::scenario_file {
namespace {

constexpr std::array kDomains = {Domain::generic,    Domain::translation, Domain::rotation,
                                 Domain::electrical, Domain::magnetic,    Domain::hydraulic,
                                 Domain::thermal};
constexpr std::array kCausalities = {Causality::effort_in, Causality::flow_in};

template <class Value, std::size_t n>
Form<Value> one_of(const std::array<Value, n>& values) {
  std::vector<std::pair<std::string, Value>> words;
  for (const Value value : values) words.emplace_back(to_string(value), value);
  return form::choice(std::move(words));
}

// All elements of an array, each by `read`; nothing if one of them has a defect.
template <class T, class Read>
std::optional<std::vector<T>> read_list(const Node& node, std::string_view expected, Read read) {
  if (!node.is_array(expected)) return std::nullopt;
  std::vector<T> values;
  values.reserve(node.size());
  for (std::size_t i = 0; i < node.size() && !node.defects().is_full(); ++i) {
    const Node element = node.at(i);
    if (std::optional<T> value = read(element)) values.push_back(*std::move(value));
  }
  if (values.size() != node.size()) return std::nullopt;
  return values;
}

std::optional<MatrixRows> read_rows(const Node& node) {
  auto rows = read_list<std::vector<double>>(node, "an array of rows", read_numbers);
  if (!rows) return std::nullopt;
  for (std::size_t i = 1; i < rows->size(); ++i) {
    if ((*rows)[i].size() == rows->front().size()) continue;
    const Node row = node.at(i);
    row.fail(fmt::format("must have as many numbers as row 0, {}, got {}", rows->front().size(),
                         (*rows)[i].size()));
    return std::nullopt;
  }
  return rows;
}

std::optional<MatrixEntry> read_entry(const Node& node) {
  constexpr std::string_view kShape = "an entry [row, column, value]";
  if (!node.json().is_array() || node.size() != 3) {
    node.fail_expected(kShape);
    return std::nullopt;
  }
  constexpr int kMost = std::numeric_limits<int>::max();
  const Node row = node.at(0);
  const Node column = node.at(1);
  const Node value = node.at(2);
  const auto i = row.integer(0, kMost);
  const auto j = column.integer(0, kMost);
  const auto v = value.number();
  if (!i || !j || !v) return std::nullopt;
  return MatrixEntry{static_cast<int>(*i), static_cast<int>(*j), *v};
}

struct EntriesKeys {
  MatrixEntries entries;
};

Form<MatrixEntries> matrix_entries() {
  const Json index = {{"type", "integer"}, {"minimum", 0}};
  Json entry = {{"type", "array"},
                {"items", Json::array({index, index, number()})},
                {"minItems", 3},
                {"maxItems", 3}};
  return {[](const Node& node) {
            return read_list<MatrixEntry>(node, "an array of entries [row, column, value]",
                                          read_entry);
          },
          list(std::move(entry))};
}

const KeyTable<EntriesKeys>& entries_keys() {
  static const KeyTable<EntriesKeys> keys(
      {required_key("entries", "", to(&EntriesKeys::entries, matrix_entries()))});
  return keys;
}

std::optional<MatrixEntries> read_entries(const Node& node) {
  EntriesKeys keys;
  if (!entries_keys().read(node, keys)) return std::nullopt;
  return std::move(keys.entries);
}

struct MatrixFileKeys {
  std::string file, variable;
};

const KeyTable<MatrixFileKeys>& matrix_file_keys() {
  static const KeyTable<MatrixFileKeys> keys(
      {required_key("file", "", to(&MatrixFileKeys::file, form::text())),
       optional_key("variable", "of a .mat file: which of its matrices",
                    to(&MatrixFileKeys::variable, form::text()))});
  return keys;
}

std::optional<ShapedMatrix> read_matrix_member(const Node& node,
                                               const std::filesystem::path& folder) {
  MatrixFileKeys keys;
  if (!matrix_file_keys().read(node, keys)) return std::nullopt;
  if (const ShapedMatrix* const own = MatricesInMemory::find(keys.file)) {
    for (const MatrixEntry& entry : own->entries) {
      if (std::isfinite(entry.value)) continue;
      node.fail(fmt::format("entry ({},{}) is not finite", entry.row, entry.column));
      return std::nullopt;
    }
    ShapedMatrix matrix = *own;
    matrix.source.clear();  // its name is not one that its owner has given
    return matrix;
  }
  const ObjectReader object(node);
  const auto variable = object.find("variable");
  if (variable && !is_mat_file(keys.file)) {
    variable->fail(fmt::format("is for .mat files, which hold several matrices; {} holds one",
                               in_quotes(keys.file)));
    return std::nullopt;
  }
  std::vector<std::string> defects;
  ShapedMatrix matrix = read_matrix_file(folder / keys.file, defects, keys.variable);
  matrix.source = keys.file;
  const auto file = object.find("file");
  for (const std::string& defect : defects) {
    file->fail(fmt::format("the matrix {}{}", in_quotes(keys.file), defect));
  }
  return defects.empty() ? std::optional(std::move(matrix)) : std::nullopt;
}

const KeyTable<Port>& port_keys() {
  static const KeyTable<Port> keys(
      {required_key("name", "name of the port", to(&Port::name, form::text())),
       optional_key("domain", "physical domain of effort and flow; generic fits every domain",
                    to(&Port::domain, one_of(kDomains)), "generic"),
       required_key("causality",
                    "effort_in: the effort acts on the part; flow_in: the flow drives the part",
                    to(&Port::causality, one_of(kCausalities))),
       optional_key("dimension", "number of components",
                    to(&Port::dimension, form::integer(1, scenario_limits::kPortDimension)), 1)});
  return keys;
}

std::optional<Port> read_port(const Node& node) {
  Port port;
  if (!port_keys().read(node, port)) return std::nullopt;
  return port;
}

std::optional<std::vector<Port>> read_ports(const Node& node) {
  auto ports = read_list<Port>(node, "an array of ports", read_port);
  if (!ports) return std::nullopt;
  std::int64_t size = 0;
  for (const Port& port : *ports) size += port.dimension;
  if (size <= scenario_limits::kPartPorts) return ports;
  node.fail(fmt::format("a part must have at most {} scalar ports, got {}",
                        scenario_limits::kPartPorts, size));
  return std::nullopt;
}

// Of StateVariable and ExternalInput.
template <class Named>
const KeyTable<Named>& named_keys() {
  static const KeyTable<Named> keys({required_key("name", "", to(&Named::name, form::text())),
                                     optional_key("unit", "", to(&Named::unit, form::text()))});
  return keys;
}

// An object with a name and a unit, or the name alone.
template <class Named>
std::optional<Named> read_named(const Node& node) {
  if (node.json().is_string()) return Named{*node.text(), ""};
  if (!node.is_object("a name or an object with \"name\" and \"unit\"")) return std::nullopt;
  Named named;
  if (!named_keys<Named>().read(node, named)) return std::nullopt;
  return named;
}

struct CountedStates {
  std::int64_t count = 0;
  std::string name, unit;
};

const KeyTable<CountedStates>& counted_states_keys() {
  static const KeyTable<CountedStates> keys(
      {required_key("count", "",
                    to(&CountedStates::count, form::integer(1, scenario_limits::kStates))),
       optional_key("name", "", to(&CountedStates::name, form::text()), "x"),
       optional_key("unit", "", to(&CountedStates::unit, form::text()), "")});
  return keys;
}

// {"count": 3, "name": "q", "unit": "m"}: q1, q2, q3.
std::optional<std::vector<StateVariable>> read_counted_states(const Node& node) {
  CountedStates keys;
  if (!counted_states_keys().read(node, keys)) return std::nullopt;
  const auto& [count, name, unit] = keys;
  constexpr std::size_t kMostCharacters = std::size_t{1} << 27;  // of all names and units
  if (name.size() + unit.size() > kMostCharacters / static_cast<std::size_t>(count)) {
    node.fail(
        fmt::format("{} names that begin with {} characters, with units of {}, have more than "
                    "{} characters together",
                    count, name.size(), unit.size(), kMostCharacters));
    return std::nullopt;
  }
  std::vector<StateVariable> states;
  states.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 1; i <= count; ++i) states.push_back({name + std::to_string(i), unit});
  return states;
}

// {"q": "rad", "p": "kg m^2/s"}: names with their units, in this order.
bool holds_units(const Json& object) {
  return object.is_object() && !object.empty() &&
         std::ranges::all_of(object, [](const Json& unit) { return unit.is_string(); });
}

template <class Named>
std::vector<Named> names_with_units(const Json& object) {
  std::vector<Named> out;
  for (const auto& [name, unit] : object.items()) {
    out.push_back({name, unit.template get<std::string>()});
  }
  return out;
}

std::optional<std::vector<StateVariable>> read_states(const Node& node) {
  if (holds_units(node.json())) return names_with_units<StateVariable>(node.json());
  if (node.json().is_object()) return read_counted_states(node);
  return read_list<StateVariable>(
      node, "an array of states, {\"name\": \"unit\", ...} or {\"count\": ...}",
      read_named<StateVariable>);
}

std::optional<std::vector<ExternalInput>> read_external_inputs(const Node& node) {
  if (holds_units(node.json())) return names_with_units<ExternalInput>(node.json());
  return read_list<ExternalInput>(node, "an array of inputs, or {\"name\": \"unit\", ...}",
                                  read_named<ExternalInput>);
}

template <class T>
std::optional<ParameterValue> as_parameter(std::optional<T> value) {
  if (!value) return std::nullopt;
  return ParameterValue(*std::move(value));
}

std::optional<ParameterValue> read_matrix_parameter(const Node& node,
                                                    const std::filesystem::path& folder) {
  auto matrix = read_matrix(node, folder);
  if (!matrix) return std::nullopt;
  return std::visit([](auto& form) { return ParameterValue(std::move(form)); }, *matrix);
}

// An expression, or a number in its place.
std::optional<std::string> read_expression(const Node& node) {
  if (node.json().is_string()) return node.text();
  if (node.json().is_number()) return fmt::format("{}", node.json().get<double>());
  node.fail_expected("an expression or a number");
  return std::nullopt;
}

bool holds_text(const Json& rows) {
  if (!rows.is_array()) return false;
  return std::ranges::any_of(rows, [](const Json& row) {
    return row.is_array() &&
           std::ranges::any_of(row, [](const Json& entry) { return entry.is_string(); });
  });
}

std::optional<ExpressionRows> read_expression_rows(const Node& node) {
  return read_list<std::vector<std::string>>(node, "an array of rows", [](const Node& row) {
    return read_list<std::string>(row, "an array of expressions or numbers", read_expression);
  });
}

std::optional<std::vector<NamedNumber>> read_constants(const Node& node) {
  if (!node.is_object("an object of names and numbers")) return std::nullopt;
  std::vector<NamedNumber> constants;
  bool is_sound = true;
  for (const auto& [name, json] : node.json().items()) {
    const Node member = node.member(name, json);
    if (const auto value = member.number()) {
      constants.push_back({name, *value});
    } else {
      is_sound = false;
    }
  }
  if (!is_sound) return std::nullopt;
  return constants;
}

// Ranges are for the catalogue to check; here only what an int can hold and memory can bear.
std::optional<ParameterValue> read_integer_parameter(const Node& node, const ParameterInfo& info) {
  constexpr double kMost = scenario_limits::kInteger;
  const double most = std::clamp(info.maximum, 0.0, kMost);
  const double least = std::clamp(info.minimum, -kMost, most);
  const auto value =
      node.integer(static_cast<std::int64_t>(least), static_cast<std::int64_t>(most));
  if (!value) return std::nullopt;
  return ParameterValue(static_cast<int>(*value));
}

}  // namespace

std::optional<std::vector<double>> read_numbers(const Node& node) {
  return read_list<double>(node, "an array of numbers", [](const Node& n) { return n.number(); });
}

std::optional<std::vector<std::string>> read_texts(const Node& node) {
  return read_list<std::string>(node, "an array of texts", [](const Node& n) { return n.text(); });
}

namespace {

/// Numbers of nested arrays, all of one size at each depth.
bool add_numbers(const Node& node, std::size_t depth, NumberArray& out) {
  constexpr std::size_t kMostDimensions = 16;
  if (depth == kMostDimensions) {
    node.fail(fmt::format("must have at most {} dimensions", kMostDimensions));
    return false;
  }
  if (out.shape.size() == depth) out.shape.push_back(node.size());
  if (out.shape[depth] != node.size()) {
    node.fail(fmt::format("must have {} elements, as those before it, got {}", out.shape[depth],
                          node.size()));
    return false;
  }
  const auto is_deep = [&](std::size_t i) { return node.at(i).json().is_array(); };
  for (std::size_t i = 0; i < node.size(); ++i) {
    const Node element = node.at(i);
    if (is_deep(i) != is_deep(0)) {
      element.fail("must be a number where the others are, and an array where they are");
      return false;
    }
    if (is_deep(i)) {
      if (!add_numbers(element, depth + 1, out)) return false;
    } else if (const auto value = element.json().is_boolean()
                                      ? std::optional(element.json().get<bool>() ? 1.0 : 0.0)
                                      : element.number()) {
      if (out.shape.size() != depth + 1) {
        element.fail("must be an array, as those before it");
        return false;
      }
      out.values.push_back(*value);
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

std::optional<NamedValues> read_named_values(const Node& node) {
  if (!node.is_object("an object of names and values")) return std::nullopt;
  NamedValues out;
  bool is_sound = true;
  for (const auto& [name, json] : node.json().get_ref<const Json::object_t&>()) {
    const Node member = node.member(name, json);
    if (json.is_string()) {
      out.insert_or_assign(name, json.get<std::string>());
    } else if (json.is_array()) {
      NumberArray array;
      if (add_numbers(member, 0, array)) {
        out.insert_or_assign(name, std::move(array));
      } else {
        is_sound = false;
      }
    } else if (const auto value = json.is_boolean() ? std::optional(json.get<bool>() ? 1.0 : 0.0)
                                                    : member.number()) {
      out.insert_or_assign(name, *value);
    } else {
      is_sound = false;
    }
  }
  if (!is_sound) return std::nullopt;
  return out;
}

std::optional<MatrixValue> read_matrix(const Node& node, const std::filesystem::path& folder) {
  const auto as_value = [](auto matrix) {
    return matrix ? std::optional<MatrixValue>(*std::move(matrix)) : std::nullopt;
  };
  if (node.json().is_object()) {
    return node.json().contains("file") ? as_value(read_matrix_member(node, folder))
                                        : as_value(read_entries(node));
  }
  if (!node.is_array("a matrix: rows [[...], ...], {\"entries\": [[row, column, value], ...]} or "
                     "{\"file\": ...}")) {
    return std::nullopt;
  }
  return as_value(read_rows(node));
}

Eigen::MatrixXd dense_matrix(const MatrixValue& matrix, int size) {
  if (const auto* const rows = std::get_if<MatrixRows>(&matrix)) {
    const auto columns = rows->empty() ? Eigen::Index{0} : std::ssize(rows->front());
    Eigen::MatrixXd dense(std::ssize(*rows), columns);
    for (Eigen::Index i = 0; i < dense.rows(); ++i) {
      const std::vector<double>& row = (*rows)[static_cast<std::size_t>(i)];
      dense.row(i) = Eigen::Map<const Eigen::RowVectorXd>(row.data(), columns);
    }
    return dense;
  }
  const auto* const shaped = std::get_if<ShapedMatrix>(&matrix);
  Eigen::MatrixXd dense = shaped != nullptr ? Eigen::MatrixXd::Zero(shaped->rows, shaped->columns)
                                            : Eigen::MatrixXd::Zero(size, size);
  for (const MatrixEntry& entry :
       shaped != nullptr ? shaped->entries : std::get<MatrixEntries>(matrix)) {
    dense(entry.row, entry.column) += entry.value;
  }
  return dense;
}

std::optional<Eigen::MatrixXd> read_dense_matrix(const Node& node, int size,
                                                 const std::filesystem::path& folder) {
  const auto matrix = read_matrix(node, folder);
  if (!matrix) return std::nullopt;
  const auto* const shaped = std::get_if<ShapedMatrix>(&*matrix);
  if (shaped != nullptr &&
      std::max(shaped->rows, shaped->columns) > std::max(size, scenario_limits::kCouplingPorts)) {
    node.fail(fmt::format("must be {}×{}, one row and column per scalar port, got {}×{}", size,
                          size, shaped->rows, shaped->columns));
    return std::nullopt;
  }
  if (const auto* const entries = std::get_if<MatrixEntries>(&*matrix)) {
    for (const MatrixEntry& entry : *entries) {
      if (entry.row < size && entry.column < size) continue;
      node.fail(
          fmt::format("entry ({},{}) lies outside the {}×{} matrix, one row and column per "
                      "scalar port from 0",
                      entry.row, entry.column, size, size));
      return std::nullopt;
    }
  }
  return dense_matrix(*matrix, size);
}

std::optional<ParameterValue> read_parameter(const Node& node, const ParameterInfo& info,
                                             const std::filesystem::path& folder) {
  switch (info.kind) {
    case ParameterKind::number:
      return as_parameter(node.number());
    case ParameterKind::numbers:
      return as_parameter(read_numbers(node));
    case ParameterKind::integer:
      return read_integer_parameter(node, info);
    case ParameterKind::boolean:
      return as_parameter(node.boolean());
    case ParameterKind::choice:
      return as_parameter(node.choice(info.choices));
    case ParameterKind::matrix:
      return read_matrix_parameter(node, folder);
    case ParameterKind::ports:
      return as_parameter(read_ports(node));
    case ParameterKind::inputs:
      return as_parameter(read_external_inputs(node));
    case ParameterKind::states:
      return as_parameter(read_states(node));
    case ParameterKind::expression:
      return as_parameter(read_expression(node));
    case ParameterKind::expressions:
      return as_parameter(read_list<std::string>(node, "an array of expressions", read_expression));
    case ParameterKind::expression_matrix:
      if (holds_text(node.json())) return as_parameter(read_expression_rows(node));
      return read_matrix_parameter(node, folder);
    case ParameterKind::constants:
      return as_parameter(read_constants(node));
    case ParameterKind::texts:
      return as_parameter(
          read_list<std::string>(node, "an array of texts", [&info](const Node& one) {
            return info.choices.empty() ? one.text() : one.choice(info.choices);
          }));
  }
  return std::nullopt;
}

Json matrix_schema() {
  Json schema = {{"description",
                  "rows, entries [row, column, value] counted from 0, or a file: Matrix Market "
                  "(.mtx), SciPy (.npz), NumPy (.npy) or MATLAB (.mat)"}};
  schema["anyOf"] =
      Json::array({list(list(number())), entries_keys().schema(), matrix_file_keys().schema()});
  return schema;
}

Json expression_schema() { return {{"anyOf", Json::array({text(), number()})}}; }

Json expression_matrix_schema() {
  Json schema = {{"description", "rows of expressions or numbers, or a matrix"}};
  schema["anyOf"] = Json::array({list(list(expression_schema())), reference("matrix")});
  return schema;
}

Json constants_schema() { return map_of(number()); }

Json named_value_schema() {
  const Json many = {
      {"type", "array"},
      {"description", "an array of numbers, by rows of rows where it has more than one dimension"}};
  return {{"anyOf", Json::array({number(), boolean(), text(), many})}};
}

Json port_schema() { return port_keys().schema(); }

Json named_schema() {
  Json schema = {{"description", "a name, or a name and a unit"}};
  schema["anyOf"] = Json::array({text(), named_keys<StateVariable>().schema()});
  return schema;
}

Json counted_states_schema() { return counted_states_keys().schema(); }

}  // namespace portwave::scenario_file
