#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace portwave {

/// Reads a table of results row by row.
class TableReader {
 public:
  virtual ~TableReader() = default;
  TableReader(const TableReader&) = delete;
  TableReader& operator=(const TableReader&) = delete;

  /// The names; a column of texts has NaN in every row.
  const std::vector<std::string>& columns() const { return columns_; }
  /// The next row, a number for each column, NaN where it is not known; false after the last one.
  /// Errors: std::runtime_error naming the file and the place in it.
  virtual bool next(std::vector<double>& row) = 0;

 protected:
  explicit TableReader(std::vector<std::string> columns) : columns_(std::move(columns)) {}

 private:
  std::vector<std::string> columns_;
};

/// Opens a table that a run has left in `folder`, as text or in its HDF5 file; null where there is
/// none of that name. Errors: std::runtime_error.
std::unique_ptr<TableReader> open_table(const std::filesystem::path& folder,
                                        const std::string& name);

}  // namespace portwave
