#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace portwave::soak {

/// The columns of a table of results, as they are read back from its file.
struct RecordedTable {
  std::vector<std::string> names;
  std::vector<std::vector<double>> columns;

  std::size_t rows() const { return columns.empty() ? 0 : columns.front().size(); }
  /// Errors: std::out_of_range.
  const std::vector<double>& column(const std::string& name) const;
};

RecordedTable read_table(const std::filesystem::path& file);

}  // namespace portwave::soak
