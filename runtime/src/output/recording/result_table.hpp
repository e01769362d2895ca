#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "output/files/pending_file.hpp"

namespace portwave {

class StateArchive;

/// A column of a table of results. A row holds a double for each.
struct TableColumn {
  enum class Kind {
    number,
    known_number,  ///< NaN: it is not known, and left empty in a text
    integer,
    text,  ///< the number of one of `texts`
  };
  std::string name;
  std::string unit = {};
  Kind kind = Kind::number;
  std::vector<std::string> texts = {};
};

/// A table of results that grows row by row, on the thread of its writer.
class ResultTable {
 public:
  /// As text, with commas, or as doubles one after the other.
  enum class Form { csv, doubles };

  /// `last_s` > 0: rows are kept in memory until `close`, and those only that are not older than so
  /// long before the newest one, by the column `time`.
  ResultTable(std::vector<TableColumn> columns, std::unique_ptr<PendingFile> file, Form form,
              std::size_t time, double last_s);

  const std::vector<TableColumn>& columns() const { return columns_; }
  std::size_t width() const { return columns_.size(); }

  void append(std::span<const double> row);
  /// See PendingFile.
  void archive(StateArchive& archive);
  void close();
  PendingFile& file() { return *file_; }

 private:
  void keep(std::span<const double> row);
  void write(std::span<const double> row);
  void write_text(std::span<const double> row);
  bool can_be_written(std::span<const double> row) const;

  std::vector<TableColumn> columns_;
  std::unique_ptr<PendingFile> file_;
  Form form_;
  std::size_t time_;
  double last_s_;
  // With last_s: rows in order; the oldest are dropped.
  std::vector<double> kept_;
  std::size_t forgotten_ = 0;  // numbers
};

}  // namespace portwave
