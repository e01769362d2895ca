#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenario/files/matrix_file.hpp"

namespace portwave::scenario_file {

/// Of level 7.3, which is HDF5. Errors: MatrixFileDefect, also where portwave is built without HDF5.
ShapedMatrix parse_mat_hdf5(std::string_view bytes, const std::string& variable,
                            std::vector<std::string>& defects);

/// Which of the variables of a file is meant: that of the name, or without a name the only one.
/// Errors: MatrixFileDefect, with what is there.
std::string variable_meant(const std::vector<std::string>& names, const std::string& variable);

/// Why what MATLAB calls `matlab_class` is no matrix, "is a cell array"; empty for numbers.
std::string defect_of_class(std::string_view matlab_class);

/// Takes in the entries of a matrix, each with a look at its place and value.
class MatEntries {
 public:
  MatEntries(int rows, int columns, std::string variable, std::vector<std::string>& defects)
      : matrix_{rows, columns, {}, {}}, variable_(std::move(variable)), defects_(defects) {}

  /// Rows and columns are counted from 0. A 0 is left out.
  void add(std::int64_t row, std::int64_t column, double value);
  /// Column by column, as many as the matrix has.
  template <class NumberAt>
  void add_dense(const NumberAt& number_at) {
    std::size_t k = 0;
    for (int column = 0; column < matrix_.columns && !is_full(); ++column) {
      for (int row = 0; row < matrix_.rows; ++row) add(row, column, number_at(k++));
    }
  }
  /// Compressed columns: those of entries k are from begin_at(column) to begin_at(column + 1).
  template <class RowAt, class BeginAt, class NumberAt>
  void add_columns(std::uint64_t entries, const RowAt& row_at, const BeginAt& begin_at,
                   const NumberAt& number_at) {
    std::uint64_t last = 0;
    for (int column = 0; column < matrix_.columns && !is_full(); ++column) {
      const std::int64_t from = begin_at(column), to = begin_at(column + 1);
      if (from < 0 || static_cast<std::uint64_t>(from) != last || to < from ||
          static_cast<std::uint64_t>(to) > entries) {
        fail("its columns do not begin one after the other: the file is damaged");
      }
      for (std::int64_t k = from; k < to; ++k) add(row_at(k), column, number_at(k));
      last = static_cast<std::uint64_t>(to);
    }
  }
  ShapedMatrix take() { return std::move(matrix_); }

  [[noreturn]] void fail(std::string_view what) const;

 private:
  bool is_full() const { return defects_.size() >= 10; }

  ShapedMatrix matrix_;
  std::string variable_;
  std::vector<std::string>& defects_;
};

}  // namespace portwave::scenario_file
