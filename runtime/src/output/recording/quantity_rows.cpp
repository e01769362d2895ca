#include "output/recording/quantity_rows.hpp"

#include <algorithm>

namespace portwave {

std::vector<TableColumn> trajectory_columns(const RecordingOptions& options) {
  std::vector<TableColumn> columns = {{"time_s", "s"}};
  for (const Quantity& one : options.quantities) {
    columns.push_back({one.label, one.unit});
    if (!options.envelope) continue;
    columns.push_back({one.label + ".min", one.unit});
    columns.push_back({one.label + ".max", one.unit});
  }
  return columns;
}

QuantityRows::QuantityRows(const RecordingOptions& options, std::size_t table)
    : quantities_(options.quantities),
      every_(options.every),
      every_s_(options.every_s),
      envelope_(options.envelope),
      table_(table) {}

void QuantityRows::begin(const Stepper& stepper) {
  observed_.emplace(stepper, quantities_);
  start_s_ = stepper.start_s();
  if (!envelope_) return;
  smallest_.assign(quantities_.size(), 0.0);
  largest_.assign(quantities_.size(), 0.0);
}

/// `value`: of a quantity by its number, at the time of the row.
template <typename Value>
void QuantityRows::put(double time_s, RowWriter& writer, Value value) {
  double* number = writer.row(2 + (envelope_ ? 3 : 1) * quantities_.size()).data();
  *number++ = static_cast<double>(table_);
  *number++ = time_s;
  for (std::size_t i = 0; i < quantities_.size(); ++i) {
    const double present = value(i);
    *number++ = present;
    if (!envelope_) continue;
    *number++ = std::min(smallest_[i], present);
    *number++ = std::max(largest_[i], present);
    smallest_[i] = largest_[i] = present;
  }
}

/// Rows for the multiples of every_s after the start that are in the last step.
void QuantityRows::take_within(const Stepper& stepper, double step_s, RowWriter& writer) {
  // A time that rounding has moved beyond the end of the step belongs to it.
  const double end_s = stepper.time_s() + 1e-9 * step_s;
  const auto due_s = [this] { return start_s_ + static_cast<double>(rows_) * every_s_; };
  for (; due_s() <= end_s; ++rows_) {
    const double time_s = due_s();
    put(time_s, writer, [&](std::size_t i) {
      return observe_at(stepper, quantities_[i], std::min(time_s, stepper.time_s()));
    });
  }
}

bool QuantityRows::is_after(double time_s) const {
  if (every_s_ == 0.0) return rows_ == 1;
  constexpr double kSame = 1e-6;  // of a row, and of the time
  const double rows = static_cast<double>(rows_), due = (time_s - start_s_) / every_s_;
  return rows >= due * (1.0 - kSame) - kSame && rows <= due * (1.0 + kSame) + 1.0 + kSame;
}

void QuantityRows::take_initial(const Stepper& stepper, RowWriter& writer) {
  const std::span<const double> present = observed_->read(stepper);
  std::ranges::copy(present.first(smallest_.size()), smallest_.begin());
  std::ranges::copy(present.first(largest_.size()), largest_.begin());
  put(stepper.time_s(), writer, [&](std::size_t i) { return present[i]; });
}

void QuantityRows::take(const Stepper& stepper, double step_s, RowWriter& writer) {
  if (every_s_ > 0.0) take_within(stepper, step_s, writer);
  const bool is_row = stepper.step_index() % every_ == 0 && every_s_ == 0.0;
  if (!is_row && !envelope_) return;
  const std::span<const double> present = observed_->read(stepper);
  if (is_row) {
    return put(stepper.time_s(), writer, [&](std::size_t i) { return present[i]; });
  }
  for (std::size_t i = 0; i < quantities_.size(); ++i) {
    smallest_[i] = std::min(smallest_[i], present[i]);
    largest_[i] = std::max(largest_[i], present[i]);
  }
}

}  // namespace portwave
