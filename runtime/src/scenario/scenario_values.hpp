#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <Eigen/Core>

#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/core/signal.hpp"
#include "scenario/scenario_reader.hpp"

namespace portwave::scenario_file {

/// Numbers of an array. Notes every element that is none.
std::optional<std::vector<double>> read_numbers(const Node& node);

/// A matrix by rows, [[…], …], by entries, {"entries": [[row, column, value], …]}, or from a file,
/// {"file": "K.npz"}, relative to `folder`.
using MatrixValue = std::variant<MatrixRows, MatrixEntries, ShapedMatrix>;
std::optional<MatrixValue> read_matrix(const Node& node, const std::filesystem::path& folder);
/// The same as a dense size × size matrix. Notes entries outside it; other shapes by rows and from
/// files pass.
std::optional<Eigen::MatrixXd> read_dense_matrix(const Node& node, int size,
                                                 const std::filesystem::path& folder);

/// The value of a parameter of the given kind; its range is not checked. Files are read relative to
/// `folder`.
std::optional<ParameterValue> read_parameter(const Node& node, const ParameterInfo& info,
                                             const std::filesystem::path& folder);

/// An external input that is a function of time; tables are read relative to `folder`. `also`: keys
/// of the object that belong to others.
std::optional<Signal> read_signal(const Node& node, const std::filesystem::path& folder,
                                  const std::vector<std::string_view>& also = {});
/// The kinds of those, in the order of the documentation.
const std::vector<std::string>& signal_kinds();

/// The knots of a table file: two columns, time_s and value, and an optional header line.
/// Each defect goes on after the name of the file: ", line 3: ...".
std::vector<Signal::Knot> parse_table(const std::string& text, std::vector<std::string>& defects);

/// Names of all domains, in the order of the enumeration; and of both causalities.
const std::vector<std::string>& domain_names();
const std::vector<std::string>& causality_names();

}  // namespace portwave::scenario_file
