#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"

namespace portwave {

// What part types that are given by their matrices share.

/// Turns given matrices into sparse ones of the shape that the part needs; a matrix that does not
/// fit is reported and replaced by zero.
class MatrixReader {
 public:
  MatrixReader(const Parameters& parameters, Issues& issues)
      : parameters_(parameters), issues_(issues) {}

  SparseMatrix read(std::string_view name, int rows, int columns);

 private:
  using Triplets = std::vector<Eigen::Triplet<double>>;

  Triplets from_entries(std::string_view name, const MatrixEntries& given, int rows, int columns);
  Triplets from_shaped(std::string_view name, const ShapedMatrix& given, int rows, int columns);
  Triplets from_rows(std::string_view name, const MatrixRows& given, int rows, int columns);

  const Parameters& parameters_;
  Issues& issues_;
};

template <class List>
ParameterInfo list_parameter(std::string name, ParameterKind kind, std::string summary,
                             std::optional<List> by_default = {}) {
  ParameterInfo info;
  info.name = std::move(name);
  info.kind = kind;
  info.summary = std::move(summary);
  if (by_default) info.default_value = std::move(*by_default);
  return info;
}

ParameterInfo required_matrix(std::string name, std::string summary);

/// The parameter "step_maps", and what it says.
ParameterInfo step_maps_choice();
StepMapStorage step_map_storage(const std::string& name);

}  // namespace portwave
