#include "report/run_page.hpp"

#include <array>
#include <memory>
#include <stdexcept>

#include <fmt/format.h>

#include "output/recording/table_reader.hpp"
#include "portwave/runtime/report/report.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "report/advice.hpp"
#include "report/network_drawing.hpp"
#include "report/run_curves.hpp"

namespace portwave {

std::string run_report(const std::vector<std::filesystem::path>& folders) {
  if (folders.empty() || folders.size() > 2) {
    throw std::invalid_argument("a report shows one folder, or compares two");
  }
  const report::RunFolder first = report::RunFolder::read(folders[0]);
  if (folders.size() == 1) return report::page_html(report::run_page(first));
  return report::page_html(report::comparison_page(first, report::RunFolder::read(folders[1])));
}

}  // namespace portwave

namespace portwave::report {
namespace {

using Json = nlohmann::json;

std::string three(double number) { return fmt::format("{:.3g}", number); }

/// Times and rates that people read.
std::string duration(double time_s) {
  if (time_s >= 60.0) return fmt::format("{:.4g} min", time_s / 60.0);
  if (time_s >= 1.0 || time_s == 0.0) return fmt::format("{:.3g} s", time_s);
  if (time_s >= 1e-3) return fmt::format("{:.3g} ms", 1e3 * time_s);
  return fmt::format("{:.3g} µs", 1e6 * time_s);
}

std::string with_thousands(double count) {
  std::string digits = fmt::format("{:.0f}", count);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), "\u202f");
  }
  return digits;
}

void add_rows(Table& table, const std::string& name, const Json& value) {
  if (value.is_object()) {
    for (const auto& [key, own] : value.items()) {
      add_rows(table, name.empty() ? key : name + " / " + key, own);
    }
  } else if (value.is_number()) {
    table.rows.push_back({name, value});
  } else if (value.is_string()) {
    table.rows.push_back({name, value});
  } else if (!value.is_null()) {
    const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    table.rows.push_back({name, printable(text, 200)});
  }
}

std::string subtitle_of(const RunFolder& run) {
  return fmt::format("{} · portwave {}", run.path.string(),
                     text_or(at(run.summary, "version"), "?"));
}

template <typename Curves>
std::unique_ptr<Curves> curves_of(const RunFolder& run, const char* table) {
  const std::unique_ptr<TableReader> reader = open_table(run.path, table);
  if (reader == nullptr) return nullptr;
  auto curves = std::make_unique<Curves>(reader->columns());
  std::vector<double> row;
  while (reader->next(row)) curves->add(row);
  return curves;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> facts_of(const RunFolder& run) {
  const Json& s = run.summary;
  std::vector<std::pair<std::string, std::string>> facts;
  const auto add = [&](const char* label, std::string value) {
    facts.emplace_back(label, std::move(value));
  };
  const auto number = [&](auto... keys) { return number_or(at(s, keys...), 0.0); };
  const double start_s = number("start_s");
  add("Simulated time",
      duration(number("time_s") - start_s) +
          (start_s == 0.0 ? std::string() : fmt::format(" from {:.6g} s", start_s)));
  add("Steps", with_thousands(number("steps")));
  if (run.network.is_object()) {
    add("Parts", with_thousands(number_or(at(run.network, "part_count"), 0.0)));
  }
  add("Wall time", duration(number("wall_s")));
  add("Steps per second", three(number("steps_per_s")));
  add("Times real time", three(number("real_time_factor")));
  add("Method", text_or(at(s, "method"), "?") +
                    (number("stages") > 1 ? fmt::format(", {:.0f} stages", number("stages")) : ""));
  if (at(s, "iterations").is_object()) {
    add("Iterations",
        fmt::format("{} on average, at most {:.0f}", three(number("iterations", "mean")),
                    number("iterations", "max")));
  }
  if (at(s, "guard").is_object()) {
    add("Guard", number("guard", "steps") == 0.0
                     ? "never had to act"
                     : fmt::format("acted in {} steps", with_thousands(number("guard", "steps"))));
  }
  if (at(s, "energy").is_object()) {
    add("Stored energy", fmt::format("{} J → {} J", three(number("energy", "initial_J")),
                                     three(number("energy", "final_J"))));
  }
  if (at(s, "time_budget").is_object()) {
    add("Deadlines missed", fmt::format("{} of {}", with_thousands(number("time_budget", "misses")),
                                        with_thousands(number("time_budget", "steps"))));
  }
  add("Execution", text_or(at(s, "execution", "description"), "?"));
  if (!text_or(at(s, "ended_by"), "").empty()) add("Ended by", text_or(at(s, "ended_by"), ""));
  return facts;
}

Table how_it_was_run(const Json& summary) {
  Table table = {.title = "", .columns = {"entry of summary.json", "value"}};
  for (const char* name :
       {"scenario",       "version",        "steps",   "step_s",           "time_s",
        "stages",         "completed",      "failure", "method",           "method_description",
        "method_remarks", "method_options", "choice",  "tuning",           "step_sizes",
        "execution",      "threads",        "wall_s",  "recording_wait_s", "time_budget",
        "times",          "certificate"}) {
    Json value = at(summary, name);
    if (std::string_view(name) == "choice" && value.is_object()) value.erase("candidates");
    add_rows(table, name, value);
  }
  return table;
}

Table events_of(const Json& summary) {
  Table table = {.title = "", .columns = {"watched", "rising", "falling", "last at [s]"}};
  const Json& events = at(summary, "events");
  if (!events.is_array()) return table;
  for (const Json& event : events) {
    table.rows.push_back({text_or(at(event, "name"), "?"), at(event, "rising"),
                          at(event, "falling"), at(event, "last_s")});
  }
  return table;
}

Page run_page(const RunFolder& run) {
  Page page = {.title = run.title(),
               .subtitle = subtitle_of(run),
               .verdict = verdict_of(run.summary),
               .facts = facts_of(run),
               .advice = advice_for(run.summary)};
  Section trajectories = {.title = "Trajectories"};
  if (const auto curves = curves_of<TrajectoryCurves>(run, "trajectory")) {
    trajectories.charts = curves->charts(run.units);
    trajectories.text = curves->left_out();
  } else {
    trajectories.text = "No rows were recorded (`\"format\": \"none\"`).";
  }
  page.sections.push_back(std::move(trajectories));
  if (const auto ledger = curves_of<LedgerCurves>(run, "energy")) {
    page.sections.push_back(ledger->energy());
    page.sections.push_back(ledger->coupling());
    page.sections.push_back(ledger->steps());
  }
  if (Table events = events_of(run.summary); !events.rows.empty()) {
    page.sections.push_back({.title = "Events", .tables = {std::move(events)}});
  }
  const auto parts = open_table(run.path, "energy_parts");
  const auto junctions = open_table(run.path, "energy_junctions");
  const NetworkEnergies energies = NetworkEnergies::read(run.network, parts.get(), junctions.get());
  if (auto network = draw_network(run.network, energies)) {
    page.sections.push_back({.title = "Network", .network = std::move(network)});
  } else if (run.network.is_object()) {
    page.sections.push_back({.title = "Network",
                             .text = fmt::format("{} parts in {} islands: too many to draw.",
                                                 at(run.network, "part_count").dump(),
                                                 at(run.network, "islands").dump())});
  }
  page.sections.push_back({.title = "How it was run", .tables = {how_it_was_run(run.summary)}});
  return page;
}

}  // namespace portwave::report
