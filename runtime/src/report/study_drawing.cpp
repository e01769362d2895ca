// The page that draws a study.

#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

#include "portwave/runtime/report/report.hpp"
#include "report/page.hpp"
#include "report/run_folder.hpp"

namespace portwave::report {
namespace {

using Json = nlohmann::json;

/// How rows of a study make a chart: a line for each combination of `lines`.
struct ChartForm {
  const char* title;
  const char* x;
  const char* x_label;
  const char* y;
  const char* y_label;
  bool log_x, log_y;
};

struct StudyForm {
  const char* kind;
  const char* title;
  std::vector<const char*> lines;
  std::vector<ChartForm> charts;
  const char* more = nullptr;  ///< further rows, drawn along with the others
};

/// The study of a program of its own, among the benchmarks.
constexpr const char* kRankStudy = "rank_study scaling";

const std::vector<StudyForm>& forms() {
  static const std::vector<StudyForm> kForms = {
      {"budget",
       "Error by inner iterations",
       {"method", "impedance", "guard"},
       {{"Error of the states", "iterations", "iterations per step", "rms", "root mean square",
         false, true},
        {"Energy beyond the start", "iterations", "iterations per step", "max_energy_ratio",
         "energy / start", false, false},
        {"Steps in which the guard acted", "iterations", "iterations per step", "guard_steps",
         "steps", false, false}}},
      {"delay",
       "Error by how late waves are",
       {"iterations"},
       {{"Error of the states", "delay", "evaluations late", "rms", "root mean square", false,
         true},
        {"Steps in which the guard acted", "delay", "evaluations late", "guard_steps", "steps",
         false, false}}},
      {"order",
       "Error and cost by step size",
       {"method"},
       {{"Error by step size", "step_s", "step size [s]", "error", "error", true, true},
        {"Error by time", "time_s", "time [s]", "error", "error", true, true}}},
      {"tolerance",
       "Work and precision",
       {"stages"},
       {{"Error by time", "time_s", "time [s]", "error", "relative error", true, true},
        {"Error by evaluations", "evaluations", "evaluations", "error", "relative error", true,
         true},
        {"Error by tolerance", "tolerance", "tolerance", "error", "relative error", true, true}}},
      {"scaling",
       "Time per step by threads",
       {"source", "size", "executor"},
       {{"Speed-up", "threads", "threads", "speed_up", "speed-up", false, false},
        {"Time per step", "threads", "threads", "step_s", "[s]", false, true},
        {"Efficiency", "threads", "threads", "efficiency", "speed-up / threads", false, false}}},
      {kRankStudy,
       "Time per step by ranks",
       {"source", "threads", "size"},
       {{"Speed-up", "ranks", "ranks", "speed_up", "speed-up", true, true},
        {"Time per step", "ranks", "ranks", "step_s", "[s]", true, true},
        {"Efficiency", "ranks", "ranks", "efficiency", "speed-up / cores", true, false}},
       "predicted_curve"},
  };
  return kForms;
}

std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "on" : "off";
  if (value.is_number_float()) return fmt::format("{:g}", value.get<double>());
  return value.is_null() ? "–" : value.dump();
}

double number_of(const Json& value) {
  return number_or(value, std::numeric_limits<double>::quiet_NaN());
}

/// "douglas-rachford, matched, guard on": the settings that differ between rows.
std::string label_of(const Json& row, std::span<const char* const> keys, const Json& rows) {
  std::string label;
  for (const char* key : keys) {
    const Json& first = at(rows.front(), key);
    bool varies = false;
    for (const Json& other : rows) varies = varies || at(other, key) != first;
    if (!varies && keys.size() > 1) continue;
    const Json& value = at(row, key);
    if (!label.empty()) label += ", ";
    label += value.is_string() ? text_of(value) : fmt::format("{} {}", key, text_of(value));
  }
  return label.empty() ? text_of(at(row, keys.front())) : label;
}

Chart chart_of(const ChartForm& form, const Json& rows, std::span<const char* const> keys) {
  Chart chart = {.title = form.title,
                 .x_label = form.x_label,
                 .y_label = form.y_label,
                 .log_x = form.log_x,
                 .log_y = form.log_y,
                 .points = true,
                 .shown = 12};
  std::map<std::string, std::map<double, double>> lines;  // uPlot wants x in order
  std::vector<std::string> order;
  for (const Json& row : rows) {
    const double x = number_of(at(row, form.x)), y = number_of(at(row, form.y));
    const bool is_drawn = std::isfinite(x) && std::isfinite(y) && (!form.log_x || x > 0.0) &&
                          (!form.log_y || y > 0.0);
    if (!is_drawn) continue;
    const std::string label = label_of(row, keys, rows);
    if (!lines.contains(label)) order.push_back(label);
    lines[label][x] = y;
  }
  for (const std::string& label : order) {
    Series series = {.label = label};
    for (const auto& [x, y] : lines[label]) {
      series.x.push_back(x);
      series.y.push_back(y);
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

/// Names of the entries of a row, in its order, those of an object in it being "a / b".
std::vector<std::string> columns_of(const nlohmann::ordered_json& row) {
  std::vector<std::string> columns;
  for (const auto& [key, value] : row.items()) {
    if (!value.is_object()) {
      columns.push_back(key);
      continue;
    }
    for (const auto& [inner, own] : value.items()) columns.push_back(key + " / " + inner);
  }
  return columns;
}

/// All rows as they are.
Table table_of(const Json& rows, std::vector<std::string> columns) {
  Table table = {.title = "Rows", .columns = std::move(columns)};
  for (const Json& row : rows) {
    std::vector<Json> cells;
    for (const std::string& column : table.columns) {
      const auto cut = column.find(" / ");
      const Json& value = cut == std::string::npos ? at(row, column.c_str())
                                                   : at(row, column.substr(0, cut).c_str(),
                                                        column.substr(cut + 3).c_str());
      cells.push_back(value.is_number() || value.is_null() ? value : Json(text_of(value)));
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

/// Numbers and texts of a study beside its rows.
void add_facts(Page& page, const Json& json) {
  for (const auto& [key, value] : json.items()) {
    if (value.is_structured() || value.is_null()) continue;
    page.facts.emplace_back(key, text_of(value));
  }
}

Section iteration_section(const Json& windows, std::vector<std::string> columns) {
  Section section = {.title = "Error by iterate"};
  Chart states = {.title = "Error of the states",
                  .x_label = "iterate",
                  .y_label = "L2 over the window",
                  .log_y = true,
                  .points = true};
  Chart stored = states;
  stored.title = "Error of the iteration's own variable";
  Json rows = Json::array();
  for (const Json& window : windows) {
    const std::string label =
        fmt::format("window at {:g} s", number_or(at(window, "start_s"), 0.0));
    Series x = {.label = label}, z = {.label = label};
    for (const Json& row : at(window, "rows")) {
      const double iterate = number_of(at(row, "iteration"));
      x.x.push_back(iterate);
      x.y.push_back(number_of(at(row, "x_error")));
      z.x.push_back(iterate);
      z.y.push_back(number_of(at(row, "z_error")));
      rows.push_back(row);
    }
    states.series.push_back(std::move(x));
    stored.series.push_back(std::move(z));
  }
  section.charts = {std::move(states), std::move(stored)};
  if (!rows.empty()) section.tables.push_back(table_of(rows, std::move(columns)));
  return section;
}

Section rate_section(const Json& rows) {
  Section section = {.title = "Contraction per evaluation"};
  Table table = {.title = "",
                 .columns = {"iteration", "impedance", "relaxation", "predicted contraction",
                             "observed", "predicted evaluations", "observed", "not converged"}};
  Chart chart = {.title = "Contraction: predicted and observed",
                 .x_label = "predicted",
                 .y_label = "observed",
                 .note = "On the diagonal both are equal; small is fast.",
                 .points = true,
                 .shown = 12};
  for (const Json& row : rows) {
    const std::string method = text_of(at(row, "method")), rule = text_of(at(row, "impedance"));
    const double predicted = number_of(at(row, "predicted", "contraction"));
    const double observed = number_of(at(row, "observed", "contraction"));
    table.rows.push_back({method, rule, at(row, "relaxation"), at(row, "predicted", "contraction"),
                          at(row, "observed", "contraction"), at(row, "predicted", "evaluations"),
                          at(row, "observed", "evaluations"),
                          at(row, "observed", "not_converged")});
    if (!std::isfinite(predicted) || !std::isfinite(observed)) continue;
    chart.series.push_back({.label = fmt::format("{}, {}", method, rule),
                            .y = {observed},
                            .x = {predicted},
                            .points = true});
  }
  chart.series.push_back({.label = "equal", .y = {0.0, 1.0}, .x = {0.0, 1.0}, .dash = 1});
  section.charts.push_back(std::move(chart));
  section.tables.push_back(std::move(table));
  return section;
}

const StudyForm& form_of(const std::string& kind) {
  for (const StudyForm& form : forms()) {
    if (form.kind == kind) return form;
  }
  throw std::invalid_argument(fmt::format("there is no study \"{}\"", kind));
}

const Json& rows_of(const Json& json, const char* name) {
  const Json& rows = json.is_array() ? json : at(json, name);
  const bool is_good = rows.is_array() && !rows.empty() && rows.front().is_object();
  if (!is_good) throw std::runtime_error("the study has no rows");
  return rows;
}

/// The first row as it was written: the other type of JSON sorts its entries.
nlohmann::ordered_json first_row(const std::string& text, const char* rows) {
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(text);
  nlohmann::ordered_json first = json.is_array() ? json.at(0) : json.at(rows).at(0);
  return first.contains("rows") ? first.at("rows").at(0) : first;
}

Page study_page(const std::string& text, const std::string& kind, const std::string& scenario) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) throw std::runtime_error("the study is no JSON");

  Page page = {.title = scenario, .subtitle = kind == kRankStudy ? kind : "portwave study " + kind};
  if (json.is_object()) add_facts(page, json);
  if (kind == "rate") {
    page.sections.push_back(rate_section(rows_of(json, "rows")));
    return page;
  }
  if (kind == "iteration") {
    page.sections.push_back(
        iteration_section(rows_of(json, "windows"), columns_of(first_row(text, "windows"))));
    return page;
  }
  const StudyForm& form = form_of(kind);
  const Json& rows = rows_of(json, "rows");
  Section section = {.title = form.title};
  Json all = rows;
  if (form.more != nullptr) {
    for (const Json& row : rows_of(json, form.more)) all.push_back(row);
  }
  for (const ChartForm& chart : form.charts) {
    Chart drawn = chart_of(chart, all, form.lines);
    if (!drawn.series.empty()) section.charts.push_back(std::move(drawn));
  }
  section.tables.push_back(table_of(rows, columns_of(first_row(text, "rows"))));
  page.sections.push_back(std::move(section));
  return page;
}

}  // namespace
}  // namespace portwave::report

namespace portwave {

std::string study_report(const std::string& json, const std::string& kind,
                         const std::string& scenario) {
  return report::page_html(report::study_page(json, kind, scenario));
}

}  // namespace portwave
