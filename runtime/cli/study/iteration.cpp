// portwave study iteration

#include <cstddef>
#include <ostream>
#include <string_view>

#include <fmt/format.h>

#include <portwave/runtime/study/study_json.hpp>

#include "line/commands.hpp"
#include "study/cells.hpp"
#include "study/results.hpp"

namespace portwave::cli {
namespace {

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

std::string failures_of(const IterationStudy& study) {
  return failure_lines(study.windows, [&](const IterationWindow& window) {
    return fmt::format("window {}", &window - study.windows.data());
  });
}

}  // namespace

int run_command(const StudyIterationArguments& arguments, std::ostream& out, std::ostream& err) {
  const auto study = [&](const Scenario& scenario, const PhaseCallback& listener) {
    IterationOptions options = arguments.options;
    options.iterations = arguments.iterations.value_or(iterations_of(scenario.options.method));
    const IterationStudy found = study_iteration(scenario, options, listener);
    return StudyOutput{.text = head_text(found) + rows_table(found) + windows_text(found),
                       .json = study_json(found, scenario),
                       .table = study_csv(found),
                       .failures = failures_of(found)};
  };
  return run_study(arguments, {"iteration", "study.json", "iteration.csv"}, std::nullopt, study,
                   out, err);
}

}  // namespace portwave::cli
