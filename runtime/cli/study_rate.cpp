// portwave study rate

#include <initializer_list>
#include <ostream>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <portwave/runtime/output/recorder.hpp>
#include <portwave/runtime/study/rate_study.hpp>
#include <portwave/subsystems/base/printable.hpp>

#include "commands.hpp"
#include "rate_text.hpp"
#include "report.hpp"
#include "status_line.hpp"

namespace portwave::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kRateFile = "rate.json";

Json rows_json(const std::vector<RateRow>& rows) {
  Json json = Json::array();
  for (const RateRow& row : rows) {
    const ObservedRate& seen = row.observed;
    const bool is_known = seen.steps > 0;
    const auto if_known = [&](double value) {
      return is_known ? finite_or_null(value) : Json(nullptr);
    };
    json.push_back(
        {{"method", std::string(row.update.rule()->name())},
         {"relaxation", row.update.relaxation()},
         {"impedance", row.impedance},
         {"problem", row.problem.empty() ? Json(nullptr) : Json(row.problem)},
         {"predicted", row.predicted.evaluations > 0 ? rate_json(row.predicted) : Json(nullptr)},
         {"observed",
          {{"steps", seen.steps},
           {"contraction", if_known(seen.contraction)},
           {"worst_contraction", if_known(seen.worst_contraction)},
           {"evaluations", if_known(seen.evaluations)},
           {"max_evaluations", if_known(seen.max_evaluations)},
           {"not_converged", seen.not_converged}}}});
  }
  return json;
}

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

std::vector<RateRow> rows_of(const Scenario& scenario, const StudyRateArguments& arguments,
                             StatusLine& status) {
  try {
    return study_rate(scenario, arguments.options, status.listener());
  } catch (const ConfigError& error) {
    throw ScenarioError(arguments.scenario.file, error.issues());
  }
}

}  // namespace

int run_command(const StudyRateArguments& arguments, std::ostream& out, std::ostream& err) {
  expect_report(arguments.report);
  StatusLine status(err, stderr_is_terminal());
  const Scenario scenario = load(arguments.scenario, status);
  std::optional<OutputFolder> folder;
  if (arguments.out) {
    folder.emplace(*arguments.out, std::initializer_list<const char*>{kRateFile, kReportPage},
                   scenario.recording.inputs);
  }
  const std::vector<RateRow> rows = rows_of(scenario, arguments, status);
  status.finish();
  const std::string json = rows_json(rows).dump(2) + "\n";
  out << (arguments.json ? json : rows_table(rows));
  if (folder) {
    write_file_atomically(folder->file(kRateFile), json);
    folder->keep();
    err << fmt::format("written to {}\n", folder->file(kRateFile).string());
    if (arguments.report) {
      write_study_report(arguments.out, json, "rate", scenario.name, err);
    }
  }
  return kOk;
}

}  // namespace portwave::cli
