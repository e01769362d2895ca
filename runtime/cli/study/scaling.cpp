// portwave study scaling

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <string_view>

#include <fmt/format.h>

#include <portwave/runtime/output/file_recorder.hpp>
#include <portwave/runtime/output/recorder.hpp>
#include <portwave/runtime/study/study_json.hpp>

#include "line/commands.hpp"
#include "line/report_page.hpp"
#include "line/thread_allowance.hpp"
#include "live/status_line.hpp"
#include "study/cells.hpp"

namespace portwave::cli {
namespace {

std::string_view source_of(const ScalingRow& row) {
  return row.predicted ? "predicted" : "measured";
}

std::string executor_cell(const ScalingRow& row) {
  if (!row.fell_back) return "serial|async";
  if (*row.fell_back) return "serial (fell back)";
  if (row.predicted) return row.tasks > 1 ? "parallel" : "serial";
  return row.execution.substr(0, row.execution.find(','));
}

constexpr std::string_view kLine =
    "{:>9} {:>8} {:>8} {:>10} {:>8} {:>8} {:>10} {:>13} {:>9} {:>10} {:>9} {:>6} {:>9}  {:<18}\n";

std::string row_line(const ScalingRow& row) {
  const auto phase = [&](double StepTimes::*time) {
    return row.phases ? us((*row.phases).*time) : std::string("-");
  };
  return fmt::format(kLine, source_of(row), row.size, row.threads, us(row.step_s),
                     row.spread ? fmt::format("{:.1f} %", 100.0 * *row.spread) : "-",
                     fmt::format("{:.3f}", row.speed_up), fmt::format("{:.3f}", row.efficiency),
                     us(row.predicted_step_s), phase(&StepTimes::begin_s),
                     phase(&StepTimes::iterate_s), phase(&StepTimes::commit_s), row.tasks,
                     fmt::format("{:.3f}", row.imbalance), executor_cell(row));
}

/// Where the time of the threads goes, or nothing.
std::string loss_table(const ScalingStudy& study) {
  constexpr std::string_view kLossLine = "{:>9} {:>8} {:>10} {:>13} {:>10} {:>12} {:>10}\n";
  std::string text;
  for (const ScalingRow& row : study.rows) {
    if (!row.loss) continue;
    if (text.empty()) {
      text = "\nWhere the time of the threads goes (executor async, tasks followed):\n" +
             fmt::format(kLossLine, "parts", "threads", "steps", "one_thread", "waiting",
                         "more_work", "imbalance");
    }
    const auto percent = [](double share) { return fmt::format("{:.1f} %", 100.0 * share); };
    text += fmt::format(kLossLine, row.size, row.threads, row.loss->steps,
                        percent(row.loss->one_thread), percent(row.loss->waiting),
                        percent(row.loss->more_work), fmt::format("{:.3f}", row.loss->imbalance));
  }
  return text;
}

/// Measured and asked-for rows, then the predicted curve, columns aligned.
std::string study_table(const ScalingStudy& study) {
  std::string text = fmt::format(kLine, "source", "parts", "threads", "step_us", "spread",
                                 "speed_up", "efficiency", "predicted_us", "begin_us", "iterate_us",
                                 "commit_us", "tasks", "imbalance", "executor");
  for (const ScalingRow& row : study.rows) text += row_line(row);
  for (const ScalingRow& row : study.curve) text += row_line(row);
  return text + loss_table(study);
}

ScalingStudy study_of_threads(const StudyScalingArguments& arguments, StatusLine& status) {
  const NetworkArguments& networks = arguments.networks;
  try {
    if (!networks.is_weak()) {
      return study_strong_scaling(single_network(networks, arguments.out, status),
                                  arguments.options, status.listener());
    }
    std::vector<SizedScenario> scenarios;
    for (std::size_t i = 0; i < networks.sizes.size(); ++i) {
      scenarios.push_back(
          {generated_network(networks, networks.sizes[i], status), arguments.options.threads[i]});
    }
    return study_weak_scaling(scenarios, arguments.options, status.listener());
  } catch (const ScenarioError&) {
    throw;
  } catch (const ConfigError& error) {
    throw ScenarioError(networks.name(), error.issues());
  }
}

}  // namespace

int run_command(const StudyScalingArguments& arguments, std::ostream& out, std::ostream& err) {
  expect_report(arguments.report);
  throw_if_any(check(arguments.networks, arguments.options.threads, "thread"));
  std::optional<OutputFolder> folder;
  if (arguments.out)
    folder.emplace(*arguments.out, std::initializer_list<const char*>{kScalingFile});
  const std::vector<int>& threads = arguments.options.threads;
  const ThreadAllowance allowance(*std::max_element(threads.begin(), threads.end()));
  allowance.tell(err);

  StatusLine status(err, stderr_is_terminal());
  const ScalingStudy result = study_of_threads(arguments, status);
  status.finish();
  const std::string json = study_json(result, arguments.options);
  out << (arguments.json ? json : study_table(result));  // before the file, which may fail
  if (folder) {
    write_file_atomically(folder->file(kScalingFile), json);
    folder->keep();
    err << fmt::format("written to {}\n", folder->file(kScalingFile).string());
    if (arguments.report) {
      write_study_report(arguments.out, json, "scaling", result.name, err);
    }
  }
  return kOk;
}

}  // namespace portwave::cli
