// The page that compares two runs.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>

#include <fmt/format.h>

#include "output/recording/table_reader.hpp"
#include "report/advice.hpp"
#include "report/run_curves.hpp"
#include "report/run_page.hpp"

namespace portwave::report {
namespace {

using Json = nlohmann::json;

/// How a quantity of one run differs from that of another, at the times of the first.
struct Difference {
  double largest = 0.0, at_s = 0.0, squares = 0.0;
  double low = std::numeric_limits<double>::infinity(), high = -low;  // of the first
  std::int64_t rows = 0;

  void add(double time_s, double first, double second) {
    low = std::min(low, first);
    high = std::max(high, first);
    const double size = std::abs(first - second);
    if (size > largest) {
      largest = size;
      at_s = time_s;
    }
    squares += size * size;
    ++rows;
  }
};

/// Rows of a table at any later and later time, on lines between its rows.
class RowsInTime {
 public:
  explicit RowsInTime(TableReader& table) : table_(table) { is_there_ = table_.next(after_); }

  /// Whether there are rows around that time; `row` then receives the values at it.
  bool at(double time_s, std::vector<double>& row) {
    while (is_there_ && after_[0] < time_s) {
      before_.swap(after_);
      is_there_ = table_.next(after_);
    }
    if (!is_there_) return false;
    if (after_[0] == time_s) {
      row = after_;
      return true;
    }
    if (before_.empty()) return false;
    is_between_ = true;
    const double share = (time_s - before_[0]) / (after_[0] - before_[0]);
    row.resize(after_.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = before_[i] + share * (after_[i] - before_[i]);
    }
    return true;
  }
  /// Rows were requested at times without any.
  bool is_between() const { return is_between_; }
  bool is_at_end() const { return !is_there_; }

 private:
  TableReader& table_;
  std::vector<double> before_, after_;
  bool is_there_ = false, is_between_ = false;
};

struct Comparison {
  std::vector<std::string> quantities;  // of both
  std::vector<Difference> differences;
  bool same_times = true;
  std::unique_ptr<TrajectoryCurves> first, second;
};

Comparison compare(const RunFolder& a, const RunFolder& b) {
  Comparison out;
  const auto first = open_table(a.path, "trajectory"), second = open_table(b.path, "trajectory");
  if (first == nullptr || second == nullptr) return out;
  std::vector<std::size_t> of_first, of_second;
  for (std::size_t i = 1; i < first->columns().size(); ++i) {
    const auto found = std::ranges::find(second->columns(), first->columns()[i]);
    if (found == second->columns().end()) continue;
    out.quantities.push_back(first->columns()[i]);
    of_first.push_back(i);
    of_second.push_back(static_cast<std::size_t>(found - second->columns().begin()));
  }
  out.differences.resize(out.quantities.size());
  RowsInTime rows(*second);
  std::vector<double> row, other;
  double end_s = 0.0;
  while (first->next(row)) {
    end_s = row[0];
    if (!rows.at(row[0], other)) {
      out.same_times = false;
      continue;
    }
    for (std::size_t i = 0; i < of_first.size(); ++i) {
      out.differences[i].add(row[0], row[of_first[i]], other[of_second[i]]);
    }
  }
  out.same_times = out.same_times && !rows.is_between();
  std::vector<double> more;
  rows.at(std::nextafter(end_s, std::numeric_limits<double>::infinity()), more);
  out.same_times = out.same_times && rows.is_at_end();
  return out;
}

std::unique_ptr<TrajectoryCurves> curves_of(const RunFolder& run) {
  const auto table = open_table(run.path, "trajectory");
  if (table == nullptr) return nullptr;
  auto curves = std::make_unique<TrajectoryCurves>(table->columns());
  std::vector<double> row;
  while (table->next(row)) curves->add(row);
  return curves;
}

/// Charts of both, quantities of one name in one colour: A drawn through, B dashed.
std::vector<Chart> overlaid(std::vector<Chart> a, const std::vector<Chart>& b) {
  std::map<std::string, std::pair<const Chart*, const Series*>> others;
  for (const Chart& chart : b) {
    for (const Series& series : chart.series) others[series.label] = {&chart, &series};
  }
  for (Chart& chart : a) {
    std::vector<Series> both;
    for (std::size_t i = 0; i < chart.series.size(); ++i) {
      Series own = chart.series[i];
      const auto found = others.find(own.label);
      own.label = "A: " + own.label;
      own.x = chart.x;
      own.colour = static_cast<int>(i);
      const std::string label = chart.series[i].label;
      both.push_back(std::move(own));
      if (found == others.end()) continue;
      both.push_back({.label = "B: " + label,
                      .y = found->second.second->y,
                      .x = found->second.first->x,
                      .colour = static_cast<int>(i),
                      .dash = 1});
    }
    chart.series = std::move(both);
    chart.x.clear();
    chart.shown = 6;
  }
  return a;
}

Table table_of(const Comparison& comparison, const std::map<std::string, std::string>& units) {
  constexpr std::size_t kMostRows = 200;
  Table table = {.title = "Differences",
                 .columns = {"quantity", "unit", "largest |A − B|", "at [s]", "root mean square",
                             "of the range of A [%]"}};
  std::vector<std::size_t> order;
  const auto relative = [&](std::size_t i) {
    const Difference& d = comparison.differences[i];
    return d.high > d.low ? d.largest / (d.high - d.low) : d.largest > 0.0 ? 1e300 : 0.0;
  };
  for (std::size_t i = 0; i < comparison.quantities.size(); ++i) order.push_back(i);
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return relative(a) > relative(b); });
  for (const std::size_t i : order) {
    if (table.rows.size() == kMostRows) break;
    const Difference& d = comparison.differences[i];
    const auto unit = units.find(comparison.quantities[i]);
    const Json share = d.high > d.low ? Json(100.0 * relative(i)) : Json(nullptr);
    table.rows.push_back(
        {comparison.quantities[i], unit == units.end() ? "" : unit->second, d.largest,
         d.largest > 0.0 ? Json(d.at_s) : Json(nullptr),
         std::sqrt(d.squares / static_cast<double>(std::max<std::int64_t>(1, d.rows))), share});
  }
  if (order.size() > kMostRows) {
    table.note = fmt::format("The {} that differ most of {}.", kMostRows, order.size());
  }
  return table;
}

/// Entries of the summaries side by side where they differ, but for times on the clock.
Table differing_entries(const RunFolder& a, const RunFolder& b) {
  Table table = {.title = "Entries that differ", .columns = {"entry of summary.json", "A", "B"}};
  const Table first = how_it_was_run(a.summary), second = how_it_was_run(b.summary);
  std::map<std::string, std::pair<Json, Json>> entries;
  std::vector<std::string> order;
  const auto note = [&](const Table& from, bool is_first) {
    for (const auto& row : from.rows) {
      const std::string name = row[0].get<std::string>();
      if (!entries.contains(name)) order.push_back(name);
      (is_first ? entries[name].first : entries[name].second) = row[1];
    }
  };
  note(first, true);
  note(second, false);
  for (const std::string& name : order) {
    const auto& [one, other] = entries[name];
    if (one != other) table.rows.push_back({name, one, other});
  }
  return table;
}

Verdict verdict_of(const Comparison& comparison) {
  if (comparison.quantities.empty()) {
    return {Level::warn, "The runs have no quantity in common: nothing can be compared."};
  }
  const auto is_equal = [](const Difference& d) { return d.largest == 0.0; };
  const bool equal = std::ranges::all_of(comparison.differences, is_equal);
  if (equal && comparison.same_times) {
    return {Level::good, "All quantities of both are equal to the last bit, at the same times."};
  }
  if (equal) {
    return {Level::good,
            "All quantities are equal where both have rows; their times are not the same."};
  }
  return {Level::warn, fmt::format("{} of {} quantities differ.",
                                   comparison.differences.size() -
                                       static_cast<std::size_t>(
                                           std::ranges::count_if(comparison.differences, is_equal)),
                                   comparison.differences.size())};
}

}  // namespace

Page comparison_page(const RunFolder& first, const RunFolder& second) {
  const Comparison comparison = compare(first, second);
  Page page = {.title = fmt::format("{} and {}", first.title(), second.title()),
               .subtitle = fmt::format("A: {} · B: {}", first.path.string(), second.path.string()),
               .verdict = verdict_of(comparison)};
  const auto facts_a = facts_of(first), facts_b = facts_of(second);
  std::map<std::string, std::string> of_b(facts_b.begin(), facts_b.end());
  for (const auto& [label, value] : facts_a) {
    const auto found = of_b.find(label);
    const std::string other = found == of_b.end() ? "–" : found->second;
    page.facts.emplace_back(label,
                            value == other ? value : fmt::format("A {} · B {}", value, other));
  }
  for (const auto& [run, name] : {std::pair{&first, "A"}, std::pair{&second, "B"}}) {
    for (Advice advice : advice_for(run->summary)) {
      advice.title = fmt::format("{}: {}", name, advice.title);
      page.advice.push_back(std::move(advice));
    }
  }
  Section trajectories = {.title = "Trajectories"};
  const auto a = curves_of(first), b = curves_of(second);
  if (a != nullptr && b != nullptr) {
    trajectories.charts = overlaid(a->charts(first.units), b->charts(second.units));
    if (!comparison.quantities.empty()) {
      trajectories.tables.push_back(table_of(comparison, first.units));
      trajectories.text = "At the times of A; between two rows of B on the line through them.";
    }
  } else {
    trajectories.text = "One of the runs has recorded no rows.";
  }
  page.sections.push_back(std::move(trajectories));
  page.sections.push_back(
      {.title = "How they were run", .tables = {differing_entries(first, second)}});
  return page;
}

}  // namespace portwave::report
