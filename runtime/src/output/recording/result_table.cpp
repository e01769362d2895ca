#include "output/recording/result_table.hpp"

#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>

#include "portwave/subsystems/base/state_archive.hpp"

namespace portwave {
namespace {

/// As a field of a CSV line: quoted when it must be.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

}  // namespace

ResultTable::ResultTable(std::vector<TableColumn> columns, std::unique_ptr<PendingFile> file,
                         Form form, std::size_t time, double last_s)
    : columns_(std::move(columns)),
      file_(std::move(file)),
      form_(form),
      time_(time),
      last_s_(last_s) {
  if (form_ == Form::doubles) return;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (i > 0) file_->append(',');
    file_->append(csv_field(columns_[i].name));
    for (std::string& text : columns_[i].texts) text = csv_field(text);
  }
  file_->append('\n');
}

void ResultTable::append(std::span<const double> row) {
  if (last_s_ > 0.0) {
    keep(row);
  } else {
    write(row);
  }
}

void ResultTable::keep(std::span<const double> row) {
  kept_.insert(kept_.end(), row.begin(), row.end());
  // A time that rounding has moved before the beginning belongs to it.
  const double oldest_s = row[time_] - last_s_ * (1.0 + 1e-9);
  while (kept_[forgotten_ + time_] < oldest_s) forgotten_ += width();
  if (forgotten_ <= kept_.size() / 2) return;
  kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(forgotten_));
  forgotten_ = 0;
}

void ResultTable::write(std::span<const double> row) {
  if (form_ == Form::csv) return write_text(row);
  const std::string_view bytes(reinterpret_cast<const char*>(row.data()), row.size_bytes());
  file_->append(bytes);
}

void ResultTable::write_text(std::span<const double> row) {
  using Kind = TableColumn::Kind;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (i > 0) file_->append(',');
    const TableColumn& column = columns_[i];
    switch (column.kind) {
      case Kind::number:
        file_->append(row[i]);
        break;
      case Kind::known_number:
        if (!std::isnan(row[i])) file_->append(row[i]);
        break;
      case Kind::integer:
        file_->append(static_cast<std::int64_t>(row[i]));
        break;
      case Kind::text:
        file_->append(column.texts[static_cast<std::size_t>(row[i])]);
        break;
    }
  }
  file_->append('\n');
}

/// The form that a row of kept numbers needs for its text.
bool ResultTable::can_be_written(std::span<const double> row) const {
  constexpr double kMostInteger = 0x1p53;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const TableColumn& column = columns_[i];
    if (column.kind == TableColumn::Kind::integer && !(std::abs(row[i]) <= kMostInteger)) {
      return false;
    }
    const bool is_text = column.kind == TableColumn::Kind::text;
    if (is_text && !(row[i] >= 0.0 && row[i] < static_cast<double>(column.texts.size()))) {
      return false;
    }
  }
  return std::isfinite(row[time_]);
}

void ResultTable::archive(StateArchive& archive) {
  file_->archive(archive);
  if (last_s_ == 0.0) return;
  archive.vector(kept_);
  archive.values(forgotten_);
  if (!archive.reads()) return;
  archive.expect(
      kept_.size() % width() == 0 && forgotten_ % width() == 0 && forgotten_ <= kept_.size(),
      "the number of rows that are kept");
  for (std::size_t first = 0; first < kept_.size(); first += width()) {
    archive.expect(can_be_written(std::span(kept_).subspan(first, width())), "a row that is kept");
  }
}

void ResultTable::close() {
  for (; forgotten_ < kept_.size(); forgotten_ += width()) {
    write(std::span(kept_).subspan(forgotten_, width()));
  }
  kept_ = {};
  forgotten_ = 0;
  file_->close();
}

}  // namespace portwave
