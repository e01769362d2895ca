#include "report/run_curves.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace portwave::report {
namespace {

constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();
/// More lines than these are drawn more coarsely, so that a page stays small.
constexpr std::size_t kManyLines = 60, kStretches = 1500, kFewStretches = 400;
constexpr std::size_t kLinesOfChart = 12;

/// Quantities with the columns of their envelopes.
std::size_t stretches_for(std::size_t columns) {
  return std::min(columns, TrajectoryCurves::kMostQuantities) > kManyLines ? kFewStretches
                                                                           : kStretches;
}

bool has_value(const std::vector<double>& y) {
  return std::ranges::any_of(y, [](double value) { return std::isfinite(value); });
}

bool exceeds(const std::vector<double>& y, double limit) {
  return std::ranges::any_of(y, [=](double value) { return value > limit; });
}

/// Quantities of one unit in charts: those together that are of similar size, so that none is a line
/// along the axis, and not too many.
std::vector<std::vector<std::size_t>> by_size(std::vector<std::size_t> members,
                                              const Decimation::Lines& lines) {
  constexpr double kSimilar = 30.0;
  std::map<std::size_t, double> sizes;
  for (const std::size_t i : members) {
    for (const double value : lines.columns[i]) {
      if (std::abs(value) > sizes[i]) sizes[i] = std::abs(value);
    }
  }
  std::ranges::stable_sort(members,
                           [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
  std::vector<std::vector<std::size_t>> groups;
  double largest = 0.0;
  for (const std::size_t i : members) {
    const bool fits = !groups.empty() && groups.back().size() < kLinesOfChart &&
                      (sizes[i] == 0.0 || sizes[i] * kSimilar >= largest);
    if (!fits) {
      groups.emplace_back();
      largest = sizes[i];
    }
    groups.back().push_back(i);
  }
  for (auto& group : groups) std::ranges::sort(group);
  return groups;
}

}  // namespace

void CompensatedSum::add(double value) {
  const double sum = sum_ + value;
  lost_ += std::abs(sum_) >= std::abs(value) ? (sum_ - sum) + value : (value - sum) + sum_;
  sum_ = sum;
}

std::string decimation_note(const Decimation& points) {
  if (points.rows_of_stretch() == 1) return {};
  return fmt::format("Drawn from {} rows: of every {} the smallest and the largest value.",
                     points.rows(), points.rows_of_stretch());
}

TrajectoryCurves::TrajectoryCurves(std::span<const std::string> columns)
    : points_(std::min(columns.size(), kMostQuantities), stretches_for(columns.size())) {
  for (std::size_t i = 1; i < columns.size(); ++i) {
    Place place = {i, i, i};
    const std::string& label = columns[i];
    if (i + 2 < columns.size() && columns[i + 1] == label + ".min" &&
        columns[i + 2] == label + ".max") {
      place = {i, i + 1, i + 2};
      i += 2;
    }
    if (++all_ > kMostQuantities) continue;
    labels_.push_back(label);
    places_.push_back(place);
  }
  points_ = Decimation(labels_.size(), stretches_for(labels_.size()));
  values_.resize(labels_.size());
  smallest_.resize(labels_.size());
  largest_.resize(labels_.size());
}

void TrajectoryCurves::add(std::span<const double> row) {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    values_[i] = row[places_[i].value];
    smallest_[i] = row[places_[i].smallest];
    largest_[i] = row[places_[i].largest];
  }
  points_.add(row[0], values_, smallest_, largest_);
}

std::vector<Chart> TrajectoryCurves::charts(const std::map<std::string, std::string>& units) const {
  const Decimation::Lines lines = points_.lines();
  std::vector<Chart> charts;
  std::map<std::string, std::vector<std::size_t>> by_unit;
  std::vector<std::string> order;
  for (std::size_t i = 0; i < labels_.size(); ++i) {
    const auto found = units.find(labels_[i]);
    const std::string unit = found == units.end() ? std::string() : found->second;
    if (by_unit[unit].empty()) order.push_back(unit);
    by_unit[unit].push_back(i);
  }
  for (const std::string& unit : order) {
    const auto groups = by_size(by_unit[unit], lines);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const std::vector<std::size_t>& members = groups[g];
      Chart chart = {.title = members.size() == 1 ? labels_[members[0]]
                              : unit.empty()      ? "Quantities"
                                                  : "Quantities in " + unit,
                     .x_label = "time [s]",
                     .y_label = unit.empty() ? "" : "[" + unit + "]",
                     .note = decimation_note(points_),
                     .x = lines.time};
      if (members.size() > 1 && groups.size() > 1) {
        chart.title += fmt::format(", {} of {}", g + 1, groups.size());
      }
      for (const std::size_t i : members) {
        chart.series.push_back({.label = labels_[i], .y = lines.columns[i]});
      }
      charts.push_back(std::move(chart));
    }
  }
  return charts;
}

std::string TrajectoryCurves::left_out() const {
  if (all_ <= labels_.size()) return {};
  return fmt::format(
      "Of {} recorded quantities the first {} are drawn; `\"observe\"` in the scenario's outputs "
      "chooses.",
      all_, labels_.size());
}

LedgerCurves::LedgerCurves(std::span<const std::string> columns) : points_(lines, kStretches) {
  const auto place = [&](std::string_view name) {
    const auto found = std::ranges::find(columns, name);
    return found == columns.end() ? -1 : static_cast<int>(found - columns.begin());
  };
  constexpr std::string_view kNames[] = {"stored_J",
                                         "supplied_J",
                                         "dissipated_J",
                                         "mismatch_J",
                                         "impact_J",
                                         "tank_J",
                                         "",  // gap
                                         "max_passivity_residual_J",
                                         "iterations",
                                         "guard_alpha",
                                         "guard_withheld_J",
                                         "residual",
                                         "step_s",
                                         "slack_s"};
  static_assert(std::size(kNames) == lines);
  for (std::size_t i = 0; i < lines; ++i) columns_[i] = kNames[i].empty() ? -1 : place(kNames[i]);
  damped_ = place("numerical_dissipation_J");
  time_ = place("time_s");
  step_index_ = place("step");
  numbers_.resize(lines);
}

double LedgerCurves::of(std::span<const double> row, int column) const {
  return column < 0 ? kNotKnown : row[static_cast<std::size_t>(column)];
}

void LedgerCurves::add(std::span<const double> row) {
  for (std::size_t i = 0; i < lines; ++i) numbers_[i] = of(row, columns_[i]);
  const bool is_first = points_.rows() == 0;
  if (std::isfinite(numbers_[stored])) {
    if (!start_J_) {
      start_J_ = numbers_[stored];
      has_energy_ = true;
    } else {
      supplied_.add(numbers_[supplied]);
      dissipated_.add(numbers_[dissipated]);
      const double damped = of(row, damped_);  // there where steps are damped
      if (std::isfinite(damped)) dissipated_.add(damped);
      mismatch_.add(numbers_[mismatch]);
      if (std::isfinite(numbers_[impact])) impact_.add(numbers_[impact]);
    }
    numbers_[supplied] = supplied_.value();
    numbers_[dissipated] = dissipated_.value();
    numbers_[mismatch] = mismatch_.value();
    // Without an impulse there is no curve; results of older versions have no such column.
    numbers_[impact] = impact_.value() != 0.0 ? impact_.value() : kNotKnown;
    numbers_[gap] = numbers_[stored] - *start_J_ - supplied_.value() + dissipated_.value() +
                    mismatch_.value() + impact_.value();
    largest_gap_J_ = std::max(largest_gap_J_, std::abs(numbers_[gap]));
  }
  if (is_first) {  // what a step does is not known at the start
    for (const Line line : {iterations, residual, step, slack, passivity}) {
      numbers_[line] = kNotKnown;
    }
  }
  // A row stands for all steps since the one before.
  const double index = of(row, step_index_);
  if (index > last_index_ + 1.0) numbers_[iterations] /= index - last_index_;
  last_index_ = index;
  points_.add(of(row, time_), numbers_);
}

Chart LedgerCurves::chart(const Decimation::Lines& from, std::string title, std::string y_label,
                          std::initializer_list<std::pair<Line, const char*>> what) const {
  Chart out = {.title = std::move(title),
               .x_label = "time [s]",
               .y_label = std::move(y_label),
               .note = decimation_note(points_),
               .x = from.time};
  for (const auto& [line, label] : what) {
    if (has_value(from.columns[line])) {
      out.series.push_back({.label = label, .y = from.columns[line]});
    }
  }
  return out;
}

Section LedgerCurves::energy() const {
  Section section = {.title = "Energy"};
  if (!has_energy_) {
    section.text = "No ledger was kept.";
    return section;
  }
  const Decimation::Lines drawn = points_.lines();
  section.charts.push_back(chart(drawn, "Energy", "[J]",
                                 {{stored, "stored"},
                                  {supplied, "supplied since the start"},
                                  {dissipated, "dissipated since the start"},
                                  {mismatch, "taken by the unconverged coupling"},
                                  {impact, "taken by impulses"},
                                  {tank, "tank of the guard"}}));
  section.charts.push_back(chart(drawn, "What the ledger leaves open", "[J]",
                                 {{gap, "stored − start − supplied + dissipated + taken"},
                                  {passivity, "largest passivity residual of a part"}}));
  section.charts.back().note +=
      (section.charts.back().note.empty() ? "" : " ") +
      fmt::format("Formed from the recorded rows: at most {:.3g} J.", largest_gap_J_);
  return section;
}

Section LedgerCurves::coupling() const {
  Section section = {.title = "Coupling"};
  const Decimation::Lines drawn = points_.lines();
  if (exceeds(drawn.columns[iterations], 0.0)) {
    section.charts.push_back(
        chart(drawn, "Iterations", "per step", {{iterations, "iterations per step"}}));
  }
  if (exceeds(drawn.columns[residual], 0.0)) {
    section.charts.push_back(
        chart(drawn, "Residual at the end of the iteration", "", {{residual, "residual"}}));
    section.charts.back().log_y = true;
  }
  if (exceeds(drawn.columns[withheld], 0.0)) {
    section.charts.push_back(
        chart(drawn, "Energy that the guard withheld", "[J] per row", {{withheld, "withheld"}}));
    section.charts.push_back(chart(drawn, "Share of the waves that the guard kept", "",
                                   {{alpha, "smallest alpha (1: it did not act)"}}));
  } else if (std::ranges::any_of(drawn.columns[alpha], [](double a) { return a < 1.0; })) {
    section.charts.push_back(chart(drawn, "Share of the waves that the guard kept", "",
                                   {{alpha, "smallest alpha (1: it did not act)"}}));
  }
  return section;
}

Section LedgerCurves::steps() const {
  Section section = {.title = "Steps"};
  const Decimation::Lines drawn = points_.lines();
  double smallest = std::numeric_limits<double>::infinity(), largest = 0.0;
  for (const double size : drawn.columns[step]) {
    if (std::isnan(size)) continue;
    smallest = std::min(smallest, size);
    largest = std::max(largest, size);
  }
  if (largest > smallest * (1.0 + 1e-9)) {
    section.charts.push_back(chart(drawn, "Step size", "[s]", {{step, "step"}}));
    section.charts.back().log_y = true;
  }
  if (has_value(drawn.columns[slack])) {
    section.charts.push_back(
        chart(drawn, "Time left at the deadline", "[s]", {{slack, "slack (below 0: missed)"}}));
  }
  return section;
}

}  // namespace portwave::report
