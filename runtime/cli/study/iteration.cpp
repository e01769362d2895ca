// portwave study iteration

#include <cstddef>
#include <ostream>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <portwave/runtime/study/study_json.hpp>

#include "line/commands.hpp"
#include "line/report_page.hpp"
#include "live/status_line.hpp"
#include "study/cells.hpp"
#include "study/results.hpp"

namespace portwave::cli {
namespace {

constexpr const char* kIterationFile = "study.json";
constexpr const char* kIterationTable = "iteration.csv";

bool contracts(const IterationStudy& study) {
  return study.parameters.kind == IterationKind::lions_mercier;
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
  StudyResults results(arguments.out, {kIterationFile, kIterationTable}, scenario);
  IterationOptions options = arguments.options;
  options.iterations = arguments.iterations.value_or(iterations_of(scenario.options.method));
  const IterationStudy study =
      found_by([&] { return study_iteration(scenario, options, status.listener()); },
               arguments.scenario.file);
  status.finish();
  const std::string json = study_json(study, scenario);
  out << (arguments.json ? json
                         : head_text(study) + rows_table(study) +
                               windows_text(study));  // before the files, which may fail
  const int exit_code = report_failures(study, err);
  results.write(json, study_csv(study), err);
  if (arguments.report) results.draw(json, "iteration", err);
  return exit_code;
}

}  // namespace portwave::cli
