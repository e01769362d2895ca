#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace portwave::report {

/// A line of a chart, interrupted where it is NaN or infinite.
struct Series {
  std::string label;
  std::vector<double> y = {};
  std::vector<double> x = {};  ///< empty: that of the chart
  int colour = -1;             ///< −1: by its number in the chart
  int dash = 0;
  bool points = false;  ///< points without a line
};

struct Chart {
  std::string title, x_label, y_label, note = {};
  bool log_x = false, log_y = false;  ///< what is not positive is left out
  bool steps = false, points = false;
  int shown = 8;  ///< lines that are drawn until more are asked for
  std::vector<double> x = {};
  std::vector<Series> series = {};
};

struct Table {
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<nlohmann::json>> rows = {};  ///< texts and numbers
  std::string note = {};
};

/// Nodes: {name, type, count, junction, says}; links: {a, b, energy_J}.
struct Network {
  nlohmann::json nodes = nlohmann::json::array(), links = nlohmann::json::array();
  std::string summary, note = {};
};

struct Section {
  std::string title, text = {};
  std::vector<Chart> charts = {};
  std::vector<Table> tables = {};
  std::optional<Network> network = {};
};

enum class Level { good, warn, bad };

struct Verdict {
  Level level;
  std::string text;
};

struct Advice {
  Level level;
  std::string title, text;  ///< code stands between backquotes
};

/// The contents of a page.
struct Page {
  std::string title, subtitle = {};
  std::optional<Verdict> verdict = {};
  std::vector<std::pair<std::string, std::string>> facts = {};
  std::vector<Advice> advice = {};
  std::vector<Section> sections = {};
  std::string events = {};  ///< where news of a run come from that goes on; empty: it does not
  bool ended = true;
};

/// As JSON on one line. Times have 10 digits, other numbers 7.
std::string page_json(const Page& page);
/// As HTML, which asks nobody for anything, but with `Page::events` its own server.
/// Errors: std::invalid_argument without `has_report`.
std::string page_html(const Page& page);

}  // namespace portwave::report
