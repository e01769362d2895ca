#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace portwave::report {

/// Draws rows of any number with a bounded number of points. Rows come in stretches of equal length,
/// which doubles when there are too many of them; of each stretch and column the smallest and the
/// largest value are kept, in the order in which they came, and of all the first row and the last one.
/// So no extreme is lost, and a line lies within its stretch at the right time. NaN is no value.
class Decimation {
 public:
  /// `columns`: beside the time.
  explicit Decimation(std::size_t columns, std::size_t most_stretches = 1000);

  void add(double time, std::span<const double> row) { add(time, row, row, row); }
  /// Smallest and largest value of each column, over the rows that one row stands for.
  void add(double time, std::span<const double> row, std::span<const double> smallest,
           std::span<const double> largest);

  std::size_t rows() const { return rows_; }
  std::size_t rows_of_stretch() const { return length_; }

  struct Lines {
    std::vector<double> time;
    std::vector<std::vector<double>> columns;
  };
  Lines lines() const;

 private:
  struct Extremes {
    double smallest, largest;
    bool smallest_first;

    void take(const Extremes& later);
  };
  struct Stretch {
    double begin, end;  // times
    std::size_t rows;
  };

  void merge();

  std::size_t columns_, most_;
  std::size_t rows_ = 0;
  std::size_t length_ = 1;
  std::vector<Stretch> stretches_;
  std::vector<Extremes> extremes_;  // by stretch, then by column
  double first_time_ = 0.0, last_time_ = 0.0;
  std::vector<double> first_, last_;
};

}  // namespace portwave::report
