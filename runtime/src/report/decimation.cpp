#include "report/decimation.hpp"

#include <algorithm>
#include <cmath>

namespace portwave::report {

Decimation::Decimation(std::size_t columns, std::size_t most_stretches)
    : columns_(columns), most_(std::max<std::size_t>(2, most_stretches + most_stretches % 2)) {}

void Decimation::Extremes::take(const Extremes& later) {
  if (std::isnan(smallest)) {
    *this = later;
    return;
  }
  if (std::isnan(later.smallest)) return;
  const bool smallest_is_later = later.smallest < smallest;
  const bool largest_is_later = later.largest > largest;
  if (smallest_is_later) smallest = later.smallest;
  if (largest_is_later) largest = later.largest;
  if (smallest_is_later && largest_is_later) {
    smallest_first = later.smallest_first;
  } else if (smallest_is_later || largest_is_later) {
    smallest_first = largest_is_later;
  }
}

void Decimation::add(double time, std::span<const double> row, std::span<const double> smallest,
                     std::span<const double> largest) {
  if (rows_++ == 0) {
    first_time_ = time;
    first_.assign(row.begin(), row.end());
  }
  last_time_ = time;
  last_.assign(row.begin(), row.end());
  if (stretches_.size() == most_ && stretches_.back().rows == length_) merge();
  if (stretches_.empty() || stretches_.back().rows == length_) {
    stretches_.push_back({time, time, 1});
    for (std::size_t i = 0; i < columns_; ++i) {
      extremes_.push_back({smallest[i], largest[i], smallest[i] != row[i]});
    }
    return;
  }
  stretches_.back().end = time;
  ++stretches_.back().rows;
  Extremes* own = extremes_.data() + (stretches_.size() - 1) * columns_;
  for (std::size_t i = 0; i < columns_; ++i) {
    own[i].take({smallest[i], largest[i], smallest[i] != row[i]});
  }
}

/// Two stretches become one.
void Decimation::merge() {
  const std::size_t half = stretches_.size() / 2;
  for (std::size_t s = 0; s < half; ++s) {
    const Stretch& early = stretches_[2 * s];
    const Stretch& late = stretches_[2 * s + 1];
    stretches_[s] = {early.begin, late.end, early.rows + late.rows};
    for (std::size_t i = 0; i < columns_; ++i) {
      Extremes both = extremes_[2 * s * columns_ + i];
      both.take(extremes_[(2 * s + 1) * columns_ + i]);
      extremes_[s * columns_ + i] = both;
    }
  }
  stretches_.resize(half);
  extremes_.resize(half * columns_);
  length_ *= 2;
}

Decimation::Lines Decimation::lines() const {
  Lines out;
  out.columns.resize(columns_);
  if (rows_ == 0) return out;
  const auto add_row = [&](double time, std::span<const double> row) {
    out.time.push_back(time);
    for (std::size_t i = 0; i < columns_; ++i) out.columns[i].push_back(row[i]);
  };
  const bool is_whole = std::ranges::all_of(extremes_, [](const Extremes& e) {
    return e.smallest == e.largest || std::isnan(e.smallest);
  });
  if (length_ == 1 && is_whole) {  // as it came
    for (std::size_t s = 0; s < stretches_.size(); ++s) {
      out.time.push_back(stretches_[s].begin);
      for (std::size_t i = 0; i < columns_; ++i) {
        out.columns[i].push_back(extremes_[s * columns_ + i].smallest);
      }
    }
    return out;
  }
  add_row(first_time_, first_);
  for (std::size_t s = 0; s < stretches_.size(); ++s) {
    const double begin = s == 0 ? stretches_[s].begin : stretches_[s - 1].end;
    const double length = stretches_[s].end - begin;
    for (const bool is_late : {false, true}) {
      out.time.push_back(begin + (is_late ? 0.75 : 0.25) * length);
      for (std::size_t i = 0; i < columns_; ++i) {
        const Extremes& e = extremes_[s * columns_ + i];
        out.columns[i].push_back(e.smallest_first != is_late ? e.smallest : e.largest);
      }
    }
  }
  add_row(last_time_, last_);
  return out;
}

}  // namespace portwave::report
