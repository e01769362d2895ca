#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "output/recording/result_rows.hpp"
#include "output/recording/table_reader.hpp"

namespace portwave {

/// A table whose rows are in a file, as doubles one after the other.
struct SpilledTable {
  ResultLayout layout;
  std::filesystem::path rows;  ///< where `files` is not empty, of the time alone
  /// By column but for the time, the file of the same folder that has it, as this function writes it with
  /// these columns in this order, in the same form: the dataset is a virtual one. The time comes first.
  std::vector<std::string> files = {};
  std::optional<bool> is_matrix = {};  ///< empty: by the number of its columns
};

/// Whether a table of that many columns is one dataset.
bool is_matrix(const ResultLayout& layout);

/// Writes tables into a new HDF5 file: a group for each, with a dataset for each
/// column. That of the time is the dimension scale of the others; the attributes are `units` and,
/// where the dataset cannot have the name of the column, `long_name`. A table of more than
/// `kMostColumns` columns beside the time has one dataset "values" instead, time by quantity, with
/// the scales "time_s" and "quantity" and the texts "units". The bytes depend on the tables alone.
///
/// Missing parts of a virtual dataset read as NaN.
///
/// Memory does not grow with the rows.
/// Errors: std::runtime_error, with the reasons of HDF5; std::invalid_argument where portwave was
/// built without it.
void write_hdf5(const std::filesystem::path& path, const std::vector<SpilledTable>& tables,
                const std::string& name);

/// Opens a table of such a file, columns that hold texts left out. Null where it has no such table.
/// Errors: std::runtime_error, with the reasons of HDF5, also for a file of another make, and where a
/// file that has columns of it is not there or is of another run: has other times;
/// std::invalid_argument where portwave was built without it.
std::unique_ptr<TableReader> open_hdf5_table(const std::filesystem::path& path,
                                             const std::string& table);

inline constexpr std::size_t kMostColumns = 1000;

}  // namespace portwave
