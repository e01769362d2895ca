#pragma once

#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

/// Tables of studies: each column is described once, and written to JSON and to CSV.
namespace portwave::study_text {

using Json = nlohmann::ordered_json;

/// Null where the number is not known or not finite.
inline Json number(std::optional<double> value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}
inline Json word_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

/// Null where a number is not finite, or where there is none.
template <class T>
Json value_json(const T& value) {
  if constexpr (std::is_floating_point_v<T>) {
    return number(value);
  } else {
    return value;
  }
}
template <class T>
Json value_json(const std::optional<T>& value) {
  return value ? value_json(*value) : Json(nullptr);
}

template <class Row>
struct Column {
  std::string_view name;
  std::function<Json(const Row& row)> value;
  bool in_csv = true;  ///< sentences are not

  template <class Value>
  Column(std::string_view its_name, Value Row::*member)
      : name(its_name), value([member](const Row& row) { return value_json(row.*member); }) {}
  Column(std::string_view its_name, Json (*its_value)(const Row&), bool is_in_csv = true)
      : name(its_name), value(its_value), in_csv(is_in_csv) {}
};

template <class Row>
using Columns = std::vector<Column<Row>>;

template <class Row>
Json row_json(const Row& row, const Columns<Row>& columns) {
  Json json = Json::object();
  for (const Column<Row>& column : columns) json[std::string(column.name)] = column.value(row);
  return json;
}

template <class Row>
Json rows_json(const std::vector<Row>& rows, const Columns<Row>& columns) {
  Json json = Json::array();
  for (const Row& row : rows) json.push_back(row_json(row, columns));
  return json;
}

/// With all digits.
inline std::string csv_field(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "on" : "off";
  if (value.is_number_float()) return fmt::format("{}", value.get<double>());
  return value.is_null() ? "" : value.dump();
}

template <class Row>
std::string csv_header(const Columns<Row>& columns) {
  std::string text;
  for (const Column<Row>& column : columns) {
    if (!column.in_csv) continue;
    text += text.empty() ? "" : ",";
    text += column.name;
  }
  return text;
}

template <class Row>
std::string csv_line(const Row& row, const Columns<Row>& columns) {
  std::string text;
  bool is_first = true;
  for (const Column<Row>& column : columns) {
    if (!column.in_csv) continue;
    text += is_first ? "" : ",";
    text += csv_field(column.value(row));
    is_first = false;
  }
  return text;
}

template <class Row>
std::string rows_csv(const std::vector<Row>& rows, const Columns<Row>& columns) {
  std::string text = csv_header(columns) + "\n";
  for (const Row& row : rows) text += csv_line(row, columns) + "\n";
  return text;
}

}  // namespace portwave::study_text
