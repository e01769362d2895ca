// portwave study iteration

#include <cstddef>
#include <initializer_list>
#include <ostream>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <portwave/runtime/output/recorder.hpp>
#include <portwave/runtime/study/iteration_study.hpp>

#include "commands.hpp"
#include "report.hpp"
#include "status_line.hpp"
#include "study_text.hpp"

namespace portwave::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kIterationFile = "study.json";
constexpr const char* kIterationTable = "iteration.csv";

bool contracts(const IterationStudy& study) {
  return study.parameters.kind == IterationKind::lions_mercier;
}

/// What is known before the first iteration. Null for Jacobi and Gauss–Seidel.
Json predicted_json(const IterationStudy& study) {
  if (!contracts(study)) return nullptr;
  const LionsMercierBounds& bounds = study.parameters.bounds;
  return {{"rate", number(bounds.rate)},
          {"optimal_rate", number(bounds.optimal_rate)},
          {"optimal_lambda", number(bounds.optimal_lambda)},
          {"norm_K", number(bounds.norm_K)},
          {"norm_inverse", number(bounds.norm_inverse)},
          {"rank_mu", bounds.rank_mu},
          {"rank_alpha", bounds.rank_alpha},
          {"rank_plain", bounds.rank_plain},
          {"x_converges", bounds.x_converges()},
          {"monotone", bounds.monotone}};
}

Json rows_json(const IterationWindow& window) {
  Json rows = Json::array();
  for (const IterationRow& row : window.rows) {
    rows.push_back({{"iteration", row.iteration},
                    {"x_error", row.x_error},
                    {"x_relative", number(row.x_relative)},
                    {"x_largest", row.x_largest},
                    {"z_error", number(row.z_error)},
                    {"z_weighted", number(row.z_weighted)},
                    {"ratio", number(row.ratio)}});
  }
  return rows;
}

Json integer_or_null(std::optional<int> value) { return value ? Json(*value) : Json(nullptr); }

Json study_json(const IterationStudy& study, const Scenario& scenario) {
  const DynamicParameters& used = study.parameters;
  const auto if_contracts = [&](auto value) { return contracts(study) ? Json(value) : Json(); };
  Json windows = Json::array();
  for (const IterationWindow& window : study.windows) {
    windows.push_back({{"start_s", window.start_s},
                       {"largest_rise", number(window.largest_rise)},
                       {"beyond_single_precision", integer_or_null(window.beyond_single)},
                       {"gives_up", integer_or_null(window.gives_up)},
                       {"failure", window.failure.empty() ? Json(nullptr) : Json(window.failure)},
                       {"rows", rows_json(window)}});
  }
  return {{"study", "iteration"},
          {"scenario", scenario.name},
          {"method", std::string(to_string(used.kind))},
          {"integrator", std::string(to_string(used.integrator))},
          {"metric", if_contracts(std::string(to_string(used.metric)))},
          {"lambda", if_contracts(used.lambda)},
          {"mu", if_contracts(used.mu)},
          {"omega", if_contracts(used.omega)},
          {"alpha", if_contracts(used.alpha)},
          {"states", study.states},
          {"step_s", study.step_s},
          {"window_steps", study.window_steps},
          {"predicted", predicted_json(study)},
          {"windows", std::move(windows)}};
}

std::string head_text(const IterationStudy& study) {
  const DynamicParameters& used = study.parameters;
  std::string text =
      fmt::format("{} with {}, windows of {} steps ({:g} s), {} states\n", to_string(used.kind),
                  to_string(used.integrator), study.window_steps, study.window_steps * study.step_s,
                  study.states);
  if (!contracts(study)) return text + "\n";
  const LionsMercierBounds& bounds = used.bounds;
  const auto yes = [](bool is_so) { return is_so ? "yes" : "no"; };
  text += fmt::format("lambda {:g}, mu {:g}, omega {:g}, alpha {:g}, metric {}\n", used.lambda,
                      used.mu, used.omega, used.alpha, to_string(used.metric));
  text += fmt::format("predicted rate q {:.5f}; q* {:.5f} at lambda* {:.6g}; |K| {:.6g}\n",
                      bounds.rate, bounds.optimal_rate, bounds.optimal_lambda, bounds.norm_K);
  text += fmt::format(
      "ranks full: [mu E, (1-alpha)R] {}, [E, alpha R] {}, [E, R] {}; x converges: {}\n",
      yes(bounds.rank_mu), yes(bounds.rank_alpha), yes(bounds.rank_plain),
      yes(bounds.x_converges()));
  text += fmt::format("the weighted norm of the error in z {}\n\n",
                      bounds.monotone ? "never rises" : "may rise: h mu is too large for h omega");
  return text;
}

std::string rows_table(const IterationStudy& study) {
  constexpr std::string_view kLine = "{:>6} {:>9} {:>12} {:>12} {:>12} {:>12} {:>12} {:>10}\n";
  std::string text = fmt::format(kLine, "window", "iteration", "x_error", "x_relative", "x_largest",
                                 "z_error", "z_weighted", "ratio");
  for (std::size_t i = 0; i < study.windows.size(); ++i) {
    for (const IterationRow& row : study.windows[i].rows) {
      text += fmt::format(kLine, i, row.iteration, cell(row.x_error), cell(row.x_relative),
                          cell(row.x_largest), cell(row.z_error), cell(row.z_weighted),
                          row.ratio ? fmt::format("{:.6f}", *row.ratio) : "-");
    }
  }
  return text + "\n";
}

/// What there is to say of each window.
std::string windows_text(const IterationStudy& study) {
  std::string text;
  for (std::size_t i = 0; i < study.windows.size(); ++i) {
    const IterationWindow& window = study.windows[i];
    const auto say = [&](const std::string& what) {
      text += fmt::format("window {}: {}\n", i, what);
    };
    if (window.largest_rise) {
      say(fmt::format("largest ratio of an error to the one before it {:.6g}",
                      *window.largest_rise));
    }
    if (window.beyond_single) {
      say(fmt::format("beyond single precision (3.4028e38) from iteration {}",
                      *window.beyond_single));
    }
    if (window.gives_up) {
      say(fmt::format(
          "diverges: a run gives up at iteration {}, where the waveforms change by more "
          "than divergence_limit times their size",
          *window.gives_up));
    }
  }
  return text;
}

/// For plotting: a header, then a line per row.
std::string rows_csv(const IterationStudy& study) {
  std::string text = "window,iteration,x_error,x_relative,x_largest,z_error,z_weighted,ratio\n";
  for (std::size_t i = 0; i < study.windows.size(); ++i) {
    for (const IterationRow& row : study.windows[i].rows) {
      text += fmt::format("{},{},{},{},{},{},{},{}\n", i, row.iteration, field(row.x_error),
                          field(row.x_relative), field(row.x_largest), field(row.z_error),
                          field(row.z_weighted), field(row.ratio));
    }
  }
  return text;
}

IterationStudy study_of(const Scenario& scenario, const StudyIterationArguments& arguments,
                        StatusLine& status) {
  IterationOptions options = arguments.options;
  options.iterations = arguments.iterations.value_or(iterations_of(scenario.options.method));
  try {
    return study_iteration(scenario, options, status.listener());
  } catch (const ConfigError& error) {
    throw ScenarioError(arguments.scenario.file, error.issues());
  }
}

/// Says what failed, a line each. The exit code.
int report_failures(const IterationStudy& study, std::ostream& err) {
  int exit_code = kOk;
  for (std::size_t i = 0; i < study.windows.size(); ++i) {
    if (study.windows[i].failure.empty()) continue;
    exit_code = kFailed;
    err << fmt::format("portwave: window {}: {}\n", i, study.windows[i].failure);
  }
  return exit_code;
}

}  // namespace

int run_command(const StudyIterationArguments& arguments, std::ostream& out, std::ostream& err) {
  expect_report(arguments.report);
  StatusLine status(err, stderr_is_terminal());
  const Scenario scenario = load(arguments.scenario, status);
  std::optional<OutputFolder> folder;
  if (arguments.out) {
    folder.emplace(*arguments.out,
                   std::initializer_list<const char*>{kIterationFile, kIterationTable, kReportPage},
                   scenario.recording.inputs);
  }

  const IterationStudy study = study_of(scenario, arguments, status);
  status.finish();
  const std::string json = study_json(study, scenario).dump(2) + "\n";
  out << (arguments.json ? json : head_text(study) + rows_table(study) + windows_text(study));
  const int exit_code = report_failures(study, err);
  if (folder) {
    write_file_atomically(folder->file(kIterationFile), json);
    write_file_atomically(folder->file(kIterationTable), rows_csv(study));
    folder->keep();
    err << fmt::format("written to {} and {}\n", folder->file(kIterationFile).string(),
                       kIterationTable);
    if (arguments.report) {
      write_study_report(arguments.out, json, "iteration", scenario.name, err);
    }
  }
  return exit_code;
}

}  // namespace portwave::cli
