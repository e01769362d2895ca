#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <Eigen/Core>

#include "portwave/runtime/adapters/number_array.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/core/signal.hpp"
#include "scenario/reader/node.hpp"

namespace portwave::scenario_file {

/// Numbers of an array. Notes every element that is none.
std::optional<std::vector<double>> read_numbers(const Node& node);

/// Texts of an array.
std::optional<std::vector<std::string>> read_texts(const Node& node);
/// An object of numbers, truth values, which count as 0 and 1, texts, and arrays of numbers.
using NamedValues = std::map<std::string, std::variant<double, std::string, NumberArray>>;
std::optional<NamedValues> read_named_values(const Node& node);

/// A matrix by rows, [[…], …], by entries, {"entries": [[row, column, value], …]}, or from a file,
/// {"file": "K.npz"}, relative to `folder`.
using MatrixValue = std::variant<MatrixRows, MatrixEntries, ShapedMatrix>;
std::optional<MatrixValue> read_matrix(const Node& node, const std::filesystem::path& folder);
/// Dense; one that is given by entries is size × size, and holds them.
Eigen::MatrixXd dense_matrix(const MatrixValue& matrix, int size = 0);
/// A dense size × size matrix. Notes entries outside it; other shapes by rows and from
/// files pass.
std::optional<Eigen::MatrixXd> read_dense_matrix(const Node& node, int size,
                                                 const std::filesystem::path& folder);

/// The value of a parameter of the given kind; its range is not checked. Files are read relative to
/// `folder`.
std::optional<ParameterValue> read_parameter(const Node& node, const ParameterInfo& info,
                                             const std::filesystem::path& folder);

/// Schemas of these values: a matrix, an expression or a matrix of them, named numbers, a port, a state or input, states that are counted.
Json matrix_schema();
Json expression_schema();
Json expression_matrix_schema();
Json constants_schema();
Json named_value_schema();
Json port_schema();
Json named_schema();
Json counted_states_schema();

}  // namespace portwave::scenario_file
