// portwave study delay

#include <ostream>
#include <string_view>

#include <fmt/format.h>

#include <portwave/runtime/study/study_json.hpp>

#include "line/commands.hpp"
#include "study/cells.hpp"
#include "study/results.hpp"

namespace portwave::cli {
namespace {

std::string rows_table(const std::vector<DelayRow>& rows) {
  constexpr std::string_view kLine = "{:>10} {:>6} {:>12} {:>12} {:>12} {:>12} {:>12} {:>11}\n";
  std::string text = fmt::format(kLine, "iterations", "delay", "rms", "max", "final", "guard_steps",
                                 "withheld_J", "status");
  for (const DelayRow& row : rows) {
    text += fmt::format(kLine, row.iterations, row.delay, cell(row.rms), cell(row.max),
                        cell(row.final), row.guard_steps, cell(row.withheld_J), status_of(row));
  }
  return text;
}

std::string failures_of(const std::vector<DelayRow>& rows) {
  return failure_lines(rows, [](const DelayRow& row) {
    return fmt::format("delay {}, {} iterations", row.delay, row.iterations);
  });
}

}  // namespace

int run_command(const StudyDelayArguments& arguments, std::ostream& out, std::ostream& err) {
  const auto study = [&](const Scenario& scenario, const PhaseCallback& listener) {
    const std::vector<DelayRow> rows = study_delay(scenario, arguments.options, listener);
    return StudyOutput{.text = rows_table(rows),
                       .json = study_json(rows),
                       .failures = failures_of(rows),
                       .is_violated = is_any_violated(rows)};
  };
  return run_study(arguments, {"delay", "delay.json"}, std::nullopt, study, out, err);
}

}  // namespace portwave::cli
