#include "report/page.hpp"

#include <cmath>
#include <span>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

#include "portwave/runtime/output/summary.hpp"
#include "portwave/runtime/report/report.hpp"
#include "report/page_sources.hpp"

namespace portwave {

bool has_report() { return !report::kUplotJs.empty(); }

}  // namespace portwave

namespace portwave::report {
namespace {

using Json = nlohmann::json;

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Charts hold most of a page: their numbers are written without a detour.
void put(std::string& out, std::span<const double> numbers, int digits, bool positive) {
  out += '[';
  const char* separator = "";
  for (const double number : numbers) {
    out += separator;
    separator = ",";
    if (!std::isfinite(number) || (positive && number <= 0.0)) {
      out += "null";
    } else {
      fmt::format_to(std::back_inserter(out), "{:.{}g}", number, digits);
    }
  }
  out += ']';
}

constexpr int kTimeDigits = 10, kDigits = 7;

void put(std::string& out, const Chart& chart) {
  Json json = {{"title", chart.title}, {"x_label", chart.x_label}, {"y_label", chart.y_label},
               {"note", chart.note},   {"log_x", chart.log_x},     {"log_y", chart.log_y},
               {"steps", chart.steps}, {"points", chart.points},   {"shown", chart.shown}};
  out += dumped(json);
  out.back() = ',';  // the object goes on
  out += "\"x\":";
  put(out, chart.x, kTimeDigits, chart.log_x);
  out += ",\"series\":[";
  const char* separator = "";
  for (const Series& series : chart.series) {
    out += separator;
    separator = ",";
    json = {{"label", series.label}, {"dash", series.dash}, {"points", series.points}};
    if (series.colour >= 0) json["colour"] = series.colour;
    out += dumped(json);
    out.back() = ',';
    if (!series.x.empty()) {
      out += "\"x\":";
      put(out, series.x, kTimeDigits, chart.log_x);
      out += ',';
    }
    out += "\"y\":";
    put(out, series.y, kDigits, chart.log_y);
    out += '}';
  }
  out += "]}";
}

std::string_view name_of(Level level) {
  constexpr std::string_view kNames[] = {"good", "warn", "bad"};
  return kNames[static_cast<std::size_t>(level)];
}

Json json_of(const Table& table) {
  return {{"title", table.title},
          {"columns", table.columns},
          {"rows", table.rows},
          {"note", table.note}};
}

void put(std::string& out, const Section& section) {
  Json json = {{"title", section.title}, {"text", section.text}, {"tables", Json::array()}};
  for (const Table& table : section.tables) json["tables"].push_back(json_of(table));
  if (section.network) {
    json["network"] = {{"nodes", section.network->nodes},
                       {"links", section.network->links},
                       {"summary", section.network->summary},
                       {"note", section.network->note}};
  }
  out += dumped(json);
  out.back() = ',';
  out += "\"charts\":[";
  for (std::size_t i = 0; i < section.charts.size(); ++i) {
    if (i > 0) out += ',';
    put(out, section.charts[i]);
  }
  out += "]}";
}

struct Place {
  std::string_view name;
  std::string_view text;
};

/// The page with a text in place of each "@NAME@", which stand there once and in this order. What was
/// filled in is not looked at again: it may hold anything, such as the name of a place.
std::string filled(std::string_view page, std::span<const Place> places) {
  std::string out;
  for (const Place& place : places) {
    const std::size_t at = page.find(place.name);
    if (at == std::string_view::npos) {
      throw std::logic_error(fmt::format("no {} in the page, or before another", place.name));
    }
    out += page.substr(0, at);
    out += place.text;
    page.remove_prefix(at + place.name.size());
  }
  out += page;
  return out;
}

std::string escaped_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

/// Nothing in it ends the element that it stands in: "<" occurs in texts only, where it may be
/// written so.
std::string within_script(std::string_view json) {
  std::string out;
  for (const char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string page_json(const Page& page) {
  Json json = {{"title", page.title},
               {"subtitle", page.subtitle},
               {"facts", Json::array()},
               {"advice", Json::array()},
               {"ended", page.ended}};
  if (page.verdict) {
    json["verdict"] = {{"level", name_of(page.verdict->level)}, {"text", page.verdict->text}};
  }
  if (!page.events.empty()) json["events"] = page.events;
  for (const auto& [label, value] : page.facts) json["facts"].push_back({label, value});
  for (const Advice& one : page.advice) {
    json["advice"].push_back(
        {{"level", name_of(one.level)}, {"title", one.title}, {"text", one.text}});
  }
  std::string out = dumped(json);
  out.back() = ',';
  out += "\"sections\":[";
  for (std::size_t i = 0; i < page.sections.size(); ++i) {
    if (i > 0) out += ',';
    put(out, page.sections[i]);
  }
  return out + "]}";
}

std::string page_html(const Page& page) {
  if (!has_report()) {
    throw std::invalid_argument(
        "portwave was built without uPlot, which draws the charts of reports");
  }
  const std::string title = escaped_html(page.title);
  const std::string data = within_script(page_json(page));
  const Place places[] = {
      {"@VERSION@", version()}, {"@CONNECT@", page.events.empty() ? "" : "; connect-src 'self'"},
      {"@TITLE@", title},       {"@UPLOT_CSS@", kUplotCss},
      {"@PAGE_CSS@", kPageCss}, {"@DATA@", data},
      {"@UPLOT_JS@", kUplotJs}, {"@PAGE_JS@", kPageJs}};
  return filled(kPageHtml, places);
}

}  // namespace portwave::report
