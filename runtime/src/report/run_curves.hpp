#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "report/decimation.hpp"
#include "report/page.hpp"

namespace portwave::report {

/// The quantities of a run, drawn from rows of its trajectory.
class TrajectoryCurves {
 public:
  /// `columns`: the names in the table, the time first; "x.min" and "x.max" after "x" are its
  /// envelope. Not more than `kMostQuantities` are kept.
  explicit TrajectoryCurves(std::span<const std::string> columns);

  void add(std::span<const double> row);
  /// Charts by unit. `units`: by quantity.
  std::vector<Chart> charts(const std::map<std::string, std::string>& units) const;
  /// Curves that are not drawn, in words; empty: all are drawn.
  std::string left_out() const;

  const std::vector<std::string>& quantities() const { return labels_; }
  const Decimation& points() const { return points_; }

  static constexpr std::size_t kMostQuantities = 240;

 private:
  struct Place {
    std::size_t value, smallest, largest;  // columns
  };
  std::vector<std::string> labels_;
  std::vector<Place> places_;
  std::size_t all_ = 0;
  Decimation points_;
  std::vector<double> values_, smallest_, largest_;
};

/// A compensated sum.
class CompensatedSum {
 public:
  void add(double value);
  double value() const { return sum_ + lost_; }

 private:
  double sum_ = 0.0, lost_ = 0.0;
};

/// The ledger, iterations, guard and steps of a run, drawn from rows of its energy table.
class LedgerCurves {
 public:
  explicit LedgerCurves(std::span<const std::string> columns);

  void add(std::span<const double> row);
  Section energy() const;
  Section coupling() const;
  Section steps() const;

  std::size_t rows() const { return points_.rows(); }

 private:
  enum Line : std::size_t {
    stored,
    supplied,
    dissipated,
    mismatch,
    impact,
    tank,
    gap,
    passivity,
    iterations,
    alpha,
    withheld,
    residual,
    step,
    slack,
    lines
  };

  Chart chart(const Decimation::Lines& from, std::string title, std::string y_label,
              std::initializer_list<std::pair<Line, const char*>> what) const;
  double of(std::span<const double> row, int column) const;

  int time_ = -1, step_index_ = -1, damped_ = -1;
  double last_index_ = 0.0;
  int columns_[lines];
  Decimation points_;
  std::optional<double> start_J_;
  CompensatedSum supplied_, dissipated_, mismatch_, impact_;
  double largest_gap_J_ = 0.0;
  bool has_energy_ = false;
  std::vector<double> numbers_;
};

/// "of every 8 rows the smallest and the largest value"; empty where every row is drawn.
std::string decimation_note(const Decimation& points);

}  // namespace portwave::report
