// portwave study tolerance

#include <ostream>
#include <string_view>

#include <fmt/format.h>

#include <portwave/runtime/study/study_json.hpp>
#include <portwave/subsystems/base/printable.hpp>

#include "line/commands.hpp"
#include "study/cells.hpp"
#include "study/results.hpp"

namespace portwave::cli {
namespace {

std::string rows_table(const ToleranceStudy& study) {
  constexpr std::string_view kRowLine =
      "{:>6} {:>10} {:>11} {:>9} {:>9} {:>7} {:>11} {:>11} {:>11}\n";
  std::string text = fmt::format(kRowLine, "stages", "tolerance", "error", "steps", "rejected",
                                 "missed", "evaluations", "largest_s", "time_s");
  for (const ToleranceRow& row : study.rows) {
    const std::string stages = row.stages > 0 ? fmt::format("{}", row.stages) : "-";
    if (!row.failure.empty()) {
      text +=
          fmt::format("{:>6} {:>10.3g} {}\n", stages, row.tolerance, printable(row.failure, 200));
      continue;
    }
    text += fmt::format(kRowLine, stages, fmt::format("{:.3g}", row.tolerance), cell(row.error),
                        row.steps, row.rejected, row.missed, row.evaluations,
                        fmt::format("{:.4g}", row.largest_s), fmt::format("{:.4g}", row.time_s));
  }
  return text + fmt::format("\n{} to {:g} s; errors of all states, relative, against {}\n",
                            study.method, study.end_s, study.reference);
}

std::string failures_of(const ToleranceStudy& study) {
  return failure_lines(study.rows, [&](const ToleranceRow& row) {
    return fmt::format("{}, tolerance {:g}",
                       row.stages > 0 ? fmt::format("{} stages", row.stages) : study.method,
                       row.tolerance);
  });
}

}  // namespace

int run_command(const StudyToleranceArguments& arguments, std::ostream& out, std::ostream& err) {
  const auto study = [&](const Scenario& scenario, const PhaseCallback& listener) {
    const ToleranceStudy found = study_tolerance(scenario, arguments.options, listener);
    return StudyOutput{.text = rows_table(found),
                       .json = study_json(found, scenario),
                       .table = study_csv(found),
                       .failures = failures_of(found)};
  };
  return run_study(arguments, {"tolerance", "study.json", "tolerance.csv"},
                   arguments.options.threads, study, out, err);
}

}  // namespace portwave::cli
