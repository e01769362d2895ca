#include "catalogue/matrix_parameters.hpp"

#include <fmt/format.h>

namespace portwave {
namespace {

std::string_view shape(std::string_view name) {
  if (name == "G" || name == "P" || name == "B") return "states × scalar ports and inputs";
  if (name == "S" || name == "N") return "scalar ports and inputs, square";
  return "states, square";
}

}  // namespace

SparseMatrix MatrixReader::read(std::string_view name, int rows, int columns) {
  const ParameterValue& value = parameters_.find(name)->second;
  SparseMatrix matrix(rows, columns);
  Triplets entries;
  if (const auto* const shaped = std::get_if<ShapedMatrix>(&value)) {
    entries = from_shaped(name, *shaped, rows, columns);
  } else if (const auto* const listed = std::get_if<MatrixEntries>(&value)) {
    entries = from_entries(name, *listed, rows, columns);
  } else {
    entries = from_rows(name, std::get<MatrixRows>(value), rows, columns);
  }
  matrix.setFromTriplets(entries.begin(), entries.end());
  return matrix;
}

MatrixReader::Triplets MatrixReader::from_entries(std::string_view name, const MatrixEntries& given,
                                                  int rows, int columns) {
  Triplets entries;
  entries.reserve(given.size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    const MatrixEntry& entry = given[i];
    if (entry.row < rows && entry.column < columns) {
      entries.emplace_back(entry.row, entry.column, entry.value);
      continue;
    }
    issues_.push_back({fmt::format("/{}/{}", name, i),
                       fmt::format("({},{}) is outside the matrix, which is {}×{}", entry.row,
                                   entry.column, rows, columns)});
  }
  return entries;
}

MatrixReader::Triplets MatrixReader::from_shaped(std::string_view name, const ShapedMatrix& given,
                                                 int rows, int columns) {
  if (given.rows == rows && given.columns == columns) {
    return from_entries(name, given.entries, rows, columns);
  }
  issues_.push_back(
      {fmt::format("/{}", name), fmt::format("must be {}×{} ({}), got {}×{}", rows, columns,
                                             shape(name), given.rows, given.columns)});
  return {};
}

MatrixReader::Triplets MatrixReader::from_rows(std::string_view name, const MatrixRows& given,
                                               int rows, int columns) {
  const std::size_t given_columns = given.empty() ? 0 : given.front().size();
  const bool is_empty = given.empty() && (rows == 0 || columns == 0);  // [] is n×0 too
  const bool fits = is_empty || (given.size() == static_cast<std::size_t>(rows) &&
                                 given_columns == static_cast<std::size_t>(columns));
  if (!fits) {
    issues_.push_back(
        {fmt::format("/{}", name), fmt::format("must be {}×{} ({}), got {}×{}", rows, columns,
                                               shape(name), given.size(), given_columns)});
    return {};
  }
  Triplets entries;
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      if (given[i][j] != 0.0) entries.emplace_back(i, j, given[i][j]);
    }
  }
  return entries;
}

ParameterInfo required_matrix(std::string name, std::string summary) {
  return list_parameter<MatrixEntries>(std::move(name), ParameterKind::matrix, std::move(summary));
}

ParameterInfo step_maps_choice() {
  ParameterInfo info;
  info.name = "step_maps";
  info.kind = ParameterKind::choice;
  info.summary = "where the step maps are kept; automatic: dense up to 64 states, sparse beyond";
  info.choices = {"automatic", "dense", "sparse"};
  info.default_value = std::string("automatic");
  return info;
}

StepMapStorage step_map_storage(const std::string& name) {
  if (name == "dense") return StepMapStorage::dense;
  return name == "sparse" ? StepMapStorage::sparse : StepMapStorage::automatic;
}

}  // namespace portwave
