// portwave study rate

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

std::string observed_text(const ObservedRate& seen, double contraction) {
  return seen.steps > 0 ? contraction_text(contraction) : "-";
}

std::string rows_table(const std::vector<RateRow>& rows) {
  constexpr std::string_view kLine = "{:<10} {:<17} {:>10} {:>10} {:>10} {:>12} {:>12}\n";
  std::string text =
      fmt::format("{:<28} {:^32} {:^25}\n", "", "contraction", "evaluations to 1e-10");
  text += fmt::format(kLine, "impedance", "method", "predicted", "observed", "worst", "predicted",
                      "observed");
  for (const RateRow& row : rows) {
    const ObservedRate& seen = row.observed;
    if (!row.problem.empty()) {
      text += fmt::format("{:<10} {:<17} {}\n", row.impedance, row.update.rule()->name(),
                          printable(row.problem, 200));
      continue;
    }
    const std::string evaluations =
        seen.steps == 0
            ? "-"
            : fmt::format("{}{}", seen.not_converged > 0 ? "> " : "", seen.max_evaluations);
    text += fmt::format(
        kLine, row.impedance, row.update.rule()->name(),
        contraction_text(row.predicted.contraction), observed_text(seen, seen.contraction),
        observed_text(seen, seen.worst_contraction), evaluations_text(row.predicted), evaluations);
  }
  return text;
}

}  // namespace

int run_command(const StudyRateArguments& arguments, std::ostream& out, std::ostream& err) {
  const auto study = [&](const Scenario& scenario, const PhaseCallback& listener) {
    const std::vector<RateRow> rows = study_rate(scenario, arguments.options, listener);
    return StudyOutput{.text = rows_table(rows), .json = study_json(rows)};
  };
  return run_study(arguments, {"rate", "rate.json"}, std::nullopt, study, out, err);
}

}  // namespace portwave::cli
