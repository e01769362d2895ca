#include "scenario/scenario_values.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "scenario/matrix_file.hpp"
#include "scenario/scenario_limits.hpp"

namespace portwave::scenario_file {
namespace {

constexpr std::array kDomains = {Domain::generic,    Domain::translation, Domain::rotation,
                                 Domain::electrical, Domain::magnetic,    Domain::hydraulic,
                                 Domain::thermal};
constexpr std::array kCausalities = {Causality::effort_in, Causality::flow_in};

template <class Values>
std::vector<std::string> names_of(const Values& values) {
  std::vector<std::string> names;
  names.reserve(values.size());
  for (const auto value : values) names.emplace_back(to_string(value));
  return names;
}

template <class Values>
auto value_named(const Values& values, const std::string& name) {
  return *std::find_if(values.begin(), values.end(),
                       [&name](const auto value) { return to_string(value) == name; });
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

std::optional<MatrixEntries> read_entries(const Node& node) {
  const ObjectReader object(node, {"entries"});
  const std::optional<Node> entries = object.require("entries");
  if (!entries) return std::nullopt;
  return read_list<MatrixEntry>(*entries, "an array of entries [row, column, value]", read_entry);
}

std::optional<ShapedMatrix> read_matrix_member(const Node& node,
                                               const std::filesystem::path& folder) {
  const ObjectReader object(node, {"file", "variable"});
  const std::optional<Node> file = object.require("file");
  const std::optional<Node> variable = object.find("variable");
  const auto name = file ? file->text() : std::nullopt;
  const auto meant = variable ? variable->text() : std::string();
  if (!name || !meant) return std::nullopt;
  if (variable && !is_mat_file(*name)) {
    variable->fail(fmt::format("is for .mat files, which hold several matrices; {} holds one",
                               in_quotes(*name)));
    return std::nullopt;
  }
  std::vector<std::string> defects;
  ShapedMatrix matrix = read_matrix_file(folder / *name, defects, *meant);
  matrix.source = *name;
  for (const std::string& defect : defects) {
    file->fail(fmt::format("the matrix {}{}", in_quotes(*name), defect));
  }
  return defects.empty() ? std::optional(std::move(matrix)) : std::nullopt;
}

// A member that is read if it is there; its default otherwise.
template <class T, class Read>
std::optional<T> read_member(const ObjectReader& object, std::string_view key, T otherwise,
                             Read read) {
  const std::optional<Node> found = object.find(key);
  return found ? read(*found) : std::optional<T>(std::move(otherwise));
}

std::optional<Port> read_port(const Node& node) {
  const ObjectReader object(node, {"name", "domain", "causality", "dimension"});
  const std::optional<Node> name_node = object.require("name");
  const std::optional<Node> causality_node = object.require("causality");
  const auto name = name_node ? name_node->text() : std::nullopt;
  const auto causality = causality_node ? causality_node->choice(causality_names()) : std::nullopt;
  const auto domain = read_member<std::string>(
      object, "domain", "generic", [](const Node& n) { return n.choice(domain_names()); });
  const auto dimension = read_member<std::int64_t>(object, "dimension", 1, [](const Node& n) {
    return n.integer(1, scenario_limits::kPortDimension);
  });
  if (!name || !causality || !domain || !dimension) return std::nullopt;
  return Port{*name, value_named(kCausalities, *causality), value_named(kDomains, *domain),
              static_cast<int>(*dimension)};
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

// StateVariable and InputChannel: an object with a name and a unit, or the name alone.
template <class Named>
std::optional<Named> read_named(const Node& node) {
  if (node.json().is_string()) return Named{*node.text(), ""};
  if (!node.is_object("a name or an object with \"name\" and \"unit\"")) return std::nullopt;
  const ObjectReader object(node, {"name", "unit"});
  const std::optional<Node> name_node = object.require("name");
  const auto name = name_node ? name_node->text() : std::nullopt;
  const auto unit =
      read_member<std::string>(object, "unit", "", [](const Node& n) { return n.text(); });
  if (!name || !unit) return std::nullopt;
  return Named{*name, *unit};
}

// {"count": 3, "name": "q", "unit": "m"}: q1, q2, q3.
std::optional<std::vector<StateVariable>> read_counted_states(const Node& node) {
  const ObjectReader object(node, {"count", "name", "unit"});
  const std::optional<Node> count_node = object.require("count");
  std::optional<std::int64_t> count;
  if (count_node) count = count_node->integer(1, scenario_limits::kStates);
  const auto as_text = [](const Node& n) { return n.text(); };
  const auto name = read_member<std::string>(object, "name", "x", as_text);
  const auto unit = read_member<std::string>(object, "unit", "", as_text);
  if (!count || !name || !unit) return std::nullopt;
  constexpr std::size_t kMostCharacters = std::size_t{1} << 27;  // of all names and units
  if (name->size() + unit->size() > kMostCharacters / static_cast<std::size_t>(*count)) {
    node.fail(
        fmt::format("{} names that begin with {} characters, with units of {}, have more than "
                    "{} characters together",
                    *count, name->size(), unit->size(), kMostCharacters));
    return std::nullopt;
  }
  std::vector<StateVariable> states;
  states.reserve(static_cast<std::size_t>(*count));
  for (std::int64_t i = 1; i <= *count; ++i) states.push_back({*name + std::to_string(i), *unit});
  return states;
}

std::optional<std::vector<StateVariable>> read_states(const Node& node) {
  if (node.json().is_object()) return read_counted_states(node);
  return read_list<StateVariable>(node, "an array of states or {\"count\": ...}",
                                  read_named<StateVariable>);
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

const std::vector<std::string>& domain_names() {
  static const std::vector<std::string> names = names_of(kDomains);
  return names;
}

const std::vector<std::string>& causality_names() {
  static const std::vector<std::string> names = names_of(kCausalities);
  return names;
}

std::optional<std::vector<double>> read_numbers(const Node& node) {
  return read_list<double>(node, "an array of numbers", [](const Node& n) { return n.number(); });
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

std::optional<Eigen::MatrixXd> read_dense_matrix(const Node& node, int size,
                                                 const std::filesystem::path& folder) {
  const auto matrix = read_matrix(node, folder);
  if (!matrix) return std::nullopt;
  if (const auto* rows = std::get_if<MatrixRows>(&*matrix)) {
    const auto columns = rows->empty() ? Eigen::Index{0} : std::ssize(rows->front());
    Eigen::MatrixXd dense(std::ssize(*rows), columns);
    for (Eigen::Index i = 0; i < dense.rows(); ++i) {
      const std::vector<double>& row = (*rows)[static_cast<std::size_t>(i)];
      dense.row(i) = Eigen::Map<const Eigen::RowVectorXd>(row.data(), columns);
    }
    return dense;
  }
  const auto* const shaped = std::get_if<ShapedMatrix>(&*matrix);
  if (shaped != nullptr &&
      std::max(shaped->rows, shaped->columns) > std::max(size, scenario_limits::kCouplingPorts)) {
    node.fail(fmt::format("must be {}×{}, one row and column per scalar port, got {}×{}", size,
                          size, shaped->rows, shaped->columns));
    return std::nullopt;
  }
  Eigen::MatrixXd dense = shaped != nullptr ? Eigen::MatrixXd::Zero(shaped->rows, shaped->columns)
                                            : Eigen::MatrixXd::Zero(size, size);
  for (const MatrixEntry& entry :
       shaped != nullptr ? shaped->entries : std::get<MatrixEntries>(*matrix)) {
    if (entry.row >= dense.rows() || entry.column >= dense.cols()) {
      node.fail(
          fmt::format("entry ({},{}) lies outside the {}×{} matrix, one row and column per "
                      "scalar port from 0",
                      entry.row, entry.column, size, size));
      return std::nullopt;
    }
    dense(entry.row, entry.column) += entry.value;
  }
  return dense;
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
      return as_parameter(
          read_list<InputChannel>(node, "an array of inputs", read_named<InputChannel>));
    case ParameterKind::states:
      return as_parameter(read_states(node));
  }
  return std::nullopt;
}

}  // namespace portwave::scenario_file
