#include "portwave/runtime/study/scaling_figure.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "report/figure.hpp"

namespace portwave {
namespace {

constexpr double kWidth = 504.0, kPanelHeight = 150.0;  // two columns of a journal
constexpr double kLeft = 44.0, kRight = 8.0, kTop = 20.0, kBetween = 46.0, kLegendLine = 12.0;
constexpr Figure::Colour kBlack = {0.0, 0.0, 0.0}, kGrey = {0.55, 0.55, 0.55},
                         kLight = {0.88, 0.88, 0.88};
/// Okabe and Ito's.
constexpr std::array<Figure::Colour, 7> kColours = {{{0.0, 0.447, 0.698},
                                                     {0.835, 0.369, 0.0},
                                                     {0.0, 0.620, 0.451},
                                                     {0.800, 0.475, 0.655},
                                                     {0.902, 0.624, 0.0},
                                                     {0.337, 0.706, 0.914},
                                                     {0.3, 0.3, 0.3}}};
constexpr std::array<Figure::Mark, 4> kMarks = {Figure::Mark::circle, Figure::Mark::square,
                                                Figure::Mark::triangle, Figure::Mark::diamond};

struct Tick {
  double at;
  std::string label;
};

/// Values along one side of a panel.
struct Axis {
  double low = 0.0, high = 1.0;
  bool is_log = false;
  std::vector<Tick> ticks;

  /// 0 at `low`, 1 at `high`.
  double share(double value) const {
    return is_log ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  }
};

std::string short_number(double value) {
  if (value >= 1e6 || (value > 0.0 && value < 1e-2)) {
    return fmt::format("1e{}", static_cast<int>(std::lround(std::log10(value))));
  }
  return fmt::format("{:g}", value);
}

Axis powers_of_two(double low, double high) {
  Axis axis{low / 1.12, high * 1.12, true, {}};
  for (double at = std::exp2(std::ceil(std::log2(low) - 1e-9)); at <= high * 1.001; at *= 2.0) {
    axis.ticks.push_back({at, short_number(at)});
  }
  return axis;
}

/// 1, 2, 5, 10, … or, over many decades, powers of ten.
Axis decades(double low, double high) {
  Axis axis{low / 1.3, high * 1.3, true, {}};
  const bool is_wide = high / low > 300.0;
  for (int decade = static_cast<int>(std::floor(std::log10(axis.low)));
       decade <= static_cast<int>(std::ceil(std::log10(axis.high))); ++decade) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double at = digit * std::pow(10.0, decade);
      const bool is_inside = at >= axis.low && at <= axis.high;
      if (!is_inside || (is_wide && digit > 1.0)) continue;
      // 2e6 and 5e6 beside 1e6
      const std::string label =
          at >= 1e6 ? fmt::format("{:g}e{}", digit, decade) : short_number(at);
      axis.ticks.push_back({at, label});
    }
  }
  return axis;
}

Axis from_zero(double high) {
  Axis axis{0.0, std::max(1.05, 1.08 * high), false, {}};
  const double step = axis.high > 4.0 ? 1.0 : axis.high > 1.6 ? 0.5 : 0.25;
  for (double at = 0.0; at <= axis.high; at += step)
    axis.ticks.push_back({at, fmt::format("{:g}", at)});
  return axis;
}

/// One line of the legend: a network and an executor.
struct Entry {
  std::string label;
  Figure::Colour colour;
  Figure::Mark mark;
};

/// Points of an entry in one panel.
struct Dots {
  struct Dot {
    double x, y;
    bool predicted;
    std::optional<double> low, high;
  };
  std::vector<Dot> dots = {};
  std::vector<Figure::Point> predicted = {};  ///< a curve
};

struct Panel {
  std::string title, x_label, y_label;
  bool log_y = false;
  bool ratio_y = false;            ///< powers of two
  std::vector<Dots> entries = {};  ///< as in the legend
  std::vector<Figure::Point> ideal = {};
};

/// A figure with panels two by two and a legend below.
class ScalingFigure {
 public:
  explicit ScalingFigure(const ScalingStudy& study) : study_(study) {
    for (const ScalingRow& row : study.rows) {
      (void)entry_of(row);
      most_threads_ = std::max(most_threads_, row.threads);
    }
  }

  Figure draw() {
    std::vector<Panel> panels;
    panels.push_back(panel(study_.weak ? "(a) scaled speed-up" : "(a) speed-up", study_.workers, "",
                           [](const ScalingRow& row) { return std::optional(row.speed_up); }));
    panels.back().log_y = panels.back().ratio_y = true;
    panels.back().ideal = {{1.0, 1.0}, {1.0 * most_threads_, 1.0 * most_threads_}};
    panels.push_back(panel(study_.weak ? "(b) weak efficiency" : "(b) efficiency", study_.workers,
                           "",
                           [](const ScalingRow& row) { return std::optional(row.efficiency); }));
    panels.back().ideal = {{1.0, 1.0}, {1.0 * most_threads_, 1.0}};
    panels.push_back(times());
    panels.push_back(last());
    return laid_out(panels);
  }

 private:
  std::string label_of(const ScalingRow& row) const {
    const bool is_by_threads = study_.workers == "threads";
    if (study_.weak) return is_by_threads ? std::string(to_string(row.executor)) : study_.workers;
    const std::string size = fmt::format("{} parts", row.size);
    return is_by_threads ? fmt::format("{}, {}", size, to_string(row.executor)) : size;
  }

  std::size_t entry_of(const ScalingRow& row) {
    const std::string label = label_of(row);
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].label == label) return i;
    }
    const std::size_t i = entries_.size();
    entries_.push_back({label, kColours[i % kColours.size()], kMarks[i % kMarks.size()]});
    return i;
  }

  template <class Value>
  Panel panel(std::string title, std::string x_label, std::string y_label, const Value& value) {
    Panel out{
        .title = std::move(title), .x_label = std::move(x_label), .y_label = std::move(y_label)};
    out.entries.resize(entries_.size());
    for (const ScalingRow& row : study_.rows) {
      const std::optional<double> y = value(row);
      if (y)
        out.entries[entry_of(row)].dots.push_back({1.0 * row.threads, *y, row.predicted, {}, {}});
    }
    if (study_.weak) {  // the curve is that of the last network alone
      for (Dots& dots : out.entries) {
        if (std::ranges::none_of(dots.dots, &Dots::Dot::predicted)) continue;
        for (const Dots::Dot& dot : dots.dots) dots.predicted.push_back({dot.x, dot.y});
      }
      return out;
    }
    for (const ScalingRow& row : study_.curve) {
      const std::optional<double> y = value(row);
      if (row.threads <= most_threads_ && y) {
        out.entries[entry_of(row)].predicted.push_back({1.0 * row.threads, *y});
      }
    }
    return out;
  }

  Panel times() {
    double longest = 0.0;
    for (const ScalingRow& row : study_.rows) longest = std::max(longest, row.step_s);
    const double unit = longest < 1e-2 ? 1e6 : longest < 10.0 ? 1e3 : 1.0;
    Panel out = panel("(c) time per step", study_.workers,
                      unit == 1e6   ? "[\xC2\xB5s]"
                      : unit == 1e3 ? "[ms]"
                                    : "[s]",
                      [&](const ScalingRow& row) { return std::optional(unit * row.step_s); });
    out.log_y = true;
    std::vector<std::size_t> next(entries_.size(), 0);
    for (const ScalingRow& row : study_.rows) {
      const std::size_t i = entry_of(row);
      Dots::Dot& dot = out.entries[i].dots[next[i]++];
      if (!row.fastest_s) continue;
      dot.low = unit * *row.fastest_s;
      dot.high = unit * *row.slowest_s;
    }
    return out;
  }

  Panel last() {
    const auto weak = [](const ScalingRow& row) { return row.weak_efficiency; };
    const bool has_weak = std::ranges::any_of(
        study_.rows, [](const ScalingRow& row) { return row.weak_efficiency && row.threads > 1; });
    if (has_weak && !study_.weak) {
      // A line for each size of one thread: sizes and threads grow together.
      Panel out{.title = "(d) weak efficiency", .x_label = study_.workers, .y_label = ""};
      out.entries.resize(entries_.size());
      for (const ScalingRow& first : study_.rows) {
        if (first.threads != 1) continue;
        Dots& dots = out.entries[entry_of(first)];
        for (const ScalingRow& row : study_.rows) {
          const auto own = weak(row);
          const std::int64_t beyond = row.size - first.size * row.threads;
          const bool is_sister = own && row.executor == first.executor && beyond > -row.threads &&
                                 beyond < row.threads;
          if (!is_sister) continue;
          dots.dots.push_back({1.0 * row.threads, *own, row.predicted, {}, {}});
          dots.predicted.push_back({1.0 * row.threads, *own});
        }
        if (std::ranges::none_of(dots.dots, &Dots::Dot::predicted)) dots.predicted.clear();
        if (dots.dots.size() < 2) dots = {};
      }
      out.ideal = {{1.0, 1.0}, {1.0 * most_threads_, 1.0}};
      return out;
    }
    Panel out = panel("(d) rate", study_.workers, "[parts\xC2\xB7steps/s]",
                      [](const ScalingRow& row) { return std::optional(row.parts_steps_per_s()); });
    out.log_y = true;
    return out;
  }

  Figure laid_out(const std::vector<Panel>& panels) {
    const double panel_width = 0.5 * (kWidth - 2.0 * (kLeft + kRight));
    const std::vector<std::vector<std::size_t>> legend = legend_lines();
    const double legend_top = kTop + 2.0 * kPanelHeight + kBetween + 44.0;
    Figure figure(kWidth, legend_top + kLegendLine * static_cast<double>(legend.size() + 1));
    for (std::size_t i = 0; i < panels.size(); ++i) {
      const double x = kLeft + static_cast<double>(i % 2) * (panel_width + kLeft + kRight);
      const double y = kTop + static_cast<double>(i / 2) * (kPanelHeight + kBetween);
      draw(figure, panels[i], {x, y}, panel_width);
    }
    for (std::size_t l = 0; l < legend.size(); ++l) {
      double x = kLeft;
      const double y = legend_top + kLegendLine * static_cast<double>(l);
      for (const std::size_t i : legend[l]) {
        figure.line({{x, y - 2.5}, {x + 18.0, y - 2.5}},
                    {.colour = entries_[i].colour, .width = 1.1});
        figure.mark({x + 9.0, y - 2.5}, entries_[i].mark, entries_[i].colour, true);
        figure.text({x + 23.0, y}, entries_[i].label, {.size = 7.5});
        x += entry_width(entries_[i].label);
      }
    }
    figure.text(
        {kLeft, legend_top + kLegendLine * static_cast<double>(legend.size())},
        "filled: measured, medians; bars: extremes; open and dashed: predicted; grey: ideal",
        {.size = 7.0});
    return figure;
  }

  static double entry_width(const std::string& label) {
    return 23.0 + Figure::width_of(label, 7.5) + 16.0;
  }

  std::vector<std::vector<std::size_t>> legend_lines() const {
    std::vector<std::vector<std::size_t>> lines(1);
    double x = kLeft;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const double own = entry_width(entries_[i].label);
      if (x + own > kWidth && !lines.back().empty()) {
        lines.emplace_back();
        x = kLeft;
      }
      lines.back().push_back(i);
      x += own;
    }
    return lines;
  }

  Axis y_axis(const Panel& panel) const {
    double low = std::numeric_limits<double>::infinity(), high = 0.0;
    const auto take = [&](double y) {
      low = std::min(low, y);
      high = std::max(high, y);
    };
    for (const Dots& dots : panel.entries) {
      for (const Dots::Dot& dot : dots.dots) {
        take(dot.y);
        if (dot.low) take(*dot.low);
        if (dot.high) take(*dot.high);
      }
      for (const Figure::Point& point : dots.predicted) take(point.y);
    }
    for (const Figure::Point& point : panel.ideal) take(point.y);
    if (!(high > 0.0)) return from_zero(1.0);
    if (!panel.log_y) return from_zero(high);
    return panel.ratio_y ? powers_of_two(low, high) : decades(low, high);
  }

  void draw(Figure& figure, const Panel& panel, Figure::Point corner, double width) const {
    const Axis x = powers_of_two(1.0, std::max(most_threads_, 2)), y = y_axis(panel);
    const auto place = [&](double at_x, double at_y) -> Figure::Point {
      return {corner.x + width * x.share(at_x), corner.y + kPanelHeight * (1.0 - y.share(at_y))};
    };
    const double bottom = corner.y + kPanelHeight;
    for (const Tick& tick : y.ticks) {
      const double at = place(1.0, tick.at).y;
      figure.line({{corner.x, at}, {corner.x + width, at}}, {.colour = kLight, .width = 0.5});
      figure.text({corner.x - 4.0, at + 2.6}, tick.label,
                  {.size = 7.5, .anchor = Figure::Anchor::end});
    }
    for (const Tick& tick : x.ticks) {
      const double at = place(tick.at, y.high).x;
      figure.line({{at, bottom}, {at, bottom + 3.0}}, {.colour = kBlack, .width = 0.6});
      figure.text({at, bottom + 11.0}, tick.label, {.size = 7.5, .anchor = Figure::Anchor::middle});
    }
    const double right = corner.x + width;
    figure.line({{corner.x, corner.y}, {corner.x, bottom}, {right, bottom}},
                {.colour = kBlack, .width = 0.6});
    figure.text({corner.x + 0.5 * width, bottom + 22.0}, panel.x_label,
                {.size = 8.0, .anchor = Figure::Anchor::middle});
    figure.text({corner.x, corner.y - 7.0},
                panel.title + (panel.y_label.empty() ? "" : " " + panel.y_label),
                {.size = 8.5, .bold = true});
    std::vector<Figure::Point> ideal;
    for (const Figure::Point& point : panel.ideal) ideal.push_back(place(point.x, point.y));
    figure.line(std::move(ideal), {.colour = kGrey, .width = 1.0});
    for (std::size_t i = 0; i < panel.entries.size(); ++i)
      draw(figure, panel.entries[i], entries_[i], place);
  }

  template <class Place>
  void draw(Figure& figure, const Dots& dots, const Entry& entry, const Place& place) const {
    std::vector<Figure::Point> curve, measured;
    for (const Figure::Point& point : dots.predicted) curve.push_back(place(point.x, point.y));
    figure.line(std::move(curve), {.colour = entry.colour, .width = 0.8, .dashes = {3.0, 2.0}});
    for (const Dots::Dot& dot : dots.dots) {
      if (!dot.predicted) measured.push_back(place(dot.x, dot.y));
    }
    figure.line(std::move(measured), {.colour = entry.colour, .width = 1.1});
    for (const Dots::Dot& dot : dots.dots) {
      if (dot.low && dot.high) {
        figure.line({place(dot.x, *dot.low), place(dot.x, *dot.high)},
                    {.colour = entry.colour, .width = 0.8});
      }
      figure.mark(place(dot.x, dot.y), entry.mark, entry.colour, !dot.predicted);
    }
  }

  const ScalingStudy& study_;
  std::vector<Entry> entries_;
  int most_threads_ = 1;
};

}  // namespace

std::string scaling_figure(const ScalingStudy& study, FigureFormat format) {
  const Figure figure = ScalingFigure(study).draw();
  return format == FigureFormat::pdf ? figure.pdf() : figure.svg();
}

}  // namespace portwave
