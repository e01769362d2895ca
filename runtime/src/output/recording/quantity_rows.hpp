#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "output/files/row_writer.hpp"
#include "output/recording/observed_row.hpp"
#include "output/recording/result_table.hpp"
#include "portwave/runtime/output/recorder.hpp"

namespace portwave {

/// The columns of the trajectory: time_s, and of each quantity one or, with an envelope, three.
std::vector<TableColumn> trajectory_columns(const RecordingOptions& options);
inline std::size_t columns_per_quantity(const RecordingOptions& options) {
  return options.envelope ? 3 : 1;
}

/// Takes the rows of the trajectory from a stepper; each begins with the number of its table.
class QuantityRows {
 public:
  /// `options`: `every` ≥ 1.
  QuantityRows(const RecordingOptions& options, std::size_t table);

  /// Before the first step or the first one after `archive`. On rank 0 with others beside it all take
  /// part where it looks at theirs.
  void begin(const Stepper& stepper);
  void take_initial(const Stepper& stepper, RowWriter& writer);
  /// After every step.
  void take(const Stepper& stepper, double step_s, RowWriter& writer);

  /// What a row to come depends on: how many there are, with every_s; and of an envelope the extremes
  /// since the last row, by quantity.
  std::int64_t& rows() { return rows_; }
  /// Whether the next row is the first one after this time, up to rounding.
  bool is_after(double time_s) const;
  std::vector<double>& smallest() { return smallest_; }
  std::vector<double>& largest() { return largest_; }

 private:
  template <typename Value>
  void put(double time_s, RowWriter& writer, Value value);
  void take_within(const Stepper& stepper, double step_s, RowWriter& writer);

  std::vector<Quantity> quantities_;
  int every_;
  double start_s_ = 0.0;  // of the run
  double every_s_;
  bool envelope_;
  std::size_t table_;
  std::optional<ObservedRow> observed_;
  std::int64_t rows_ = 1;
  std::vector<double> smallest_, largest_;
};

}  // namespace portwave
